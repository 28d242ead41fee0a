// Gallery page: a video and a corruption to choose, a severity slider, and clean and corrupted players side by side.

import { el, formatCode, queryParameter, replaceContent, updateQuery } from './dom.js';
import { installShortcuts } from './keys.js';
import { Players } from './players.js';
import { Screen } from './screen.js';

export function renderGalleryPage(main, data) {
  const findByKey = (list, key, defaultValue) => list.find((entry) => entry.key === key) || defaultValue;
  let profile = findByKey(data.profiles, queryParameter('profile', ''), data.profiles[0]);
  let corruption = findByKey(profile.corruptions, queryParameter('corruption', ''), profile.corruptions[0]);
  let reloadTimer = null;

  const clean = new Screen('Clean', { onReady: (film) => players.setFilm(film) });
  const corrupted = new Screen('Corrupted', { onReady: (film) => players.setFilm(film) });
  const players = new Players([clean.video, corrupted.video]);
  players.loop = true;

  const videoSelect = el('select', { onchange: loadVideo }, data.videos.map((video) => el('option', { value: video.key, selected: video.key === queryParameter('video', '') }, video.id)));
  const profileSelect = el('select', { onchange: () => { profile = findByKey(data.profiles, profileSelect.value, profile); corruption = profile.corruptions[0]; fillCorruptions(); loadCorrupted(); } },
    data.profiles.map((entry) => el('option', { value: entry.key, selected: entry === profile }, entry.key)));
  const corruptionSelect = el('select', { onchange: () => { corruption = findByKey(profile.corruptions, corruptionSelect.value, corruption); limitSeverity(); loadCorrupted(); } });
  const severity = el('input', { type: 'range', min: 0, step: 1, oninput: () => { describeCorruption(); clearTimeout(reloadTimer); reloadTimer = setTimeout(loadCorrupted, 120); } });
  const severityLabel = el('output', {});
  const description = el('p', { class: 'quiet' });
  const play = el('button', { type: 'button', class: 'play', onclick: () => players.toggle() }, 'Play');

  const changeSeverity = (change) => { severity.value = String(Number(severity.value) + change); describeCorruption(); loadCorrupted(); };
  const changeCorruption = (change) => {
    const index = profile.corruptions.indexOf(corruption) + change;
    if (index < 0 || index >= profile.corruptions.length) return;
    corruption = profile.corruptions[index];
    corruptionSelect.value = corruption.key;
    limitSeverity();
    loadCorrupted();
  };
  const shortcuts = [
    { keys: [' '], labels: ['space'], description: 'play or pause', action: () => players.toggle() },
    { keys: ['ArrowLeft'], labels: ['←'], description: 'weaker', action: () => changeSeverity(-1) },
    { keys: ['ArrowRight'], labels: ['→'], description: 'stronger', action: () => changeSeverity(1) },
    { keys: ['p'], labels: ['p'], description: 'previous corruption', action: () => changeCorruption(-1) },
    { keys: ['n'], labels: ['n'], description: 'next corruption', action: () => changeCorruption(1) },
    { keys: [','], labels: [','], description: 'one frame back', action: () => players.step(-1) },
    { keys: ['.'], labels: ['.'], description: 'one frame forward', action: () => players.step(1) },
  ];

  replaceContent(main,
    el('h1', {}, 'Gallery of corruptions'),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Video and corruption' },
      el('label', { class: 'near' }, 'Video ', videoSelect),
      el('label', { class: 'near' }, 'Profile ', profileSelect),
      el('label', { class: 'near' }, 'Corruption ', corruptionSelect)),
    el('div', { class: 'screens two' }, clean.node, corrupted.node),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Players' },
      play, el('label', { class: 'near slider grow' }, 'Severity ', severity, severityLabel), installShortcuts(shortcuts)),
    description,
  );
  connectPlayers();
  fillCorruptions(queryParameter('severity', 3));
  loadVideo();

  function connectPlayers() {
    players.addEventListener('time', () => { for (const screen of [clean, corrupted]) screen.showFrame(players.frame); });
    players.addEventListener('state', () => { play.textContent = players.playing ? 'Pause' : 'Play'; });
    players.setRate(1);
  }

  function fillCorruptions(level = null) {
    corruptionSelect.replaceChildren(...profile.corruptions.map((entry) => el('option', { value: entry.key, selected: entry === corruption }, entry.title)));
    limitSeverity(level);
  }

  /** Set the range of the severity slider, and its value to `level` or to the nearest one to the present. */
  function limitSeverity(level = null) {
    const value = level === null ? Number(severity.value) : level;
    severity.max = String(corruption.severities);
    severity.value = String(Math.max(0, Math.min(corruption.severities, value)));
    describeCorruption();
  }

  function describeCorruption() {
    const level = Number(severity.value);
    const placement = level && corruption.placements ? `, at ${corruption.placements[level - 1]}` : '';
    severityLabel.textContent = level ? `${level} of ${corruption.severities}` : 'clean';
    replaceContent(corrupted.caption, 'Corrupted', el('span', { class: 'quiet' }, level ? ` ${corruption.spec}:${level}${placement}` : ' severity 0 is the clean video'));
    replaceContent(description, formatCode(corruption.summary), ` (${corruption.family}, works on the ${corruption.level})`);
    updateQuery({ video: videoSelect.value, profile: profile.key, corruption: corruption.key, severity: level });
  }

  // Frame times differ between videos, so the players are reset.
  function loadVideo() {
    players.pause();
    players.film = null;
    players.time = 0;
    clean.load(`${data.media}/${data.clean}/${videoSelect.value}`);
    loadCorrupted();
    updateQuery({ video: videoSelect.value });
  }

  async function loadCorrupted() {
    const level = Number(severity.value);
    const wasPlaying = players.playing;
    const film = await corrupted.load(`${data.media}/${level ? `${corruption.key}-${level}` : data.clean}/${videoSelect.value}`);
    if (film && wasPlaying) corrupted.video.addEventListener('loadeddata', () => { if (players.playing) corrupted.video.play().catch(() => {}); }, { once: true });
  }
}
