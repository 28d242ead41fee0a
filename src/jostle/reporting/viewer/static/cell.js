// Page of a cell: its videos, largest loss first.

import { el, formatPercent, queryParameter, replaceContent, svg, updateQuery } from './dom.js';

export function renderCellPage(main, data) {
  const rows = data.videos.map((video, i) => [video, renderRow(data, video, i)]);
  const noMatch = el('p', { class: 'quiet', hidden: true }, 'No video matches.');
  const filter = el('input', { type: 'search', value: queryParameter('find', ''), placeholder: 'Find a video', 'aria-label': 'Find a video', oninput: filterRows });
  replaceContent(main,
    el('h1', {}, data.cell.title),
    el('p', { class: 'verdict' }, describeScore(data)),
    renderSteps(data),
    data.family.length > 1 ? el('nav', { class: 'chips', 'aria-label': 'Severities' }, data.family.map((member) =>
      el('a', { href: `/runs/${data.run.key}/cells/${member.key}`, 'aria-current': member.key === data.cell.key ? 'page' : null },
        member.severity === null ? member.title : `Severity ${member.severity}`))) : null,
    el('div', { class: 'row' }, el('h2', {}, data.cell.clean ? 'Videos, lowest score first' : 'Videos, largest loss first'), filter),
    el('div', { class: 'scroll' }, el('table', { class: 'list videos' },
      el('thead', {}, el('tr', {},
        el('th', { scope: 'col' }, ''), el('th', { scope: 'col' }, 'Video'),
        el('th', { scope: 'col', class: 'number' }, 'Clean'),
        data.cell.clean ? null : [
          el('th', { scope: 'col', class: 'number' }, 'Corrupted'),
          el('th', { scope: 'col', class: 'number' }, 'Loss'),
          el('th', { scope: 'col' }, el('span', { class: 'sr' }, 'Clean and corrupted as bars')),
          el('th', { scope: 'col' }, 'By severity')])),
      el('tbody', {}, rows.map(([, node]) => node)))),
    noMatch,
    data.of > data.videos.length
      ? el('p', {}, `${data.videos.length} of ${data.of} are shown. `, el('a', { href: `?show=${data.of}` }, 'Show all')) : null,
    data.unscored ? el('p', { class: 'quiet' }, `${data.unscored} videos without annotations are left out.`) : null,
  );
  filterRows();

  function filterRows() {
    const text = filter.value.trim().toLowerCase();
    let matches = 0;
    for (const [video, node] of rows) {
      node.hidden = !video.video.toLowerCase().includes(text);
      matches += node.hidden ? 0 : 1;
    }
    noMatch.hidden = matches > 0 || rows.length === 0;
    updateQuery({ find: text || null });
  }
}

function describeScore(data) {
  const cell = data.cell;
  if (cell.clean) return `${data.run.metric} on clean video is ${formatPercent(cell.value)} %.`;
  const share = cell.relative === null ? '' : `, ${formatPercent(cell.relative)} % of the clean value`;
  return cell.value === null ? 'This cell has no score yet.' : `${data.run.metric} is ${formatPercent(cell.value)} %${share}.`;
}

function renderSteps(data) {
  if (!data.cell.done.length) return null;
  return el('p', { class: 'quiet' }, data.cell.done.map((step, i) => [
    i ? ', then ' : '', el('code', {}, step.spec), ' at ', el('code', {}, step.placement)]));
}

function renderRow(data, video, i) {
  const url = `/runs/${data.run.key}/cells/${data.cell.key}/videos/${video.key}`;
  return el('tr', {},
    el('td', { class: 'number quiet' }, String(i + 1)),
    el('th', { scope: 'row' }, el('a', { href: url }, video.video)),
    el('td', { class: 'number' }, formatPercent(video.clean)),
    data.cell.clean ? null : [
      el('td', { class: 'number' }, formatPercent(video.corrupted)),
      el('td', { class: 'number strong' }, formatPercent(video.loss)),
      el('td', { class: 'bar-column' }, renderBars(video)),
      el('td', {}, renderSparkline(video.by_severity))]);
}

function renderBars(video) {
  const renderBar = (value, side) => el('span', { class: `bar ${side}`, style: { width: `${100 * Math.max(0, Math.min(1, value || 0))}%` } });
  return el('span', { class: 'bars', 'aria-hidden': 'true' }, renderBar(video.clean, 'clean'), renderBar(video.corrupted, 'corrupted'));
}

function renderSparkline(values) {
  const points = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  if (points.length < 2) return '';
  const x = (i) => 3 + (i * 66) / (values.length - 1);
  const y = (value) => 19 - 16 * Math.max(0, Math.min(1, value));
  const label = `clean, then by severity: ${values.map((value) => formatPercent(value, 0)).join(', ')} %`;
  return svg('svg', { class: 'spark', viewBox: '0 0 72 22', width: 72, height: 22, role: 'img', 'aria-label': label },
    svg('title', {}, label),
    svg('polyline', { points: points.map(([i, value]) => `${x(i)},${y(value)}`).join(' ') }),
    points.map(([i, value]) => svg('circle', { cx: x(i), cy: y(value), r: i ? 2 : 2.6, class: i ? null : 'first' })));
}
