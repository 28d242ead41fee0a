// The shared timeline: what is there, what was found before and after, where the corruption strikes, which frames the
// inspector found, and now.

import { clock, el, svg } from './dom.js';

export const KINDS = {
  true_positive: 'right',
  double_detection: 'double detection',
  wrong_label: 'wrong label',
  localization: 'localization',
  confusion: 'confusion',
  background: 'background',
};
const LANE = 17;
const GAP = 10;
const BAND = 16;
const MOST_LANES = 10;
const TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800];

export class Timeline {
  constructor({ seek, hasCorrupted }) {
    this.seek = seek;
    this.hasCorrupted = hasCorrupted;
    this.duration = 1;
    this.time = 0;
    this.zoom = 1;
    this.score = 0;
    this.firstOnly = false; // of the windows of a sentence, only the one that counts
    this.struck = undefined;
    this.mended = null;
    this.data = { actions: [], clean: [], corrupted: [] };
    this.labels = el('div', { class: 'rows', 'aria-hidden': 'true' });
    this.picture = svg('svg', { class: 'marks' });
    this.head = el('div', { class: 'playhead', 'aria-hidden': 'true' });
    this.inner = el('div', { class: 'inner', role: 'slider', tabindex: 0, 'aria-label': 'Timeline', 'aria-valuemin': 0 }, this.picture, this.head);
    this.scroll = el('div', { class: 'lanes' }, this.inner);
    this.tip = el('div', { class: 'tip', role: 'tooltip', hidden: true });
    this.node = el('section', { class: 'timeline', 'aria-label': 'Timeline' }, this.labels, this.scroll, this.tip);
    this.inner.addEventListener('pointerdown', (event) => this.#press(event));
    this.inner.addEventListener('pointermove', (event) => this.#hover(event));
    this.inner.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  set({ data, duration, struck, mended, score, firstOnly, zoom }) {
    if (data) this.data = data;
    if (duration) this.duration = duration;
    if (struck !== undefined) this.struck = struck;
    if (mended !== undefined) this.mended = mended;
    if (score !== undefined) this.score = score;
    if (firstOnly !== undefined) this.firstOnly = firstOnly;
    if (zoom !== undefined) this.zoom = Math.max(1, Math.min(64, zoom));
    this.draw();
  }

  /** Detections that are sure enough. */
  shown(side) { return this.data[side].filter((one) => (this.firstOnly ? one.first : one.score >= this.score)); }

  /** Which actions a detection that is sure enough has found. */
  found(side) {
    return new Set(this.shown(side).filter((one) => one.kind === 'true_positive').map((one) => one.action));
  }

  setTime(time, playing) {
    this.time = time;
    const x = this.#x(time);
    this.head.style.transform = `translateX(${x}px)`;
    this.inner.setAttribute('aria-valuenow', time.toFixed(3));
    this.inner.setAttribute('aria-valuetext', `${clock(time)} of ${clock(this.duration)}`);
    const { scrollLeft, clientWidth } = this.scroll;
    if (this.zoom > 1 && (x < scrollLeft || x > scrollLeft + clientWidth)) {
      this.scroll.scrollLeft = playing ? x - clientWidth * 0.1 : x - clientWidth / 2;
    }
  }

  #x(time) { return (time / this.duration) * this.width; }

  draw() {
    this.width = Math.max(100, this.scroll.clientWidth * this.zoom);
    const lost = this.hasCorrupted ? this.found('corrupted') : null;
    const clean = this.found('clean');
    this.lanes = [];
    const marks = [];
    const second = this.hasCorrupted ? BAND : 0;
    let top = (this.mended ? second + BAND : BAND) + 4;
    const rows = [];
    const lane = (name, items, draw) => {
      const packed = pack(items);
      rows.push([name, top, packed.lanes * LANE]);
      packed.placed.forEach(([one, at]) => {
        const y = top + at * LANE;
        const x = this.#x(one.start);
        const wide = Math.max(2, this.#x(one.end) - x);
        marks.push(draw(one, x, y, wide));
        this.lanes.push({ one, name, x0: x, x1: x + wide, y0: y, y1: y + LANE });
      });
      top += packed.lanes * LANE + GAP;
    };
    lane('Truth', this.data.actions.map((action, i) => ({ ...action, number: i })), (one, x, y, wide) => {
      const state = lost && clean.has(one.number) && !lost.has(one.number) ? 'lost' : (lost || clean).has(one.number) ? 'found' : 'missed';
      one.state = state;
      return bar(`action ${state}`, one.label, x, y, wide, state === 'lost');
    });
    lane('Clean', this.shown('clean'), (one, x, y, wide) => bar(`detection ${one.kind}`, one.label, x, y, wide));
    if (this.hasCorrupted) lane('Corrupted', this.shown('corrupted'), (one, x, y, wide) => bar(`detection ${one.kind}`, one.label, x, y, wide));
    const axis = top + 4;
    const height = axis + 16;
    const strikes = this.struck === null ? [[0, this.duration]] : this.struck || [];
    this.picture.setAttribute('width', this.width);
    this.picture.setAttribute('height', height);
    this.picture.replaceChildren(
      ...strikes.map(([start, end]) => svg('rect', { class: 'strike', x: this.#x(start), y: 0, width: Math.max(1.5, this.#x(end) - this.#x(start)), height: axis })),
      ...strikes.map(([start, end]) => svg('rect', { class: 'strike-cap', x: this.#x(start), y: 1, width: Math.max(3, this.#x(end) - this.#x(start)), height: BAND - 6, rx: 1 })),
      ...(this.mended || []).map(([start, end]) => svg('rect', { class: 'found-cap', x: this.#x(start), y: second + 1, width: Math.max(3, this.#x(end) - this.#x(start)), height: BAND - 6, rx: 1 })),
      ...this.#ticks(axis),
      ...marks);
    this.labels.replaceChildren(
      this.hasCorrupted ? el('span', { class: 'row-name first', style: { top: '0px' } }, 'Frames') : '',
      this.mended ? el('span', { class: 'row-name first', style: { top: `${second}px` } }, 'Found') : '',
      ...rows.map(([name, y]) => el('span', { class: 'row-name', style: { top: `${y}px` } }, name)));
    this.node.style.setProperty('--height', `${height}px`);
    this.inner.style.width = `${this.width}px`;
    this.inner.setAttribute('aria-valuemax', this.duration.toFixed(3));
    this.setTime(this.time, false);
  }

  #ticks(axis) {
    const step = TICKS.find((one) => this.#x(one) >= 64) || TICKS[TICKS.length - 1];
    const made = [];
    for (let t = 0; t <= this.duration + 1e-9; t += step) {
      const x = this.#x(t);
      if (x > this.width - 24) break;
      made.push(svg('line', { class: 'tick', x1: x, x2: x, y1: axis - 3, y2: axis + 2 }));
      made.push(svg('text', { class: 'tick-name', x: x + 2, y: axis + 13 }, step < 1 ? t.toFixed(1) : `${Math.floor(t / 60)}:${String(Math.round(t % 60)).padStart(2, '0')}`));
    }
    return made;
  }

  #at(event) {
    const box = this.inner.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  #press(event) {
    if (event.button) return;
    const move = (to) => this.seek(Math.max(0, Math.min(1, this.#at(to)[0] / this.width)) * this.duration);
    move(event);
    this.inner.setPointerCapture(event.pointerId);
    const drag = (to) => { if (to.buttons) move(to); };
    this.inner.addEventListener('pointermove', drag);
    this.inner.addEventListener('lostpointercapture', () => this.inner.removeEventListener('pointermove', drag), { once: true });
  }

  #hover(event) {
    const [x, y] = this.#at(event);
    const hit = this.lanes.findLast((one) => x >= one.x0 - 1 && x <= one.x1 + 1 && y >= one.y0 && y < one.y1);
    if (!hit) {
      this.tip.hidden = true;
      return;
    }
    this.tip.replaceChildren(...describe(hit.name, hit.one).map(([name, text]) =>
      el('div', {}, name ? el('span', { class: 'quiet' }, `${name} `) : null, text)));
    this.tip.hidden = false;
    const home = this.node.getBoundingClientRect();
    const left = Math.min(event.clientX - home.left + 14, home.width - this.tip.offsetWidth - 4);
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${event.clientY - home.top + 16}px)`;
  }
}

export function describe(side, one) {
  const span = ['', `${clock(one.start)} to ${clock(one.end)}, ${(one.end - one.start).toFixed(2)} s`];
  if (side === 'Truth') {
    const said = { lost: 'found on clean video, lost under the corruption', found: 'found', missed: 'not found' }[one.state];
    return [['', one.label], span, ['', said]];
  }
  return [['', one.label], span, ['score', one.score.toFixed(3)], ['tIoU', one.tiou.toFixed(2)], ['kind', KINDS[one.kind] || one.kind]];
}

function bar(names, label, x, y, wide, crossed) {
  const room = Math.floor((wide - 6) / 6.1);
  const text = room >= 2 ? (label.length <= room ? label : `${label.slice(0, Math.max(1, room - 1))}…`) : '';
  return svg('g', { class: names },
    svg('rect', { x, y: y + 1.5, width: wide, height: LANE - 3, rx: 2.5 }),
    crossed ? svg('path', { class: 'cross', d: `M${x},${y + LANE - 1.5}L${x + wide},${y + 1.5}` }) : null,
    text ? svg('text', { x: x + 4, y: y + LANE - 5 }, text) : null);
}

// Bars that overlap go below one another, as far as there are lanes.
function pack(items) {
  const ends = [];
  const placed = [...items].sort((a, b) => a.start - b.start || b.end - a.end).map((one) => {
    let lane = ends.findIndex((end) => end <= one.start + 1e-9);
    if (lane < 0) lane = ends.length < MOST_LANES ? ends.length : MOST_LANES - 1;
    ends[lane] = Math.max(ends[lane] || 0, one.end);
    return [one, lane];
  });
  return { placed, lanes: Math.max(1, ends.length) };
}
