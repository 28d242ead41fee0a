// The page of a video: two players that move as one, and under them what the model made of what they show.

import { clock, el, getJson, jsonAddress, parameter, percent, put, remember } from './dom.js';
import { answersPanel } from './answers.js';
import { framesPanel } from './frames.js';
import { objectsPanel } from './objects.js';
import { questionsPanel } from './questions.js';
import { shortcuts } from './keys.js';
import { Players, RATES } from './players.js';
import { Screen } from './screen.js';
import { KINDS, Timeline } from './timeline.js';

export function videoPage(main, data) {
  const two = Boolean(data.media.corrupted);
  const known = (film) => { players.setFilm(film); };
  const clean = new Screen('Clean', { onready: (film) => { known(film); if (!two) mends(film); } });
  const corrupted = two ? new Screen('Corrupted', { onready: (film) => { known(film); strikes(film.struck); mends(film); } }) : null;
  const screens = two ? [clean, corrupted] : [clean];
  const players = new Players(screens.map((screen) => screen.video));
  if (two) corrupted.caption.replaceChildren('Corrupted', el('span', { class: 'quiet' }, ` ${data.cell.title}`));

  let struck = [];
  const panel = data.actions ? detectionPanel(data, players, two)
    : data.answers ? answersPanel(data, two) : data.questions ? questionsPanel(data, players, two)
      : data.objects ? objectsPanel(data, players, screens) : framesPanel(data, players, two);

  const play = el('button', { type: 'button', class: 'play', onclick: () => players.toggle() }, 'Play');
  const now = el('output', { class: 'clock', 'aria-label': 'Time and frame' });
  const rate = el('select', { 'aria-label': 'Speed', onchange: () => players.setRate(Number(rate.value)) },
    RATES.map((one) => el('option', { value: one }, `${one}×`)));
  const button = (text, says, act) => el('button', { type: 'button', title: says, 'aria-label': says, onclick: act }, text);
  const change = (key) => { if (key) location.assign(`/runs/${data.run.key}/cells/${data.cell.key}/videos/${key}${kept()}`); };
  const jump = (way) => {
    const starts = struck.map(([start]) => start).filter((start) => (way > 0 ? start > players.time + 1e-3 : start < players.time - 1e-3));
    if (starts.length) { players.pause(); players.seek(way > 0 ? starts[0] : starts[starts.length - 1]); }
  };
  const nudge = (seconds) => players.seek(players.time + seconds);
  const keys = [
    { keys: [' '], shown: ['space'], says: 'play or pause', act: () => players.toggle() },
    { keys: ['ArrowLeft'], shown: ['←'], says: 'one second back', act: () => nudge(-1) },
    { keys: ['ArrowRight'], shown: ['→'], says: 'one second on', act: () => nudge(1) },
    { keys: ['Shift+ArrowLeft'], shown: ['shift', '←'], says: 'five seconds back', act: () => nudge(-5) },
    { keys: ['Shift+ArrowRight'], shown: ['shift', '→'], says: 'five seconds on', act: () => nudge(5) },
    { keys: [','], shown: [','], says: 'one frame back', act: () => players.step(-1) },
    { keys: ['.'], shown: ['.'], says: 'one frame on', act: () => players.step(1) },
    { keys: ['['], shown: ['['], says: 'slower', act: () => players.faster(-1) },
    { keys: [']'], shown: [']'], says: 'faster', act: () => players.faster(1) },
    { keys: ['Home'], shown: ['home'], says: 'to the beginning', act: () => players.seek(0) },
    { keys: ['End'], shown: ['end'], says: 'to the end', act: () => players.seek(players.duration) },
    two && { keys: ['s'], shown: ['s'], says: 'next corrupted stretch', act: () => jump(1) },
    two && { keys: ['S'], shown: ['shift', 's'], says: 'corrupted stretch before', act: () => jump(-1) },
    panel.zoom && { keys: ['+', '='], shown: ['+'], says: 'widen the timeline', act: () => panel.zoom(2) },
    panel.zoom && { keys: ['-'], shown: ['-'], says: 'narrow the timeline', act: () => panel.zoom(0.5) },
    { keys: ['m'], shown: ['m'], says: 'sound of the clean video', act: () => { clean.video.muted = !clean.video.muted; } },
    { keys: ['n'], shown: ['n'], says: 'next video of the cell', act: () => change(data.after) },
    { keys: ['p'], shown: ['p'], says: 'video before', act: () => change(data.before) },
  ].filter(Boolean);

  const other = el('select', { 'aria-label': 'Corruption', onchange: () => location.assign(`/runs/${data.run.key}/cells/${other.value}/videos/${data.video.key}${kept()}`) },
    data.cells.map((one) => el('option', { value: one.key, selected: one.key === data.cell.key }, one.title)));
  const link = (key, text) => (key
    ? el('a', { href: `/runs/${data.run.key}/cells/${data.cell.key}/videos/${key}` }, text)
    : el('span', { class: 'quiet' }, text));
  const places = el('span', { class: 'row near' });
  const alone = el('p', { class: 'quiet' });
  const next = two ? button('next corrupted', 'Next corrupted stretch', () => jump(1)) : null;

  put(main,
    el('div', { class: 'row' },
      el('h1', {}, data.video.id),
      el('div', { class: 'row near' }, el('label', { class: 'near' }, 'Cell ', other),
        places, shortcuts(keys))),
    alone,
    el('div', { class: two ? 'screens two' : 'screens' }, screens.map((screen) => screen.node)),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Players' },
      play, button('‹', 'One frame back', () => players.step(-1)), button('›', 'One frame on', () => players.step(1)),
      now, el('label', { class: 'near' }, el('span', { class: 'sr' }, 'Speed'), rate),
      next,
      panel.controls || null),
    panel.node,
  );

  players.addEventListener('time', shown);
  players.addEventListener('film', () => { panel.film(players.film); shown(); });
  players.addEventListener('state', () => {
    play.textContent = players.playing ? 'Pause' : 'Play';
    rate.value = String(players.rate);
    if (!players.playing) remember({ t: players.time.toFixed(3), rate: players.rate === 1 ? null : players.rate });
  });
  players.setRate(parameter('rate', 1));
  players.time = Math.max(0, parameter('t', 0));
  shown();
  placed();
  clean.load(data.media.clean);
  if (two) corrupted.load(data.media.corrupted);

  // Frames that the inspector found, where the run was mended: numbers become moments once the film is known.
  function mends(film) {
    if (!data.found_struck || !panel.mends) return;
    const at = (frame) => (frame >= film.frames ? film.end_s : film.times ? film.times[frame] : frame * film.rate[1] / film.rate[0]);
    panel.mends(data.found_struck.map(([first, stop]) => [at(first), at(stop)]));
  }

  function strikes(found) {
    struck = found === null ? [[0, players.duration]] : found;
    next.hidden = found === null; // all of it is
    panel.strikes(found);
    shown();
  }

  // Where the video stands among those of its cell is known once the run has been gone over.
  async function placed() {
    put(places, data.rank ? el('span', { class: 'quiet' }, `${data.rank} of ${data.of}`) : null,
      link(data.before, '‹ before'), link(data.after, 'next ›'));
    alone.hidden = !data.value || data.run.task === 'recognition';
    if (data.value) alone.textContent = `${data.run.metric} of this video alone: ${percent(data.value.clean)} % clean${two ? `, ${percent(data.value.corrupted)} % corrupted` : ''}`;
    if (data.surveyed) return;
    await new Promise((resolve) => setTimeout(resolve, 800));
    try {
      const told = await getJson(jsonAddress());
      for (const name of ['surveyed', 'rank', 'of', 'value', 'before', 'after']) data[name] = told[name];
      if (told.page === 'video') placed();
    } catch { /* the viewer has ended; what is shown stays */ }
  }

  function shown() {
    const frames = players.frames ? `, frame ${players.frame} of ${players.frames}` : '';
    now.textContent = `${clock(players.time)} / ${clock(players.duration || data.duration || 0)}${frames}`;
    panel.time(players.time, players.playing);
    for (const screen of screens) screen.show(players.frame);
    if (two) corrupted.badge.hidden = !struck.some(([start, end]) => players.time >= start - 1e-6 && players.time < end - 1e-6);
    if (!players.playing) remember({ t: players.time ? players.time.toFixed(3) : null });
  }

  // What stays when another cell or video is opened.
  function kept() {
    const query = new URLSearchParams();
    for (const name of ['score', 'tiou', 'rate']) if (parameter(name) !== null) query.set(name, parameter(name));
    return query.size ? `?${query}` : '';
  }
}

function detectionPanel(data, players, two) {
  const timeline = new Timeline({ seek: (time) => players.seek(time), hasCorrupted: two });
  const moments = data.run.task === 'moments';
  const words = moments ? ['true windows', 'moment lost', 'Windows', 'Sentence'] : ['actions', 'action lost', 'Detections', 'Class'];
  const all = el('input', { type: 'checkbox', checked: parameter('windows', '') === 'all', onchange: () => { sift(); remember({ windows: all.checked ? 'all' : null }); } });
  const highest = Math.max(1, ...data.clean.map((one) => one.score), ...data.corrupted.map((one) => one.score));
  const usual = Math.round(data.score * 100) / 100;
  const score = el('input', { type: 'range', min: 0, max: highest, step: 0.01, value: parameter('score', usual), 'aria-label': 'Least score of a detection' });
  const scoreShown = el('output', {});
  const tious = [...new Set([...data.tious, data.tiou, 0.3, 0.5, 0.7])].sort();
  const tiou = el('select', { 'aria-label': 'Overlap from which a detection is right' }, tious.map((one) =>
    el('option', { value: one, selected: one === data.tiou }, one.toFixed(2))));
  const counts = el('p', { class: 'counts' });
  const table = el('details', { class: 'table' }, el('summary', {}, `${words[2]} as a table`));
  score.addEventListener('input', () => { sift(); remember({ score: Number(score.value) === usual ? null : score.value }); });
  tiou.addEventListener('change', () => {
    remember({ tiou: tiou.value });
    addEventListener('addresschange', async () => {
      const next = await getJson(jsonAddress());
      if (next.page === 'video') { data = next; timeline.set({ data }); sift(); }
    }, { once: true });
  });
  table.addEventListener('toggle', rows);
  timeline.set({ data, duration: data.duration, zoom: parameter('zoom', 1) });
  sift();

  function sift() {
    timeline.set({ score: moments ? -Infinity : Number(score.value), firstOnly: moments && !all.checked });
    scoreShown.textContent = Number(score.value).toFixed(2);
    const clean = timeline.found('clean');
    const after = two ? timeline.found('corrupted') : null;
    const lost = two ? [...clean].filter((one) => !after.has(one)).length : 0;
    put(counts,
      `${data.actions.length} ${words[0]}; ${clean.size} found clean`,
      two ? `, ${after.size} corrupted; ` : '.', two ? el('strong', {}, `${lost} lost`) : '', two ? '.' : '',
      data.left_out ? ` The ${data.left_out} least sure detections are left out.` : '');
    rows();
  }

  function rows() {
    if (!table.open) return;
    const listed = [['Clean', 'clean'], ...(two ? [['Corrupted', 'corrupted']] : [])].flatMap(([name, side]) =>
      timeline.shown(side).map((one) => [name, one])).sort((a, b) => a[1].start - b[1].start);
    table.querySelector('.scroll')?.remove();
    table.append(el('div', { class: 'scroll' }, el('table', { class: 'list' },
      el('thead', {}, el('tr', {}, ['Video', words[3], 'Start', 'End', 'Score', 'tIoU', 'Kind'].map((name, i) =>
        el('th', { scope: 'col', class: i > 1 && i < 6 ? 'number' : null }, name)))),
      el('tbody', {}, listed.map(([name, one]) => el('tr', {},
        el('td', {}, name), el('td', {}, el('button', { type: 'button', class: 'plain', onclick: () => players.seek(one.start) }, one.label)),
        [one.start, one.end].map((value) => el('td', { class: 'number' }, value.toFixed(2))),
        el('td', { class: 'number' }, one.score.toFixed(3)), el('td', { class: 'number' }, one.tiou.toFixed(2)),
        el('td', {}, KINDS[one.kind] || one.kind)))))));
  }

  return {
    node: el('div', {}, timeline.node, counts,
      el('ul', { class: 'legend', 'aria-label': `Kinds of ${words[2].toLowerCase()}` },
        Object.entries(KINDS).filter(([kind]) => !moments || ['true_positive', 'localization', 'background'].includes(kind)).map(([kind, says]) => el('li', {}, el('span', { class: `swatch ${kind}` }), says)),
        two ? el('li', {}, el('span', { class: 'swatch lost' }), words[1]) : null,
        two ? el('li', {}, el('span', { class: 'swatch strike' }), 'corrupted frames') : null,
        data.found_struck ? el('li', {}, el('span', { class: 'swatch found' }), 'frames found damaged, and mended') : null),
      table),
    controls: [
      moments ? el('label', { class: 'near' }, all, ' all windows') : el('label', { class: 'near slider' }, 'Score ≥ ', score, scoreShown),
      el('label', { class: 'near' }, 'tIoU ≥ ', tiou)],
    zoom: (factor) => { timeline.set({ zoom: timeline.zoom * factor }); remember({ zoom: timeline.zoom === 1 ? null : timeline.zoom }); },
    film: (film) => timeline.set({ duration: Math.max(film.end_s, ...data.actions.map((one) => one.end)) }),
    strikes: (found) => timeline.set({ struck: found }),
    mends: (found) => timeline.set({ mended: found }),
    time: (time, playing) => timeline.setTime(time, playing),
  };
}
