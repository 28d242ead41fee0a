// Keyboard shortcuts, and the list of them under the question mark.

import { el } from './dom.js';

export function shortcuts(list) {
  const known = new Map();
  for (const { keys, act } of list) for (const key of keys) known.set(key, act);
  const help = el('dialog', { class: 'help', 'aria-labelledby': 'help-title' },
    el('h2', { id: 'help-title' }, 'Keys'),
    el('dl', {}, list.map(({ shown, says }) => [
      el('dt', {}, shown.map((key) => el('kbd', {}, key))), el('dd', {}, says)])),
    el('p', {}, el('button', { type: 'button', onclick: () => help.close() }, 'Close')));
  const toggle = () => { if (help.open) help.close(); else help.showModal(); };
  known.set('?', toggle);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const name = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
    const act = known.get(name);
    if (!act || (help.open && act !== toggle)) return;
    const at = event.target;
    if (at.matches('input[type=search], input[type=text], select, textarea')) return;
    if (at.matches('input[type=range]') && /Arrow|Home|End/.test(event.key)) return;
    if (at.matches('button, a, summary') && (event.key === ' ' || event.key === 'Enter')) return;
    event.preventDefault();
    act();
  });
  document.body.append(help);
  return el('button', { type: 'button', class: 'plain keys', onclick: toggle, title: 'Keys (?)', 'aria-label': 'Keyboard shortcuts' }, '?');
}
