// Helpers for DOM elements, number formats, JSON requests and the URL query. Labels are always set as text, never as HTML.

const SVG = 'http://www.w3.org/2000/svg';

export function el(name, attributes = {}, ...children) {
  return populate(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return populate(document.createElementNS(SVG, name), attributes, children);
}

function populate(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'style') for (const [name, part] of Object.entries(value)) node.style.setProperty(name, part);
    else if (value === true) node.setAttribute(key, '');
    else node.setAttribute(key, String(value));
  }
  node.append(...flattenChildren(children));
  return node;
}

const flattenChildren = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);

/** Replace the children of an element. */
export function replaceContent(node, ...children) {
  node.replaceChildren(...flattenChildren(children));
}

/** Return text nodes and code elements for text with words in backticks, as in a docstring. */
export const formatCode = (text) => text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));

export async function fetchJson(url) {
  const response = await fetch(url, { headers: { accept: 'application/json' }, cache: 'no-store' });
  const type = response.headers.get('content-type') || '';
  if (!type.includes('json')) return { page: 'error', title: 'Error', message: (await response.text()).trim() };
  return response.json();
}

export const formatPercent = (value, digits = 1) =>
  value === null || value === undefined ? 'n/a' : (100 * value).toFixed(digits).replace(/^-(?=0(\.0*)?$)/, '');

export const formatInterval = (ends) => (ends ? `${formatPercent(ends[0])} to ${formatPercent(ends[1])}` : '');

export function formatTime(seconds) {
  const total = Math.max(0, seconds);
  const minutes = Math.floor(total / 60);
  return `${minutes}:${(total - 60 * minutes).toFixed(2).padStart(5, '0')}`;
}

/** Return the URL of the page's data. */
export function jsonUrl() {
  const path = location.pathname === '/' ? '/index' : location.pathname.replace(/\/+$/, '');
  return `${path}.json${location.search}`;
}

// The URL holds the state of the page; changes are written in batches, 250 ms after the last one.
let updateTimer = null;
const pendingUpdates = new Map();
export function updateQuery(values) {
  for (const [key, value] of Object.entries(values)) pendingUpdates.set(key, value);
  clearTimeout(updateTimer);
  updateTimer = setTimeout(() => {
    const query = new URLSearchParams(location.search);
    for (const [key, value] of pendingUpdates) {
      if (value === null || value === undefined || value === '') query.delete(key);
      else query.set(key, String(value));
    }
    pendingUpdates.clear();
    const text = query.toString();
    history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
    dispatchEvent(new Event('urlchange'));
  }, 250);
}

/** Return a query parameter, as a number where the default value is one. */
export function queryParameter(name, defaultValue = null) {
  const text = new URLSearchParams(location.search).get(name);
  if (text === null) return defaultValue;
  if (typeof defaultValue === 'string' || defaultValue === null) return text;
  const value = Number(text);
  return Number.isFinite(value) ? value : defaultValue;
}
