// Panel of recognition runs: class scores of a video, clean and corrupted.

import { el } from './dom.js';

export function createAnswersPanel(data, hasCorrupted) {
  const answers = data.answers;
  const values = answers.scores.flatMap((entry) => [entry.clean, entry.corrupted]);
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low + 1e-9);
  const barWidth = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const guesses = answers.k === 1 ? 'first guess' : `first ${answers.k} guesses`;
  const verdict = (right) => (right ? 'right' : 'wrong');
  const renderBar = (value, side) => el('span', { class: 'score' },
    el('span', { class: 'bars' }, el('span', { class: `bar ${side}`, style: { width: barWidth(value) } })),
    el('span', { class: 'number' }, value.toFixed(3)));
  return {
    node: el('section', { 'aria-label': 'Class scores' },
      el('p', { class: 'verdict' }, `By its ${guesses} the model is ${verdict(answers.right_clean)} on the clean video`,
        hasCorrupted ? ` and ${verdict(answers.right_corrupted)} on the corrupted one.` : '.'),
      el('div', { class: 'scroll' }, el('table', { class: 'list answers' },
        el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Class'), el('th', { scope: 'col' }, 'Clean'), hasCorrupted ? el('th', { scope: 'col' }, 'Corrupted') : null)),
        el('tbody', {}, answers.scores.map((entry) => el('tr', { class: entry.true ? 'true' : null },
          el('th', { scope: 'row' }, entry.label, entry.true ? el('span', { class: 'tag' }, 'true class') : null),
          el('td', {}, renderBar(entry.clean, 'clean')), hasCorrupted ? el('td', {}, renderBar(entry.corrupted, 'corrupted')) : null))))),
      answers.classes > answers.scores.length ? el('p', { class: 'quiet small' }, `${answers.scores.length} of ${answers.classes} classes: the true ones, and the highest of either video.`) : null),
    setFilm() {}, setCorruptedSpans() {}, setTime() {},
  };
}
