// Index of runs, and the page of a run: verdict, three numbers, and the heat map of corruptions by severities.

import { el, fetchJson, formatInterval, formatPercent, jsonUrl, replaceContent } from './dom.js';

export function renderIndexPage(main, data) {
  if (data.runs.length === 1 && !data.runs[0].message) {
    location.replace(`/runs/${data.runs[0].key}`);
    return;
  }
  replaceContent(main,
    el('h1', {}, 'Runs'),
    el('div', { class: 'scroll' }, el('table', { class: 'list' },
      el('thead', {}, el('tr', {},
        ['Run', 'Model', 'Benchmark', 'Clean', 'Corrupted', 'Relative robustness'].map((name, i) =>
          el('th', { scope: 'col', class: i > 2 ? 'number' : null }, name)))),
      el('tbody', {}, data.runs.map((run) => el('tr', {},
        el('th', { scope: 'row' }, el('a', { href: `/runs/${run.key}` }, run.folder || run.key)),
        run.message && !run.model
          ? el('td', { colspan: 5 }, run.message)
          : [el('td', {}, run.model), el('td', {}, run.benchmark),
            run.message
              ? el('td', { colspan: 3 }, run.message)
              : [run.clean, run.corrupted, run.relative].map((value) => el('td', { class: 'number' }, formatPercent(value)))],
      ))))),
  );
}

export function renderRunPage(main, data) {
  const verdict = el('p', { class: 'verdict' });
  const numbers = el('dl', { class: 'numbers' });
  const intervals = el('p', { class: 'quiet small' });
  replaceContent(main,
    el('h1', {}, data.run.model, el('span', { class: 'quiet' }, ` on ${data.run.benchmark}`)),
    verdict,
    numbers,
    intervals,
    data.message ? el('p', { class: 'message', role: 'alert' }, data.message) : null,
    data.coverage.videos < data.coverage.of
      ? el('p', { class: 'message' }, `Scored on ${data.coverage.videos} of ${data.coverage.of} videos.`) : null,
    data.counted.cells < data.counted.of
      ? el('p', { class: 'message' }, `The means are over ${data.counted.cells} of the benchmark's ${data.counted.of} cells.`) : null,
    el('h2', {}, `${data.run.metric} by corruption and severity`),
    data.rows.length ? renderHeatMap(data) : el('p', {}, 'This run has results on clean video only.'),
    el('p', { class: 'links' },
      el('a', { href: `/runs/${data.run.key}/cells/${data.clean_cell}` }, 'Videos of the clean cell'),
      el('a', { href: `/runs/${data.run.key}/gallery` }, 'See every corruption'),
      data.probed ? el('a', { href: `/runs/${data.run.key}/probe` }, 'Breaking points') : null),
    data.failures.length ? renderFailures(data) : null,
  );
  updateNumbers(data);

  function updateNumbers(page) {
    verdict.textContent = page.verdict;
    intervals.textContent = page.intervals;
    const entries = [
      [page.chance ? `Clean, ${page.chance}` : 'Clean', page.numbers.clean],
      ['Corrupted, mean', page.numbers.corrupted],
      ['Relative robustness', page.numbers.relative],
    ];
    numbers.replaceChildren(...entries.map(([name, number]) => el('div', {},
      el('dt', {}, name),
      el('dd', {}, formatPercent(number.value), el('span', { class: 'unit' }, ' %')),
      el('dd', { class: 'quiet small' }, number.interval ? `${formatInterval(number.interval)} %` : page.surveyed ? '' : 'interval …'),
    )));
    if (!page.surveyed) setTimeout(async () => {
      try {
        const next = await fetchJson(jsonUrl());
        if (next.page === 'run') updateNumbers(next);
      } catch { /* the viewer has ended; the numbers on the page stay */ }
    }, 700);
  }
}

// Colours are the report's fixed steps of the loss relative to the clean score, so that pages can be compared. Every square
// also holds its number, so that no information is in the colour alone.
function renderHeatMap(data) {
  const renderSquare = (cell, columns) => {
    if (!cell) return el('td', { class: 'none' }, '');
    const label = `${cell.title}: ${formatPercent(cell.value)} %, ${formatPercent(cell.relative)} % of clean`;
    return el('td', { colspan: columns || null },
      el('a', {
        class: `square ${cell.step}`, href: `/runs/${data.run.key}/cells/${cell.key}`, 'aria-label': label, title: label,
      }, el('span', {}, formatPercent(cell.value)), el('small', {}, `${formatPercent(cell.relative, 0)} %`)));
  };
  const renderRows = (rows) => el('tbody', {}, rows.map((row) => el('tr', {},
    el('th', { scope: 'row', title: row.corruption }, row.title),
    row.cells.length === 1 && data.severities.length > 1 ? renderSquare(row.cells[0], data.severities.length) : row.cells.map((cell) => renderSquare(cell)))));
  const counted = data.rows.filter((row) => row.counted);
  const uncounted = data.rows.filter((row) => !row.counted);
  return el('figure', { class: 'heat' },
    el('div', { class: 'scroll' }, el('table', { class: 'heatmap' },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Corruption'),
        (data.severities.length ? data.severities : ['']).map((severity) =>
          el('th', { scope: 'col' }, severity === '' ? '' : `Severity ${severity}`)))),
      renderRows(counted),
      uncounted.length ? [el('tbody', {}, el('tr', {}, el('th', { colspan: data.severities.length + 1, scope: 'colgroup', class: 'uncounted' }, 'Outside the benchmark'))), renderRows(uncounted)] : null)),
    el('figcaption', { class: 'quiet small' },
      `${data.run.metric} in %, and below it as a share of the clean value. Orange to red is a loss, in the steps of the report; blue is above clean. Each square links to its videos.`));
}

function renderFailures(data) {
  return el('details', {},
    el('summary', {}, `${data.failures.length} videos could not be used`),
    el('ul', {}, data.failures.map((failure) => el('li', {}, el('strong', {}, failure.video), `: ${failure.message}`))));
}
