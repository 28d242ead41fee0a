// What a recogniser said of a video: scores of classes, clean and corrupted.

import { el } from './dom.js';

export function answersPanel(data, two) {
  const answers = data.answers;
  const values = answers.scores.flatMap((one) => [one.clean, one.corrupted]);
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low + 1e-9);
  const wide = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const guesses = answers.k === 1 ? 'first guess' : `first ${answers.k} guesses`;
  const said = (right) => (right ? 'right' : 'wrong');
  const bar = (value, side) => el('span', { class: 'score' },
    el('span', { class: 'bars' }, el('span', { class: `bar ${side}`, style: { width: wide(value) } })),
    el('span', { class: 'number' }, value.toFixed(3)));
  return {
    node: el('section', { 'aria-label': 'Scores of classes' },
      el('p', { class: 'verdict' }, `By its ${guesses} the model is ${said(answers.right_clean)} on the clean video`,
        two ? ` and ${said(answers.right_corrupted)} on the corrupted one.` : '.'),
      el('div', { class: 'scroll' }, el('table', { class: 'list answers' },
        el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Class'), el('th', { scope: 'col' }, 'Clean'), two ? el('th', { scope: 'col' }, 'Corrupted') : null)),
        el('tbody', {}, answers.scores.map((one) => el('tr', { class: one.true ? 'true' : null },
          el('th', { scope: 'row' }, one.label, one.true ? el('span', { class: 'tag' }, 'true class') : null),
          el('td', {}, bar(one.clean, 'clean')), two ? el('td', {}, bar(one.corrupted, 'corrupted')) : null))))),
      answers.classes > answers.scores.length ? el('p', { class: 'quiet small' }, `${answers.scores.length} of ${answers.classes} classes: the true ones, and the highest of either video.`) : null),
    film() {}, strikes() {}, time() {},
  };
}
