// Entry point of every page: fetches the page's JSON and renders it.

import { el, fetchJson, jsonUrl, replaceContent } from './dom.js';
import { renderRunPage, renderIndexPage } from './run.js';
import { renderCellPage } from './cell.js';
import { renderVideoPage } from './video.js';
import { renderGalleryPage } from './gallery.js';
import { renderProbePage } from './probe.js';

const PAGES = {
  index: renderIndexPage,
  run: renderRunPage,
  cell: renderCellPage,
  video: renderVideoPage,
  gallery: renderGalleryPage,
  probe: renderProbePage,
  waiting: renderWaitingPage,
  unfinished: renderUnfinishedPage,
  error: renderErrorPage,
};

function renderHeader(data) {
  const crumbs = [['/', 'jostle']];
  if (data.run) crumbs.push([`/runs/${data.run.key}`, data.run.folder || data.run.key]);
  if (data.cell) crumbs.push([`/runs/${data.run.key}/cells/${data.cell.key}`, data.cell.title]);
  if (data.video) crumbs.push([location.pathname, data.video.id]);
  if (data.page === 'gallery') crumbs.push([location.pathname, 'Gallery']);
  if (data.page === 'probe') crumbs.push([location.pathname, 'Breaking points']);
  const last = crumbs.length - 1;
  const jsonLink = el('a', { href: jsonUrl() }, 'JSON');
  addEventListener('urlchange', () => jsonLink.setAttribute('href', jsonUrl()));
  replaceContent(document.getElementById('top'),
    el('nav', { 'aria-label': 'Breadcrumb' },
      el('ol', { class: 'crumbs' }, crumbs.map(([href, text], i) =>
        el('li', {}, el('a', { href, 'aria-current': i === last ? 'page' : null, title: text }, text))))),
    el('nav', { class: 'tools', 'aria-label': 'Tools' },
      data.run && data.page !== 'unfinished' ? el('a', { href: `/runs/${data.run.key}/gallery` }, 'Gallery') : null,
      jsonLink),
  );
}

function renderWaitingPage(main, data) {
  replaceContent(main,
    el('h1', {}, 'Scoring each video'),
    el('p', {}, `${data.done} of ${data.of} cells are scored video by video.`),
    el('progress', { max: data.of, value: data.done, 'aria-label': 'Scored cells' }),
  );
  setTimeout(renderPage, 400);
}

function renderUnfinishedPage(main, data) {
  replaceContent(main,
    el('h1', {}, `${data.run.model} on ${data.run.benchmark}`),
    el('p', {}, `This run is not finished: ${data.message}. ${data.done} of ${data.of} videos are done.`),
    el('progress', { max: Math.max(data.of, 1), value: data.done, 'aria-label': 'Processed videos' }),
    el('p', { class: 'quiet' }, 'This page refreshes automatically.'),
  );
  setTimeout(renderPage, 3000);
}

function renderErrorPage(main, data) {
  replaceContent(main,
    el('h1', {}, 'This page cannot be shown'),
    el('p', { class: 'message', role: 'alert' }, data.message),
    el('p', {}, el('button', { type: 'button', onclick: renderPage }, 'Try again')),
  );
}

async function renderPage() {
  const main = document.getElementById('main');
  let data;
  try {
    data = await fetchJson(jsonUrl());
  } catch {
    data = { page: 'error', title: 'Error', message: 'The viewer does not respond; is `jostle view` still running?' };
  }
  document.title = `${data.title} · jostle`;
  document.body.dataset.page = data.page;
  renderHeader(data);
  (PAGES[data.page] || renderErrorPage)(main, data);
}

renderPage();
