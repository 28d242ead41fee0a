// Panel of frame classification runs: one strip of similar frames per anchor, marked by whether the classifier is right.

import { el } from './dom.js';

export function createFramesPanel(data, players, hasCorrupted) {
  let indexByName = null; // of the frames, where the video is a folder of images
  const buttons = [];
  const frameIndex = (frame) => (indexByName ? indexByName.get(frame.name) : frame.number);
  const createButton = (frame, side, isAnchor) => {
    const right = frame[`right_${side}`];
    const prediction = frame[side] === null ? 'not evaluated' : `predicted class ${frame[side]}`;
    const label = `${frame.name}: ${right ? 'right' : 'wrong'}, ${prediction}, true class ${frame.classes.join(' or ')}`;
    const node = el('button', { type: 'button', class: `shot ${right ? 'right' : 'wrong'}${isAnchor ? ' anchor' : ''}`, title: label, 'aria-label': label,
      onclick: () => { players.pause(); players.seekFrame(frameIndex(frame) ?? 0); } }, right ? '' : '×');
    buttons.push([node, frame]);
    return node;
  };
  const createStrip = (set, side) => [...set.neighbours, set.anchor].sort((a, b) => a.number - b.number).map((frame) => createButton(frame, side, frame === set.anchor));
  return {
    node: el('section', { class: 'sets', 'aria-label': 'Sets of frames' },
      el('p', { class: 'verdict' }, `${data.sets.length} ${data.sets.length === 1 ? 'anchor' : 'anchors'}, with all neighbours within ${data.k} frames. A crossed frame is wrong; the outlined one is the anchor.`),
      data.sets.map((set) => el('div', { class: 'set' },
        el('h2', {}, set.anchor.name),
        el('div', { class: 'strip' }, el('span', { class: 'quiet' }, 'clean'), createStrip(set, 'clean')),
        hasCorrupted ? el('div', { class: 'strip' }, el('span', { class: 'quiet' }, 'corrupted'), createStrip(set, 'corrupted')) : null))),
    setFilm(film) { if (film.names) indexByName = new Map(film.names.map((name, i) => [name, i])); },
    setCorruptedSpans() {},
    setTime() { for (const [node, frame] of buttons) node.classList.toggle('current', frameIndex(frame) === players.frame); },
  };
}
