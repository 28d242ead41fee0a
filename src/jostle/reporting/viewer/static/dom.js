// Elements from data. Text is only ever set as text, so that nobody's label is read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'style') for (const [name, part] of Object.entries(value)) node.style.setProperty(name, part);
    else if (value === true) node.setAttribute(key, '');
    else node.setAttribute(key, String(value));
  }
  node.append(...there(children));
  return node;
}

const there = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);

/** Fill an element anew. */
export function put(node, ...children) {
  node.replaceChildren(...there(children));
}

/** Text in which `words` stand between backticks, as in a docstring. */
export const worded = (text) => text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));

export async function getJson(address) {
  const answer = await fetch(address, { headers: { accept: 'application/json' }, cache: 'no-store' });
  const kind = answer.headers.get('content-type') || '';
  if (!kind.includes('json')) return { page: 'error', title: 'Error', message: (await answer.text()).trim() };
  return answer.json();
}

export const percent = (value, digits = 1) =>
  value === null || value === undefined ? 'n/a' : (100 * value).toFixed(digits).replace(/^-(?=0(\.0*)?$)/, '');

export const interval = (ends) => (ends ? `${percent(ends[0])} to ${percent(ends[1])}` : '');

export function clock(seconds) {
  const whole = Math.max(0, seconds);
  const minutes = Math.floor(whole / 60);
  return `${minutes}:${(whole - 60 * minutes).toFixed(2).padStart(5, '0')}`;
}

export function jsonAddress() {
  const path = location.pathname === '/' ? '/index' : location.pathname.replace(/\/+$/, '');
  return `${path}.json${location.search}`;
}

// The address says what is shown; changes are put there a moment after the last one.
let pending = null;
const changes = new Map();
export function remember(values) {
  for (const [key, value] of Object.entries(values)) changes.set(key, value);
  clearTimeout(pending);
  pending = setTimeout(() => {
    const query = new URLSearchParams(location.search);
    for (const [key, value] of changes) {
      if (value === null || value === undefined || value === '') query.delete(key);
      else query.set(key, String(value));
    }
    changes.clear();
    const text = query.toString();
    history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
    dispatchEvent(new Event('addresschange'));
  }, 250);
}

export function parameter(name, usual = null) {
  const text = new URLSearchParams(location.search).get(name);
  if (text === null) return usual;
  if (typeof usual === 'string' || usual === null) return text;
  const value = Number(text);
  return Number.isFinite(value) ? value : usual;
}
