// Page of breaking points: the frailty curve of each item, and the clip that breaks it beside the clean one.

import { el, formatTime, queryParameter, replaceContent, svg, updateQuery } from './dom.js';
import { installShortcuts } from './keys.js';
import { Players } from './players.js';
import { Screen } from './screen.js';

const CURVE_WIDTH = 260;
const CURVE_HEIGHT = 46;

export function renderProbePage(main, data) {
  const clean = new Screen('Clean', { onReady: (film) => players.setFilm(film) });
  const damaged = new Screen('Damaged', { onReady: (film) => players.setFilm(film) });
  const players = new Players([clean.video, damaged.video]);
  players.loop = true;
  let kind = data.kinds.find((entry) => entry.key === queryParameter('kind', '')) || data.kinds[0];
  let items = [];
  let selectedItem = null;

  const itemId = (item) => `${item.key}-${item.item}`;
  const kindSelect = el('select', { onchange: () => { kind = data.kinds.find((entry) => entry.key === kindSelect.value); listItems(); } },
    data.kinds.map((entry) => el('option', { value: entry.key, selected: entry === kind }, entry.title)));
  const rows = el('tbody', {});
  const play = el('button', { type: 'button', class: 'play', onclick: () => players.toggle() }, 'Play');
  const selectNeighbour = (offset) => { const index = items.indexOf(selectedItem) + offset; if (items[index]) selectItem(items[index]); };
  const shortcuts = [
    { keys: [' '], labels: ['space'], description: 'play or pause', action: () => players.toggle() },
    { keys: ['p'], labels: ['p'], description: 'previous item', action: () => selectNeighbour(-1) },
    { keys: ['n'], labels: ['n'], description: 'next item', action: () => selectNeighbour(1) },
    { keys: [','], labels: [','], description: 'one frame back', action: () => players.step(-1) },
    { keys: ['.'], labels: ['.'], description: 'one frame forward', action: () => players.step(1) },
  ];

  replaceContent(main,
    el('h1', {}, 'Breaking points'),
    el('p', { class: 'verdict' }, data.summary),
    el('p', { class: 'quiet small' }, `Lost: ${data.rule}.`, data.items.length < data.of ? ` The ${data.items.length} of ${data.of} that break first.` : ''),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Damage' }, el('label', { class: 'near' }, 'Kind of damage ', kindSelect)),
    el('div', { class: 'screens two' }, clean.node, damaged.node),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Players' }, play, installShortcuts(shortcuts)),
    el('div', { class: 'scroll' }, el('table', { class: 'list' },
      el('thead', {}, el('tr', {}, ['Item', 'Video', 'Lost to', 'At', 'Severity', 'Score with one damaged frame'].map((name) =>
        el('th', { scope: 'col' }, name)))),
      rows)),
    data.items.every((item) => item.monotone) ? null : el('p', { class: 'quiet small' }, '* More damage does not always lose this item.'),
  );
  players.addEventListener('time', () => { for (const screen of [clean, damaged]) screen.showFrame(players.frame); });
  players.addEventListener('state', () => { play.textContent = players.playing ? 'Pause' : 'Play'; });
  players.setRate(1);
  listItems();

  function listItems() {
    items = data.items.filter((item) => item.kind === kind.kind);
    replaceContent(rows, items.map((item) => el('tr', { 'data-item': itemId(item) },
      el('th', { scope: 'row' }, el('button', { type: 'button', class: 'plain', onclick: () => selectItem(item) }, item.text || item.label || `item ${item.item}`)),
      el('td', {}, item.video),
      el('td', { class: 'number' }, item.frames === null ? 'nothing' : `${item.frames} ${item.frames === 1 ? 'frame' : 'frames'}`, item.monotone ? null : ' *'),
      el('td', { class: 'number' }, item.position === null ? '' : formatTime(item.position / item.fps)),
      el('td', { class: 'number' }, item.severity === null ? '' : item.severity),
      el('td', {}, renderCurve(item)))));
    const requestedId = queryParameter('item', '');
    selectItem(items.find((item) => itemId(item) === requestedId) || items[0]);
    updateQuery({ kind: kind.key });
  }

  function selectItem(item) {
    if (!item) return;
    selectedItem = item;
    for (const row of rows.children) row.classList.toggle('selected', row.dataset.item === itemId(item));
    const weakest = item.curve.positions[item.curve.scores.indexOf(Math.min(...item.curve.scores))];
    const first = item.position === null ? weakest : item.position;
    const frames = Math.min(item.frames === null ? item.length : item.frames, 1000);
    const start = item.frames === null ? item.curve.positions[0] : first;
    const severity = item.severity === null ? 1 : item.severity;
    players.pause();
    players.film = null;
    players.time = 0;
    clean.load(`${data.media}/${data.clean}-0-${start}-${frames}/${item.key}`);
    damaged.load(`${data.media}/${kind.key}-${severity}-${start}-${frames}/${item.key}`);
    replaceContent(damaged.caption, 'Damaged', el('span', { class: 'quiet' }, item.frames === null ? ' all frames, and still right' : ` ${frames} ${frames === 1 ? 'frame' : 'frames'} of ${kind.title}`));
    updateQuery({ item: itemId(item) });
  }

  // The curve over the positions of the item; below it the positions that lose it.
  function renderCurve(item) {
    const { positions, scores, lost } = item.curve;
    const low = Math.min(data.threshold, ...scores);
    const high = Math.max(item.clean, ...scores, low + 1e-9);
    const span = Math.max(positions[positions.length - 1] - positions[0], 1);
    const x = (position) => (CURVE_WIDTH * (position - positions[0])) / span;
    const y = (score) => 2 + (CURVE_HEIGHT - 12) * (1 - (score - low) / (high - low));
    const label = `Score from ${Math.min(...scores).toFixed(2)} to ${Math.max(...scores).toFixed(2)}, clean ${item.clean.toFixed(2)}; lost at ${lost.length} of ${positions.length} positions`;
    return svg('svg', { class: 'frailty', viewBox: `0 0 ${CURVE_WIDTH} ${CURVE_HEIGHT}`, width: CURVE_WIDTH, height: CURVE_HEIGHT, role: 'img', 'aria-label': label },
      svg('line', { class: 'limit', x1: 0, x2: CURVE_WIDTH, y1: y(data.threshold), y2: y(data.threshold) }),
      svg('polyline', { class: 'score', points: positions.map((position, i) => `${x(position).toFixed(1)},${y(scores[i]).toFixed(1)}`).join(' ') }),
      lost.map((position) => svg('rect', { class: 'lost', x: Math.max(x(position) - 1, 0), y: CURVE_HEIGHT - 7, width: 3, height: 6 })));
  }
}
