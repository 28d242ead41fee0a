// The gallery: a video, a corruption, a slider of severities, and the two side by side.

import { el, parameter, put, remember, worded } from './dom.js';
import { shortcuts } from './keys.js';
import { Players } from './players.js';
import { Screen } from './screen.js';

export function galleryPage(main, data) {
  const find = (list, key, usual) => list.find((one) => one.key === key) || usual;
  let profile = find(data.profiles, parameter('profile', ''), data.profiles[0]);
  let chosen = find(profile.corruptions, parameter('corruption', ''), profile.corruptions[0]);

  const clean = new Screen('Clean', { onready: (film) => players.setFilm(film) });
  const struck = new Screen('Corrupted', { onready: (film) => players.setFilm(film) });
  const players = new Players([clean.video, struck.video]);
  players.loop = true;

  const video = el('select', { onchange: other }, data.videos.map((one) => el('option', { value: one.key, selected: one.key === parameter('video', '') }, one.id)));
  const table = el('select', { onchange: () => { profile = find(data.profiles, table.value, profile); chosen = profile.corruptions[0]; fill(); again(); } },
    data.profiles.map((one) => el('option', { value: one.key, selected: one === profile }, one.key)));
  const corruption = el('select', { onchange: () => { chosen = find(profile.corruptions, corruption.value, chosen); limits(); again(); } });
  const severity = el('input', { type: 'range', min: 0, step: 1, oninput: () => { told(); clearTimeout(wait); wait = setTimeout(again, 120); } });
  const severityShown = el('output', {});
  const about = el('p', { class: 'quiet' });
  const play = el('button', { type: 'button', class: 'play', onclick: () => players.toggle() }, 'Play');
  let wait = null;

  const move = (by) => { severity.value = String(Number(severity.value) + by); told(); again(); };
  const turn = (by) => {
    const at = profile.corruptions.indexOf(chosen) + by;
    if (at < 0 || at >= profile.corruptions.length) return;
    chosen = profile.corruptions[at];
    corruption.value = chosen.key;
    limits();
    again();
  };
  const keys = [
    { keys: [' '], shown: ['space'], says: 'play or pause', act: () => players.toggle() },
    { keys: ['ArrowLeft'], shown: ['←'], says: 'weaker', act: () => move(-1) },
    { keys: ['ArrowRight'], shown: ['→'], says: 'stronger', act: () => move(1) },
    { keys: ['p'], shown: ['p'], says: 'corruption before', act: () => turn(-1) },
    { keys: ['n'], shown: ['n'], says: 'next corruption', act: () => turn(1) },
    { keys: [','], shown: [','], says: 'one frame back', act: () => players.step(-1) },
    { keys: ['.'], shown: ['.'], says: 'one frame on', act: () => players.step(1) },
  ];

  put(main,
    el('h1', {}, 'Gallery of corruptions'),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'What is shown' },
      el('label', { class: 'near' }, 'Video ', video),
      el('label', { class: 'near' }, 'Profile ', table),
      el('label', { class: 'near' }, 'Corruption ', corruption)),
    el('div', { class: 'screens two' }, clean.node, struck.node),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Players' },
      play, el('label', { class: 'near slider grow' }, 'Severity ', severity, severityShown), shortcuts(keys)),
    about,
  );
  listen();
  fill(parameter('severity', 3));
  other();

  function listen() {
    players.addEventListener('time', () => { for (const screen of [clean, struck]) screen.show(players.frame); });
    players.addEventListener('state', () => { play.textContent = players.playing ? 'Pause' : 'Play'; });
    players.setRate(1);
  }

  function fill(at = null) {
    corruption.replaceChildren(...profile.corruptions.map((one) => el('option', { value: one.key, selected: one === chosen }, one.title)));
    limits(at);
  }

  function limits(at = null) {
    const before = at === null ? Number(severity.value) : at;
    severity.max = String(chosen.severities);
    severity.value = String(Math.max(0, Math.min(chosen.severities, before)));
    told();
  }

  function told() {
    const level = Number(severity.value);
    const place = level && chosen.placements ? `, at ${chosen.placements[level - 1]}` : '';
    severityShown.textContent = level ? `${level} of ${chosen.severities}` : 'clean';
    put(struck.caption, 'Corrupted', el('span', { class: 'quiet' }, level ? ` ${chosen.spec}:${level}${place}` : ' severity 0 is the clean video'));
    put(about, worded(chosen.summary), ` (${chosen.family}, works on the ${chosen.level})`);
    remember({ video: video.value, profile: profile.key, corruption: chosen.key, severity: level });
  }

  // Another video has frames of its own: the players begin anew.
  function other() {
    players.pause();
    players.film = null;
    players.time = 0;
    clean.load(`${data.media}/${data.clean}/${video.value}`);
    again();
    remember({ video: video.value });
  }

  async function again() {
    const level = Number(severity.value);
    const was = players.playing;
    const film = await struck.load(`${data.media}/${level ? `${chosen.key}-${level}` : data.clean}/${video.value}`);
    if (film && was) struck.video.addEventListener('loadeddata', () => { if (players.playing) struck.video.play().catch(() => {}); }, { once: true });
  }
}
