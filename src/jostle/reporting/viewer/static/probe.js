// Breaking points: the frailty curve of each item over its timeline, and the clip that breaks it beside the clean one.

import { clock, el, parameter, put, remember, svg } from './dom.js';
import { shortcuts } from './keys.js';
import { Players } from './players.js';
import { Screen } from './screen.js';

const WIDE = 260;
const TALL = 46;

export function probePage(main, data) {
  const clean = new Screen('Clean', { onready: (film) => players.setFilm(film) });
  const damaged = new Screen('Damaged', { onready: (film) => players.setFilm(film) });
  const players = new Players([clean.video, damaged.video]);
  players.loop = true;
  let kind = data.kinds.find((one) => one.key === parameter('kind', '')) || data.kinds[0];
  let items = [];
  let chosen = null;

  const kinds = el('select', { onchange: () => { kind = data.kinds.find((one) => one.key === kinds.value); fill(); } },
    data.kinds.map((one) => el('option', { value: one.key, selected: one === kind }, one.title)));
  const rows = el('tbody', {});
  const play = el('button', { type: 'button', class: 'play', onclick: () => players.toggle() }, 'Play');
  const turn = (by) => { const at = items.indexOf(chosen) + by; if (items[at]) choose(items[at]); };
  const keys = [
    { keys: [' '], shown: ['space'], says: 'play or pause', act: () => players.toggle() },
    { keys: ['p'], shown: ['p'], says: 'item before', act: () => turn(-1) },
    { keys: ['n'], shown: ['n'], says: 'next item', act: () => turn(1) },
    { keys: [','], shown: [','], says: 'one frame back', act: () => players.step(-1) },
    { keys: ['.'], shown: ['.'], says: 'one frame on', act: () => players.step(1) },
  ];

  put(main,
    el('h1', {}, 'Breaking points'),
    el('p', { class: 'verdict' }, data.summary),
    el('p', { class: 'quiet small' }, `Lost: ${data.rule}.`, data.items.length < data.of ? ` The ${data.items.length} of ${data.of} that break first.` : ''),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'What is shown' }, el('label', { class: 'near' }, 'Kind of damage ', kinds)),
    el('div', { class: 'screens two' }, clean.node, damaged.node),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Players' }, play, shortcuts(keys)),
    el('div', { class: 'scroll' }, el('table', { class: 'list' },
      el('thead', {}, el('tr', {}, ['Item', 'Video', 'Lost to', 'At', 'Severity', 'Score with one damaged frame'].map((name) =>
        el('th', { scope: 'col' }, name)))),
      rows)),
    data.items.every((one) => one.monotone) ? null : el('p', { class: 'quiet small' }, '* More damage does not always lose this item.'),
  );
  players.addEventListener('time', () => { for (const screen of [clean, damaged]) screen.show(players.frame); });
  players.addEventListener('state', () => { play.textContent = players.playing ? 'Pause' : 'Play'; });
  players.setRate(1);
  fill();

  function fill() {
    items = data.items.filter((one) => one.kind === kind.kind);
    put(rows, items.map((one) => el('tr', { 'data-item': `${one.key}-${one.item}` },
      el('th', { scope: 'row' }, el('button', { type: 'button', class: 'plain', onclick: () => choose(one) }, one.text || one.label || `item ${one.item}`)),
      el('td', {}, one.video),
      el('td', { class: 'number' }, one.frames === null ? 'nothing' : `${one.frames} ${one.frames === 1 ? 'frame' : 'frames'}`, one.monotone ? null : ' *'),
      el('td', { class: 'number' }, one.position === null ? '' : clock(one.position / one.fps)),
      el('td', { class: 'number' }, one.severity === null ? '' : one.severity),
      el('td', {}, curve(one)))));
    const known = parameter('item', '');
    choose(items.find((one) => `${one.key}-${one.item}` === known) || items[0]);
    remember({ kind: kind.key });
  }

  function choose(one) {
    if (!one) return;
    chosen = one;
    for (const row of rows.children) row.classList.toggle('chosen', row.dataset.item === `${one.key}-${one.item}`);
    const weakest = one.curve.positions[one.curve.scores.indexOf(Math.min(...one.curve.scores))];
    const first = one.position === null ? weakest : one.position;
    const frames = Math.min(one.frames === null ? one.length : one.frames, 1000);
    const start = one.frames === null ? one.curve.positions[0] : first;
    const severity = one.severity === null ? 1 : one.severity;
    players.pause();
    players.film = null;
    players.time = 0;
    clean.load(`${data.media}/${data.clean}-0-${start}-${frames}/${one.key}`);
    damaged.load(`${data.media}/${kind.key}-${severity}-${start}-${frames}/${one.key}`);
    put(damaged.caption, 'Damaged', el('span', { class: 'quiet' }, one.frames === null ? ' all of it, and still right' : ` ${frames} ${frames === 1 ? 'frame' : 'frames'} of ${kind.title}`));
    remember({ item: `${one.key}-${one.item}` });
  }

  // The curve over the positions of the item; below it the positions that lose it.
  function curve(one) {
    const { positions, scores, lost } = one.curve;
    const low = Math.min(data.threshold, ...scores);
    const high = Math.max(one.clean, ...scores, low + 1e-9);
    const span = Math.max(positions[positions.length - 1] - positions[0], 1);
    const x = (position) => (WIDE * (position - positions[0])) / span;
    const y = (score) => 2 + (TALL - 12) * (1 - (score - low) / (high - low));
    const said = `Score from ${Math.min(...scores).toFixed(2)} to ${Math.max(...scores).toFixed(2)}, clean ${one.clean.toFixed(2)}; lost at ${lost.length} of ${positions.length} positions`;
    return svg('svg', { class: 'frailty', viewBox: `0 0 ${WIDE} ${TALL}`, width: WIDE, height: TALL, role: 'img', 'aria-label': said },
      svg('line', { class: 'limit', x1: 0, x2: WIDE, y1: y(data.threshold), y2: y(data.threshold) }),
      svg('polyline', { class: 'score', points: positions.map((position, i) => `${x(position).toFixed(1)},${y(scores[i]).toFixed(1)}`).join(' ') }),
      lost.map((position) => svg('rect', { class: 'lost', x: Math.max(x(position) - 1, 0), y: TALL - 7, width: 3, height: 6 })));
  }
}
