// Questions about a video: the options with their probabilities, clean and corrupted, and which one is right.

import { clock, el } from './dom.js';

export function questionsPanel(data, players, two) {
  const sides = two ? ['clean', 'corrupted'] : ['clean'];
  const right = (side) => data.questions.filter((one) => one[side].right).length;
  const share = (one, side, option) => {
    const { choice, probabilities } = one[side];
    const value = probabilities ? probabilities[option] : choice === option ? 1 : 0;
    return el('td', { class: choice === option ? 'chosen' : null }, el('span', { class: 'score' },
      el('span', { class: 'bars' }, el('span', { class: `bar ${side}`, style: { width: `${100 * value}%` } })),
      el('span', { class: 'number' }, probabilities ? value.toFixed(3) : choice === option ? 'chosen' : '')));
  };
  const head = (one, side) => el('th', { scope: 'col' }, side === 'clean' ? 'Clean' : 'Corrupted',
    el('span', { class: `tag ${one[side].right ? 'right' : 'wrong'}` }, one[side].choice === null ? one[side].text : one[side].right ? 'right' : 'wrong'));
  const said = (one, side) => (one[side].generated === null ? null
    : el('p', { class: 'quiet small' }, `${side === 'clean' ? 'Clean' : 'Corrupted'}: ${one[side].generated}`));
  const stretch = (one) => (one.start === null && one.end === null ? null
    : el('button', { type: 'button', class: 'plain', onclick: () => players.seek(one.start ?? 0) }, `from ${clock(one.start ?? 0)}${one.end === null ? '' : ` to ${clock(one.end)}`}`));
  return {
    node: el('section', { class: 'questions', 'aria-label': 'Questions' },
      el('p', { class: 'verdict' }, `Of ${data.questions.length} ${data.questions.length === 1 ? 'question' : 'questions'} the model answers ${right('clean')} right on the clean video`,
        two ? ` and ${right('corrupted')} on the corrupted one.` : '.'),
      data.questions.map((one) => el('article', { class: `question${two && one.clean.right && !one.corrupted.right ? ' lost' : ''}`, 'data-question': one.id },
        el('h2', {}, one.text, one.kind ? el('span', { class: 'tag' }, one.kind) : null, one.needs_order ? el('span', { class: 'tag' }, 'needs order') : null),
        stretch(one),
        el('div', { class: 'scroll' }, el('table', { class: 'list answers' },
          el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Option'), sides.map((side) => head(one, side)))),
          el('tbody', {}, one.options.map((option, i) => el('tr', { class: i === one.answer ? 'true' : null },
            el('th', { scope: 'row' }, option, i === one.answer ? el('span', { class: 'tag' }, 'right answer') : null),
            sides.map((side) => share(one, side, i))))))),
        sides.map((side) => said(one, side)))),
      data.questions.some((one) => one.clean.generated) ? el('p', { class: 'quiet small' }, 'Letters in generated text are of the order in which the model got the options.') : null),
    film() {}, strikes() {}, time() {},
  };
}
