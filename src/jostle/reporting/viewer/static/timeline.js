// Timeline of a video: true actions, clean and corrupted detections, corrupted and mended spans, and the playhead.

import { el, formatTime, svg } from './dom.js';

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
const MAX_LANES = 10;
const TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800];

export class Timeline {
  constructor({ seek, hasCorrupted }) {
    this.seek = seek;
    this.hasCorrupted = hasCorrupted;
    this.duration = 1;
    this.time = 0;
    this.zoom = 1;
    this.minScore = 0;
    this.firstOnly = false; // of the windows of a sentence, only the one that counts
    this.corruptedSpans = undefined; // null if the whole video is corrupted
    this.mendedSpans = null;
    this.data = { actions: [], clean: [], corrupted: [] };
    this.rowNames = el('div', { class: 'rows', 'aria-hidden': 'true' });
    this.drawing = svg('svg', { class: 'marks' });
    this.playhead = el('div', { class: 'playhead', 'aria-hidden': 'true' });
    this.slider = el('div', { class: 'inner', role: 'slider', tabindex: 0, 'aria-label': 'Timeline', 'aria-valuemin': 0 }, this.drawing, this.playhead);
    this.scroll = el('div', { class: 'lanes' }, this.slider);
    this.tooltip = el('div', { class: 'tooltip', role: 'tooltip', hidden: true });
    this.node = el('section', { class: 'timeline', 'aria-label': 'Timeline' }, this.rowNames, this.scroll, this.tooltip);
    this.slider.addEventListener('pointerdown', (event) => this.#startDrag(event));
    this.slider.addEventListener('pointermove', (event) => this.#updateTooltip(event));
    this.slider.addEventListener('pointerleave', () => { this.tooltip.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  /** Change some of the properties, and draw again. */
  update({ data, duration, corruptedSpans, mendedSpans, minScore, firstOnly, zoom }) {
    if (data) this.data = data;
    if (duration) this.duration = duration;
    if (corruptedSpans !== undefined) this.corruptedSpans = corruptedSpans;
    if (mendedSpans !== undefined) this.mendedSpans = mendedSpans;
    if (minScore !== undefined) this.minScore = minScore;
    if (firstOnly !== undefined) this.firstOnly = firstOnly;
    if (zoom !== undefined) this.zoom = Math.max(1, Math.min(64, zoom));
    this.draw();
  }

  /** Return the detections that pass the filter. */
  visibleDetections(side) { return this.data[side].filter((detection) => (this.firstOnly ? detection.first : detection.score >= this.minScore)); }

  /** Return the numbers of the actions that a visible detection has found. */
  foundActions(side) {
    return new Set(this.visibleDetections(side).filter((detection) => detection.kind === 'true_positive').map((detection) => detection.action));
  }

  setTime(time, playing) {
    this.time = time;
    const x = this.#x(time);
    this.playhead.style.transform = `translateX(${x}px)`;
    this.slider.setAttribute('aria-valuenow', time.toFixed(3));
    this.slider.setAttribute('aria-valuetext', `${formatTime(time)} of ${formatTime(this.duration)}`);
    const { scrollLeft, clientWidth } = this.scroll;
    if (this.zoom > 1 && (x < scrollLeft || x > scrollLeft + clientWidth)) {
      this.scroll.scrollLeft = playing ? x - clientWidth * 0.1 : x - clientWidth / 2;
    }
  }

  #x(time) { return (time / this.duration) * this.width; }

  draw() {
    this.width = Math.max(100, this.scroll.clientWidth * this.zoom);
    const foundClean = this.foundActions('clean');
    const foundCorrupted = this.hasCorrupted ? this.foundActions('corrupted') : null;
    this.bars = []; // with their positions, for the tooltip
    const marks = [];
    const rows = [];
    const mendedTop = this.hasCorrupted ? BAND : 0;
    let top = (this.mendedSpans ? mendedTop + BAND : BAND) + 4;
    const drawRow = (name, segments, drawSegment) => {
      const { positions, lanes } = packLanes(segments);
      rows.push([name, top]);
      positions.forEach(([segment, lane]) => {
        const y = top + lane * LANE;
        const x = this.#x(segment.start);
        const width = Math.max(2, this.#x(segment.end) - x);
        marks.push(drawSegment(segment, x, y, width));
        this.bars.push({ segment, row: name, x0: x, x1: x + width, y0: y, y1: y + LANE });
      });
      top += lanes * LANE + GAP;
    };
    const drawDetection = (detection, x, y, width) => drawBar(`detection ${detection.kind}`, detection.label, x, y, width);
    drawRow('Truth', this.data.actions.map((action, i) => ({ ...action, number: i })), (action, x, y, width) => {
      const isLost = foundCorrupted && foundClean.has(action.number) && !foundCorrupted.has(action.number);
      action.state = isLost ? 'lost' : (foundCorrupted || foundClean).has(action.number) ? 'found' : 'missed';
      return drawBar(`action ${action.state}`, action.label, x, y, width, action.state === 'lost');
    });
    drawRow('Clean', this.visibleDetections('clean'), drawDetection);
    if (this.hasCorrupted) drawRow('Corrupted', this.visibleDetections('corrupted'), drawDetection);
    const axis = top + 4;
    const height = axis + 16;
    const corruptedSpans = this.corruptedSpans === null ? [[0, this.duration]] : this.corruptedSpans || [];
    const drawSpan = ([start, end], minWidth, attributes) => svg('rect', { x: this.#x(start), width: Math.max(minWidth, this.#x(end) - this.#x(start)), ...attributes });
    this.drawing.setAttribute('width', this.width);
    this.drawing.setAttribute('height', height);
    this.drawing.replaceChildren(
      ...corruptedSpans.map((span) => drawSpan(span, 1.5, { class: 'corrupted-span', y: 0, height: axis })),
      ...corruptedSpans.map((span) => drawSpan(span, 3, { class: 'corrupted-cap', y: 1, height: BAND - 6, rx: 1 })),
      ...(this.mendedSpans || []).map((span) => drawSpan(span, 3, { class: 'mended-cap', y: mendedTop + 1, height: BAND - 6, rx: 1 })),
      ...this.#drawTicks(axis),
      ...marks);
    this.rowNames.replaceChildren(
      this.hasCorrupted ? el('span', { class: 'row-name first', style: { top: '0px' } }, 'Frames') : '',
      this.mendedSpans ? el('span', { class: 'row-name first', style: { top: `${mendedTop}px` } }, 'Found') : '',
      ...rows.map(([name, y]) => el('span', { class: 'row-name', style: { top: `${y}px` } }, name)));
    this.node.style.setProperty('--height', `${height}px`);
    this.slider.style.width = `${this.width}px`;
    this.slider.setAttribute('aria-valuemax', this.duration.toFixed(3));
    this.setTime(this.time, false);
  }

  #drawTicks(axis) {
    const step = TICKS.find((seconds) => this.#x(seconds) >= 64) || TICKS[TICKS.length - 1];
    const ticks = [];
    for (let t = 0; t <= this.duration + 1e-9; t += step) {
      const x = this.#x(t);
      if (x > this.width - 24) break;
      ticks.push(svg('line', { class: 'tick', x1: x, x2: x, y1: axis - 3, y2: axis + 2 }));
      ticks.push(svg('text', { class: 'tick-name', x: x + 2, y: axis + 13 }, step < 1 ? t.toFixed(1) : `${Math.floor(t / 60)}:${String(Math.round(t % 60)).padStart(2, '0')}`));
    }
    return ticks;
  }

  #pointerPosition(event) {
    const box = this.slider.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  #startDrag(event) {
    if (event.button) return;
    const seekTo = (pointer) => this.seek(Math.max(0, Math.min(1, this.#pointerPosition(pointer)[0] / this.width)) * this.duration);
    seekTo(event);
    this.slider.setPointerCapture(event.pointerId);
    const drag = (pointer) => { if (pointer.buttons) seekTo(pointer); };
    this.slider.addEventListener('pointermove', drag);
    this.slider.addEventListener('lostpointercapture', () => this.slider.removeEventListener('pointermove', drag), { once: true });
  }

  #updateTooltip(event) {
    const [x, y] = this.#pointerPosition(event);
    const bar = this.bars.findLast(({ x0, x1, y0, y1 }) => x >= x0 - 1 && x <= x1 + 1 && y >= y0 && y < y1);
    if (!bar) {
      this.tooltip.hidden = true;
      return;
    }
    this.tooltip.replaceChildren(...describeSegment(bar.row, bar.segment).map(([name, text]) =>
      el('div', {}, name ? el('span', { class: 'quiet' }, `${name} `) : null, text)));
    this.tooltip.hidden = false;
    const bounds = this.node.getBoundingClientRect();
    const left = Math.min(event.clientX - bounds.left + 14, bounds.width - this.tooltip.offsetWidth - 4);
    this.tooltip.style.transform = `translate(${Math.max(0, left)}px, ${event.clientY - bounds.top + 16}px)`;
  }
}

const STATES = { lost: 'found on clean video, lost under the corruption', found: 'found', missed: 'not found' };

function describeSegment(row, segment) {
  const span = ['', `${formatTime(segment.start)} to ${formatTime(segment.end)}, ${(segment.end - segment.start).toFixed(2)} s`];
  if (row === 'Truth') return [['', segment.label], span, ['', STATES[segment.state]]];
  return [['', segment.label], span, ['score', segment.score.toFixed(3)], ['tIoU', segment.tiou.toFixed(2)], ['kind', KINDS[segment.kind] || segment.kind]];
}

function drawBar(classes, label, x, y, width, crossed) {
  const letters = Math.floor((width - 6) / 6.1); // that fit into the bar
  const text = letters >= 2 ? (label.length <= letters ? label : `${label.slice(0, Math.max(1, letters - 1))}…`) : '';
  return svg('g', { class: classes },
    svg('rect', { x, y: y + 1.5, width, height: LANE - 3, rx: 2.5 }),
    crossed ? svg('path', { class: 'cross', d: `M${x},${y + LANE - 1.5}L${x + width},${y + 1.5}` }) : null,
    text ? svg('text', { x: x + 4, y: y + LANE - 5 }, text) : null);
}

/** Assign overlapping segments to lanes below one another, as far as there are lanes. */
function packLanes(segments) {
  const laneEnds = [];
  const positions = [...segments].sort((a, b) => a.start - b.start || b.end - a.end).map((segment) => {
    let lane = laneEnds.findIndex((end) => end <= segment.start + 1e-9);
    if (lane < 0) lane = laneEnds.length < MAX_LANES ? laneEnds.length : MAX_LANES - 1;
    laneEnds[lane] = Math.max(laneEnds[lane] || 0, segment.end);
    return [segment, lane];
  });
  return { positions, lanes: Math.max(1, laneEnds.length) };
}
