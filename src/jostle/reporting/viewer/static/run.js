// The page of a run: a verdict, three numbers, and the heat map of corruptions by severities.

import { el, getJson, interval, jsonAddress, percent, put } from './dom.js';

export function indexPage(main, data) {
  if (data.runs.length === 1 && !data.runs[0].message) {
    location.replace(`/runs/${data.runs[0].key}`);
    return;
  }
  put(main,
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
              : [run.clean, run.corrupted, run.relative].map((value) => el('td', { class: 'number' }, percent(value)))],
      ))))),
  );
}

export function runPage(main, data) {
  const verdict = el('p', { class: 'verdict' });
  const numbers = el('dl', { class: 'numbers' });
  const intervals = el('p', { class: 'quiet small' });
  put(main,
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
    data.rows.length ? heatMap(data) : el('p', {}, 'This run has looked at clean video only.'),
    el('p', { class: 'links' },
      el('a', { href: `/runs/${data.run.key}/cells/${data.clean_cell}` }, 'Videos of the clean cell'),
      el('a', { href: `/runs/${data.run.key}/gallery` }, 'See every corruption'),
      data.probed ? el('a', { href: `/runs/${data.run.key}/probe` }, 'Breaking points') : null),
    data.failures.length ? failures(data) : null,
  );
  show(data);

  function show(told) {
    verdict.textContent = told.verdict;
    intervals.textContent = told.intervals;
    const shown = [[told.chance ? `Clean, ${told.chance}` : 'Clean', told.numbers.clean], ['Corrupted, mean', told.numbers.corrupted], ['Relative robustness', told.numbers.relative]];
    numbers.replaceChildren(...shown.map(([name, number]) => el('div', {},
      el('dt', {}, name),
      el('dd', {}, percent(number.value), el('span', { class: 'unit' }, ' %')),
      el('dd', { class: 'quiet small' }, number.interval ? `${interval(number.interval)} %` : told.surveyed ? '' : 'interval …'),
    )));
    if (!told.surveyed) setTimeout(async () => {
      try {
        const next = await getJson(jsonAddress());
        if (next.page === 'run') show(next);
      } catch { /* the viewer has ended; what is shown stays */ }
    }, 700);
  }
}

// Colours are the report's: fixed steps of what is lost of the clean score, so that two pages can be compared. The number
// stands in every square, so that nothing is said by colour alone.
function heatMap(data) {
  const square = (cell, wide) => {
    if (!cell) return el('td', { class: 'none' }, '');
    const said = `${cell.title}: ${percent(cell.value)} %, ${percent(cell.relative)} % of clean`;
    return el('td', { colspan: wide || null },
      el('a', {
        class: `square ${cell.step}`, href: `/runs/${data.run.key}/cells/${cell.key}`, 'aria-label': said, title: said,
      }, el('span', {}, percent(cell.value)), el('small', {}, `${percent(cell.relative, 0)} %`)));
  };
  const body = (rows) => el('tbody', {}, rows.map((row) => el('tr', {},
    el('th', { scope: 'row', title: row.corruption }, row.title),
    row.cells.length === 1 && data.severities.length > 1 ? square(row.cells[0], data.severities.length) : row.cells.map((cell) => square(cell)))));
  const counted = data.rows.filter((row) => row.counted);
  const beside = data.rows.filter((row) => !row.counted);
  return el('figure', { class: 'heat' },
    el('div', { class: 'scroll' }, el('table', { class: 'heatmap' },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Corruption'),
        (data.severities.length ? data.severities : ['']).map((severity) =>
          el('th', { scope: 'col' }, severity === '' ? '' : `Severity ${severity}`)))),
      body(counted),
      beside.length ? [el('tbody', {}, el('tr', {}, el('th', { colspan: data.severities.length + 1, scope: 'colgroup', class: 'beside' }, 'Beside the benchmark'))), body(beside)] : null)),
    el('figcaption', { class: 'quiet small' },
      `${data.run.metric} in %, and below it the share of the clean value that is left. Orange to red is a loss, the greater the more it stands out, in the steps of the report; blue is above clean. A square opens its videos.`));
}

function failures(data) {
  return el('details', {},
    el('summary', {}, `${data.failures.length} videos could not be used`),
    el('ul', {}, data.failures.map((one) => el('li', {}, el('strong', {}, one.video), `: ${one.message}`))));
}
