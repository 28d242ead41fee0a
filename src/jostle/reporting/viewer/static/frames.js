// Frames that look alike, and which of them a classifier gets right: one strip an anchor.

import { el } from './dom.js';

export function framesPanel(data, players, two) {
  let places = null; // of frames by name, where the video is a folder of images
  const marks = [];
  const place = (frame) => (places ? places.get(frame.name) : frame.number);
  const square = (frame, side, anchor) => {
    const right = frame[`right_${side}`];
    const taken = frame[side] === null ? 'not looked at' : `taken for class ${frame[side]}`;
    const says = `${frame.name}: ${right ? 'right' : 'wrong'}, ${taken}, is ${frame.classes.join(' or ')}`;
    const node = el('button', { type: 'button', class: `shot ${right ? 'right' : 'wrong'}${anchor ? ' anchor' : ''}`, title: says, 'aria-label': says,
      onclick: () => { players.pause(); players.seekFrame(place(frame) ?? 0); } }, right ? '' : '×');
    marks.push([node, frame]);
    return node;
  };
  const strip = (set, side) => [...set.neighbours, set.anchor].sort((a, b) => a.number - b.number).map((frame) => square(frame, side, frame === set.anchor));
  return {
    node: el('section', { class: 'sets', 'aria-label': 'Sets of frames' },
      el('p', { class: 'verdict' }, `${data.sets.length} ${data.sets.length === 1 ? 'anchor' : 'anchors'}, with all neighbours within ${data.k} frames. A crossed frame is wrong; the outlined one is the anchor.`),
      data.sets.map((set) => el('div', { class: 'set' },
        el('h2', {}, set.anchor.name),
        el('div', { class: 'strip' }, el('span', { class: 'quiet' }, 'clean'), strip(set, 'clean')),
        two ? el('div', { class: 'strip' }, el('span', { class: 'quiet' }, 'corrupted'), strip(set, 'corrupted')) : null))),
    film(film) { if (film.names) places = new Map(film.names.map((name, i) => [name, i])); },
    strikes() {},
    time() { for (const [node, frame] of marks) node.classList.toggle('now', place(frame) === players.frame); },
  };
}
