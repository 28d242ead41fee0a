// The page of a cell: its videos, the most hurt first.

import { el, parameter, percent, put, remember, svg } from './dom.js';

export function cellPage(main, data) {
  const rows = data.videos.map((video, i) => [video, row(data, video, i)]);
  const none = el('p', { class: 'quiet', hidden: true }, 'No video is called that.');
  const filter = el('input', { type: 'search', value: parameter('find', ''), placeholder: 'Find a video', 'aria-label': 'Find a video', oninput: sift });
  put(main,
    el('h1', {}, data.cell.title),
    el('p', { class: 'verdict' }, verdict(data)),
    done(data),
    data.family.length > 1 ? el('nav', { class: 'chips', 'aria-label': 'Severities' }, data.family.map((one) =>
      el('a', { href: `/runs/${data.run.key}/cells/${one.key}`, 'aria-current': one.key === data.cell.key ? 'page' : null },
        one.severity === null ? one.title : `Severity ${one.severity}`))) : null,
    el('div', { class: 'row' }, el('h2', {}, data.cell.clean ? 'Videos, the worst first' : 'Videos, the most hurt first'), filter),
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
    none,
    data.of > data.videos.length
      ? el('p', {}, `${data.videos.length} of ${data.of} are shown. `, el('a', { href: `?show=${data.of}` }, 'Show all')) : null,
    data.unscored ? el('p', { class: 'quiet' }, `${data.unscored} videos have nothing annotated and are left out.`) : null,
  );
  sift();

  function sift() {
    const wanted = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const [video, node] of rows) {
      node.hidden = !video.video.toLowerCase().includes(wanted);
      shown += node.hidden ? 0 : 1;
    }
    none.hidden = shown > 0 || rows.length === 0;
    remember({ find: wanted || null });
  }
}

function verdict(data) {
  const cell = data.cell;
  if (cell.clean) return `${data.run.metric} on clean video is ${percent(cell.value)} %.`;
  const left = cell.relative === null ? '' : `, ${percent(cell.relative)} % of the clean value`;
  return cell.value === null ? 'This cell has no score yet.' : `${data.run.metric} is ${percent(cell.value)} %${left}.`;
}

function done(data) {
  if (!data.cell.done.length) return null;
  return el('p', { class: 'quiet' }, data.cell.done.map((step, i) => [
    i ? ', then ' : '', el('code', {}, step.spec), ' at ', el('code', {}, step.placement)]));
}

function row(data, video, i) {
  const address = `/runs/${data.run.key}/cells/${data.cell.key}/videos/${video.key}`;
  return el('tr', {},
    el('td', { class: 'number quiet' }, String(i + 1)),
    el('th', { scope: 'row' }, el('a', { href: address }, video.video)),
    el('td', { class: 'number' }, percent(video.clean)),
    data.cell.clean ? null : [
      el('td', { class: 'number' }, percent(video.corrupted)),
      el('td', { class: 'number strong' }, percent(video.loss)),
      el('td', { class: 'wide' }, bars(video)),
      el('td', {}, sparkline(video.by_severity))]);
}

function bars(video) {
  const bar = (value, name) => el('span', { class: `bar ${name}`, style: { width: `${100 * Math.max(0, Math.min(1, value || 0))}%` } });
  return el('span', { class: 'bars', 'aria-hidden': 'true' }, bar(video.clean, 'clean'), bar(video.corrupted, 'corrupted'));
}

function sparkline(values) {
  const known = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  if (known.length < 2) return '';
  const x = (i) => 3 + (i * 66) / (values.length - 1);
  const y = (value) => 19 - 16 * Math.max(0, Math.min(1, value));
  const said = values.map((value) => percent(value, 0)).join(', ');
  return svg('svg', { class: 'spark', viewBox: '0 0 72 22', width: 72, height: 22, role: 'img', 'aria-label': `clean, then by severity: ${said} %` },
    svg('title', {}, `clean, then by severity: ${said} %`),
    svg('polyline', { points: known.map(([i, value]) => `${x(i)},${y(value)}`).join(' ') }),
    known.map(([i, value]) => svg('circle', { cx: x(i), cy: y(value), r: i ? 2 : 2.6, class: i ? null : 'first' })));
}
