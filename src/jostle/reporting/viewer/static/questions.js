// Panel of question answering runs: the options of each question with their probabilities, clean and corrupted.

import { el, formatTime } from './dom.js';

export function createQuestionsPanel(data, players, hasCorrupted) {
  const sides = hasCorrupted ? ['clean', 'corrupted'] : ['clean'];
  const titleOf = (side) => (side === 'clean' ? 'Clean' : 'Corrupted');
  const countRight = (side) => data.questions.filter((question) => question[side].right).length;
  const renderOption = (question, side, option) => {
    const { choice, probabilities } = question[side];
    const selected = choice === option;
    const value = probabilities ? probabilities[option] : selected ? 1 : 0;
    return el('td', { class: selected ? 'selected' : null }, el('span', { class: 'score' },
      el('span', { class: 'bars' }, el('span', { class: `bar ${side}`, style: { width: `${100 * value}%` } })),
      el('span', { class: 'number' }, probabilities ? value.toFixed(3) : selected ? 'chosen' : '')));
  };
  const renderHeading = (question, side) => el('th', { scope: 'col' }, titleOf(side),
    el('span', { class: `tag ${question[side].right ? 'right' : 'wrong'}` }, question[side].choice === null ? question[side].text : question[side].right ? 'right' : 'wrong'));
  const renderGenerated = (question, side) => (question[side].generated === null ? null
    : el('p', { class: 'quiet small' }, `${titleOf(side)}: ${question[side].generated}`));
  const renderSpan = (question) => (question.start === null && question.end === null ? null
    : el('button', { type: 'button', class: 'plain', onclick: () => players.seek(question.start ?? 0) }, `from ${formatTime(question.start ?? 0)}${question.end === null ? '' : ` to ${formatTime(question.end)}`}`));
  return {
    node: el('section', { class: 'questions', 'aria-label': 'Questions' },
      el('p', { class: 'verdict' }, `Of ${data.questions.length} ${data.questions.length === 1 ? 'question' : 'questions'} the model answers ${countRight('clean')} right on the clean video`,
        hasCorrupted ? ` and ${countRight('corrupted')} on the corrupted one.` : '.'),
      data.questions.map((question) => el('article', { class: `question${hasCorrupted && question.clean.right && !question.corrupted.right ? ' lost' : ''}`, 'data-question': question.id },
        el('h2', {}, question.text, question.kind ? el('span', { class: 'tag' }, question.kind) : null, question.needs_order ? el('span', { class: 'tag' }, 'needs order') : null),
        renderSpan(question),
        el('div', { class: 'scroll' }, el('table', { class: 'list answers' },
          el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Option'), sides.map((side) => renderHeading(question, side)))),
          el('tbody', {}, question.options.map((option, i) => el('tr', { class: i === question.answer ? 'true' : null },
            el('th', { scope: 'row' }, option, i === question.answer ? el('span', { class: 'tag' }, 'right answer') : null),
            sides.map((side) => renderOption(question, side, i))))))),
        sides.map((side) => renderGenerated(question, side)))),
      data.questions.some((question) => question.clean.generated) ? el('p', { class: 'quiet small' }, 'Letters in generated text refer to the order in which the model received the options.') : null),
    setFilm() {}, setCorruptedSpans() {}, setTime() {},
  };
}
