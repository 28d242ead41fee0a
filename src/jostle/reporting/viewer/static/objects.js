// Panel of object detection runs: true and predicted boxes over the players, and one button per annotated frame.

import { el, queryParameter, replaceContent, svg, updateQuery } from './dom.js';

const DEFAULT_SCORE = 0.3;

export function createObjectsPanel(data, players, screens) {
  const { classes, frames, k } = data.objects;
  const sides = ['clean', 'corrupted'];
  const overlays = screens.map((screen) => {
    const node = svg('svg', { class: 'boxes', 'aria-hidden': 'true' });
    screen.node.querySelector('.frame').append(node);
    return node;
  });
  let indexByName = null; // of the frames, where the video is a folder of images
  const frameIndex = (frame) => (indexByName ? indexByName.get(frame.name) : frame.number);
  const buttons = [];
  const createButton = (frame) => {
    const label = `${frame.name}: ${frame.true.length} objects${frame.anchor ? ', an anchor' : ''}`;
    const node = el('button', { type: 'button', class: `shot plain${frame.anchor ? ' anchor' : ''}`, title: label, 'aria-label': label,
      onclick: () => { players.pause(); players.seekFrame(frameIndex(frame) ?? 0); } });
    buttons.push([node, frame]);
    return node;
  };
  const score = el('input', { type: 'range', min: 0, max: 1, step: 0.01, value: queryParameter('score', DEFAULT_SCORE), 'aria-label': 'Lowest score', oninput: () => { updateQuery({ score: score.value }); drawBoxes(); } });
  const scoreLabel = el('output', { class: 'number' });
  const summary = el('p', { class: 'verdict', role: 'status' });

  const renderBox = (row, kind) => {
    const [label, left, top, right, bottom, value] = row;
    const text = value === undefined ? classes[label] : `${classes[label]} ${value.toFixed(2)}`;
    return svg('g', { class: kind },
      svg('rect', { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) }, svg('title', {}, text)),
      kind === 'predicted' ? svg('text', { x: left, y: top - 1 }, text) : null);
  };

  function drawBoxes() {
    scoreLabel.textContent = Number(score.value).toFixed(2);
    const current = frames.find((frame) => frameIndex(frame) === players.frame);
    const predictions = (side) => current[side].filter((row) => row[5] >= Number(score.value));
    overlays.forEach((node, i) => {
      replaceContent(node, current ? current.true.map((row) => renderBox(row, 'true')) : null, current ? predictions(sides[i]).map((row) => renderBox(row, 'predicted')) : null);
    });
    summary.textContent = current
      ? `${current.name}: ${current.true.length} objects; found ${predictions('clean').length} clean${overlays.length > 1 ? `, ${predictions('corrupted').length} corrupted` : ''}.`
      : 'The frames below have boxes; choose one.';
    for (const [node, frame] of buttons) node.classList.toggle('current', frame === current);
  }

  const strips = [];
  for (const frame of [...frames].sort((a, b) => a.number - b.number)) {
    const last = strips[strips.length - 1];
    if (last && frame.number - last[last.length - 1].number <= k) last.push(frame);
    else strips.push([frame]);
  }
  return {
    node: el('section', { class: 'sets', 'aria-label': 'Frames with objects' }, summary,
      el('p', { class: 'quiet' }, 'Dashed boxes are true, solid ones predicted. An outlined frame is an anchor.'),
      strips.map((strip) => el('div', { class: 'strip' }, strip.map(createButton)))),
    controls: [el('label', { class: 'near slider' }, 'Score ≥ ', score, scoreLabel)],
    setFilm(film) {
      if (film.names) indexByName = new Map(film.names.map((name, i) => [name, i]));
      for (const node of overlays) {
        node.setAttribute('viewBox', `0 0 ${film.size[0]} ${film.size[1]}`);
        node.style.setProperty('--text', `${Math.max(film.size[0], film.size[1]) / 26}px`);
      }
      drawBoxes();
    },
    setCorruptedSpans() {},
    setTime: drawBoxes,
  };
}
