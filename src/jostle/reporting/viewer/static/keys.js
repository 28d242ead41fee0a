// Keyboard shortcuts of a page, and the dialog that lists them.

import { el } from './dom.js';

/** Install shortcuts, each with `keys`, `labels`, `description` and `action`; return the button that opens their list. */
export function installShortcuts(shortcuts) {
  const actions = new Map();
  for (const { keys, action } of shortcuts) for (const key of keys) actions.set(key, action);
  const help = el('dialog', { class: 'help', 'aria-labelledby': 'help-title' },
    el('h2', { id: 'help-title' }, 'Keys'),
    el('dl', {}, shortcuts.map(({ labels, description }) => [
      el('dt', {}, labels.map((label) => el('kbd', {}, label))), el('dd', {}, description)])),
    el('p', {}, el('button', { type: 'button', onclick: () => help.close() }, 'Close')));
  const toggleHelp = () => { if (help.open) help.close(); else help.showModal(); };
  actions.set('?', toggleHelp);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
    const action = actions.get(key);
    if (!action || (help.open && action !== toggleHelp)) return;
    const target = event.target;
    if (target.matches('input[type=search], input[type=text], select, textarea')) return;
    if (target.matches('input[type=range]') && /Arrow|Home|End/.test(event.key)) return;
    if (target.matches('button, a, summary') && (event.key === ' ' || event.key === 'Enter')) return;
    event.preventDefault();
    action();
  });
  document.body.append(help);
  return el('button', { type: 'button', class: 'plain keys', onclick: toggleHelp, title: 'Keys (?)', 'aria-label': 'Keyboard shortcuts' }, '?');
}
