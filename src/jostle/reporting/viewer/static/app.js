// Every page is the same shell: it fetches its JSON twin and draws it.

import { el, getJson, jsonAddress, put } from './dom.js';
import { runPage, indexPage } from './run.js';
import { cellPage } from './cell.js';
import { videoPage } from './video.js';
import { galleryPage } from './gallery.js';
import { probePage } from './probe.js';

const PAGES = {
  index: indexPage,
  run: runPage,
  cell: cellPage,
  video: videoPage,
  gallery: galleryPage,
  probe: probePage,
  waiting: waitingPage,
  unfinished: unfinishedPage,
  error: errorPage,
};

function header(data) {
  const crumbs = [['/', 'jostle']];
  if (data.run) crumbs.push([`/runs/${data.run.key}`, data.run.folder || data.run.key]);
  if (data.cell) crumbs.push([`/runs/${data.run.key}/cells/${data.cell.key}`, data.cell.title]);
  if (data.video) crumbs.push([location.pathname, data.video.id]);
  if (data.page === 'gallery') crumbs.push([location.pathname, 'Gallery']);
  if (data.page === 'probe') crumbs.push([location.pathname, 'Breaking points']);
  const last = crumbs.length - 1;
  const json = el('a', { href: jsonAddress() }, 'JSON');
  addEventListener('addresschange', () => json.setAttribute('href', jsonAddress()));
  put(document.getElementById('top'),
    el('nav', { 'aria-label': 'Where you are' },
      el('ol', { class: 'crumbs' }, crumbs.map(([href, text], i) =>
        el('li', {}, el('a', { href, 'aria-current': i === last ? 'page' : null, title: text }, text))))),
    el('nav', { class: 'tools', 'aria-label': 'More' },
      data.run && data.page !== 'unfinished' ? el('a', { href: `/runs/${data.run.key}/gallery` }, 'Gallery') : null,
      json),
  );
}

function waitingPage(main, data) {
  put(main,
    el('h1', {}, 'Going over the run'),
    el('p', {}, `${data.done} of ${data.of} cells are measured video by video.`),
    el('progress', { max: data.of, value: data.done, 'aria-label': 'Cells measured' }),
  );
  setTimeout(show, 400);
}

function unfinishedPage(main, data) {
  put(main,
    el('h1', {}, `${data.run.model} on ${data.run.benchmark}`),
    el('p', {}, `This run is not finished: ${data.message}. ${data.done} of ${data.of} videos are done.`),
    el('progress', { max: Math.max(data.of, 1), value: data.done, 'aria-label': 'Videos done' }),
    el('p', { class: 'quiet' }, 'This page looks again by itself.'),
  );
  setTimeout(show, 3000);
}

function errorPage(main, data) {
  put(main,
    el('h1', {}, 'This cannot be shown'),
    el('p', { class: 'message', role: 'alert' }, data.message),
    el('p', {}, el('button', { type: 'button', onclick: show }, 'Try again')),
  );
}

async function show() {
  const main = document.getElementById('main');
  let data;
  try {
    data = await getJson(jsonAddress());
  } catch {
    data = { page: 'error', title: 'Error', message: 'The viewer does not answer; is `jostle view` still running?' };
  }
  document.title = `${data.title} · jostle`;
  document.body.dataset.page = data.page;
  header(data);
  (PAGES[data.page] || errorPage)(main, data);
}

show();
