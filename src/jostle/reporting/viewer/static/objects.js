// Objects in frames that look alike: boxes over the players, true and found, and one button a frame to get there.

import { el, parameter, put, remember, svg } from './dom.js';

const SURE = 0.3;

export function objectsPanel(data, players, screens) {
  const { classes, frames, k } = data.objects;
  const sides = ['clean', 'corrupted'];
  const over = screens.map((screen) => {
    const node = svg('svg', { class: 'boxes', 'aria-hidden': 'true' });
    screen.node.querySelector('.frame').append(node);
    return node;
  });
  let places = null; // of frames by name, where the video is a folder of images
  const place = (frame) => (places ? places.get(frame.name) : frame.number);
  const marks = [];
  const button = (frame) => {
    const says = `${frame.name}: ${frame.true.length} objects${frame.anchor ? ', an anchor' : ''}`;
    const node = el('button', { type: 'button', class: `shot plain${frame.anchor ? ' anchor' : ''}`, title: says, 'aria-label': says,
      onclick: () => { players.pause(); players.seekFrame(place(frame) ?? 0); } });
    marks.push([node, frame]);
    return node;
  };
  const score = el('input', { type: 'range', min: 0, max: 1, step: 0.01, value: parameter('score', SURE), 'aria-label': 'Least score', oninput: () => { remember({ score: score.value }); draw(); } });
  const sure = el('output', { class: 'number' });
  const found = el('p', { class: 'verdict', role: 'status' });

  const rectangle = (row, kind) => {
    const [label, left, top, right, bottom, value] = row;
    const says = value === undefined ? classes[label] : `${classes[label]} ${value.toFixed(2)}`;
    return svg('g', { class: kind },
      svg('rect', { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) }, svg('title', {}, says)),
      kind === 'found' ? svg('text', { x: left, y: top - 1 }, says) : null);
  };

  function draw() {
    sure.textContent = Number(score.value).toFixed(2);
    const now = frames.find((frame) => place(frame) === players.frame);
    over.forEach((node, i) => {
      const shown = now ? now[sides[i]].filter((row) => row[5] >= Number(score.value)) : [];
      put(node, now ? now.true.map((row) => rectangle(row, 'true')) : null, shown.map((row) => rectangle(row, 'found')));
    });
    const count = (side) => now[side].filter((row) => row[5] >= Number(score.value)).length;
    found.textContent = now
      ? `${now.name}: ${now.true.length} objects; found ${count('clean')} clean${over.length > 1 ? `, ${count('corrupted')} corrupted` : ''}.`
      : 'Boxes are known in the frames below; choose one.';
    for (const [node, frame] of marks) node.classList.toggle('now', frame === now);
  }

  const strips = [];
  for (const frame of [...frames].sort((a, b) => a.number - b.number)) {
    const last = strips[strips.length - 1];
    if (last && frame.number - last[last.length - 1].number <= k) last.push(frame);
    else strips.push([frame]);
  }
  return {
    node: el('section', { class: 'sets', 'aria-label': 'Frames with objects' }, found,
      el('p', { class: 'quiet' }, 'Dashed boxes are true, full ones found. An outlined frame is an anchor.'),
      strips.map((strip) => el('div', { class: 'strip' }, strip.map(button)))),
    controls: [el('label', { class: 'near slider' }, 'Score ≥ ', score, sure)],
    film(film) {
      if (film.names) places = new Map(film.names.map((name, i) => [name, i]));
      for (const node of over) {
        node.setAttribute('viewBox', `0 0 ${film.size[0]} ${film.size[1]}`);
        node.style.setProperty('--text', `${Math.max(film.size[0], film.size[1]) / 26}px`);
      }
      draw();
    },
    strikes() {},
    time: draw,
  };
}
