// Page of a video: linked clean and corrupted players, and below them a panel with the model's results.

import { el, fetchJson, formatPercent, formatTime, jsonUrl, queryParameter, replaceContent, updateQuery } from './dom.js';
import { createAnswersPanel } from './answers.js';
import { createFramesPanel } from './frames.js';
import { createObjectsPanel } from './objects.js';
import { createQuestionsPanel } from './questions.js';
import { installShortcuts } from './keys.js';
import { Players, RATES } from './players.js';
import { Screen } from './screen.js';
import { KINDS, Timeline } from './timeline.js';

export function renderVideoPage(main, data) {
  const hasCorrupted = Boolean(data.media.corrupted);
  const clean = new Screen('Clean', { onReady: (film) => { players.setFilm(film); if (!hasCorrupted) setMendedSpans(film); } });
  const corrupted = hasCorrupted
    ? new Screen('Corrupted', { onReady: (film) => { players.setFilm(film); setCorruptedSpans(film.struck); setMendedSpans(film); } }) : null;
  const screens = hasCorrupted ? [clean, corrupted] : [clean];
  const players = new Players(screens.map((screen) => screen.video));
  if (hasCorrupted) corrupted.caption.replaceChildren('Corrupted', el('span', { class: 'quiet' }, ` ${data.cell.title}`));

  let corruptedSpans = [];
  const panel = createPanel(data, players, screens, hasCorrupted);

  const play = el('button', { type: 'button', class: 'play', onclick: () => players.toggle() }, 'Play');
  const clock = el('output', { class: 'clock', 'aria-label': 'Time and frame' });
  const rate = el('select', { 'aria-label': 'Speed', onchange: () => players.setRate(Number(rate.value)) },
    RATES.map((value) => el('option', { value }, `${value}×`)));
  const createButton = (text, label, action) => el('button', { type: 'button', title: label, 'aria-label': label, onclick: action }, text);
  const openVideo = (key) => { if (key) location.assign(`/runs/${data.run.key}/cells/${data.cell.key}/videos/${key}${persistentQuery()}`); };
  const seekCorruptedSpan = (direction) => {
    const starts = corruptedSpans.map(([start]) => start).filter((start) => (direction > 0 ? start > players.time + 1e-3 : start < players.time - 1e-3));
    if (starts.length) { players.pause(); players.seek(direction > 0 ? starts[0] : starts[starts.length - 1]); }
  };
  const skip = (seconds) => players.seek(players.time + seconds);
  const shortcuts = [
    { keys: [' '], labels: ['space'], description: 'play or pause', action: () => players.toggle() },
    { keys: ['ArrowLeft'], labels: ['←'], description: 'one second back', action: () => skip(-1) },
    { keys: ['ArrowRight'], labels: ['→'], description: 'one second forward', action: () => skip(1) },
    { keys: ['Shift+ArrowLeft'], labels: ['shift', '←'], description: 'five seconds back', action: () => skip(-5) },
    { keys: ['Shift+ArrowRight'], labels: ['shift', '→'], description: 'five seconds forward', action: () => skip(5) },
    { keys: [','], labels: [','], description: 'one frame back', action: () => players.step(-1) },
    { keys: ['.'], labels: ['.'], description: 'one frame forward', action: () => players.step(1) },
    { keys: ['['], labels: ['['], description: 'slower', action: () => players.changeRate(-1) },
    { keys: [']'], labels: [']'], description: 'faster', action: () => players.changeRate(1) },
    { keys: ['Home'], labels: ['home'], description: 'to the beginning', action: () => players.seek(0) },
    { keys: ['End'], labels: ['end'], description: 'to the end', action: () => players.seek(players.duration) },
    hasCorrupted && { keys: ['s'], labels: ['s'], description: 'next corrupted stretch', action: () => seekCorruptedSpan(1) },
    hasCorrupted && { keys: ['S'], labels: ['shift', 's'], description: 'previous corrupted stretch', action: () => seekCorruptedSpan(-1) },
    panel.zoom && { keys: ['+', '='], labels: ['+'], description: 'zoom into the timeline', action: () => panel.zoom(2) },
    panel.zoom && { keys: ['-'], labels: ['-'], description: 'zoom out of the timeline', action: () => panel.zoom(0.5) },
    { keys: ['m'], labels: ['m'], description: 'sound of the clean video', action: () => { clean.video.muted = !clean.video.muted; } },
    { keys: ['n'], labels: ['n'], description: 'next video of the cell', action: () => openVideo(data.after) },
    { keys: ['p'], labels: ['p'], description: 'previous video of the cell', action: () => openVideo(data.before) },
  ].filter(Boolean);

  const cellSelect = el('select', { 'aria-label': 'Corruption', onchange: () => location.assign(`/runs/${data.run.key}/cells/${cellSelect.value}/videos/${data.video.key}${persistentQuery()}`) },
    data.cells.map((cell) => el('option', { value: cell.key, selected: cell.key === data.cell.key }, cell.title)));
  const renderVideoLink = (key, text) => (key
    ? el('a', { href: `/runs/${data.run.key}/cells/${data.cell.key}/videos/${key}` }, text)
    : el('span', { class: 'quiet' }, text));
  const rank = el('span', { class: 'row near' });
  const videoScore = el('p', { class: 'quiet' });
  const nextSpan = hasCorrupted ? createButton('next corrupted', 'Next corrupted stretch', () => seekCorruptedSpan(1)) : null;

  replaceContent(main,
    el('div', { class: 'row' },
      el('h1', {}, data.video.id),
      el('div', { class: 'row near' }, el('label', { class: 'near' }, 'Cell ', cellSelect),
        rank, installShortcuts(shortcuts))),
    videoScore,
    el('div', { class: hasCorrupted ? 'screens two' : 'screens' }, screens.map((screen) => screen.node)),
    el('div', { class: 'controls', role: 'group', 'aria-label': 'Players' },
      play, createButton('‹', 'One frame back', () => players.step(-1)), createButton('›', 'One frame forward', () => players.step(1)),
      clock, el('label', { class: 'near' }, el('span', { class: 'sr' }, 'Speed'), rate),
      nextSpan,
      panel.controls || null),
    panel.node,
  );

  players.addEventListener('time', updateTime);
  players.addEventListener('film', () => { panel.setFilm(players.film); updateTime(); });
  players.addEventListener('state', () => {
    play.textContent = players.playing ? 'Pause' : 'Play';
    rate.value = String(players.rate);
    if (!players.playing) updateQuery({ t: players.time.toFixed(3), rate: players.rate === 1 ? null : players.rate });
  });
  players.setRate(queryParameter('rate', 1));
  players.time = Math.max(0, queryParameter('t', 0));
  updateTime();
  updateRank();
  clean.load(data.media.clean);
  if (hasCorrupted) corrupted.load(data.media.corrupted);

  // Where the run was mended: the spans of frames that the inspector found, converted to seconds.
  function setMendedSpans(film) {
    if (!data.found_struck || !panel.setMendedSpans) return;
    const timeOf = (frame) => (frame >= film.frames ? film.end_s : film.times ? film.times[frame] : frame * film.rate[1] / film.rate[0]);
    panel.setMendedSpans(data.found_struck.map(([first, stop]) => [timeOf(first), timeOf(stop)]));
  }

  /** Set the corrupted spans in seconds; null if the whole video is corrupted. */
  function setCorruptedSpans(spans) {
    corruptedSpans = spans === null ? [[0, players.duration]] : spans;
    nextSpan.hidden = spans === null;
    panel.setCorruptedSpans(spans);
    updateTime();
  }

  // The rank among the videos of the cell is known once the run is analysed; until then the page polls for it.
  async function updateRank() {
    replaceContent(rank, data.rank ? el('span', { class: 'quiet' }, `${data.rank} of ${data.of}`) : null,
      renderVideoLink(data.before, '‹ previous'), renderVideoLink(data.after, 'next ›'));
    videoScore.hidden = !data.value || Boolean(data.answers);
    if (data.value) videoScore.textContent = `${data.run.metric} of this video alone: ${formatPercent(data.value.clean)} % clean${hasCorrupted ? `, ${formatPercent(data.value.corrupted)} % corrupted` : ''}`;
    if (data.surveyed) return;
    await new Promise((resolve) => setTimeout(resolve, 800));
    try {
      const page = await fetchJson(jsonUrl());
      for (const name of ['surveyed', 'rank', 'of', 'value', 'before', 'after']) data[name] = page[name];
      if (page.page === 'video') updateRank();
    } catch { /* the viewer has ended; the page stays as it is */ }
  }

  function updateTime() {
    const frames = players.frames ? `, frame ${players.frame} of ${players.frames}` : '';
    clock.textContent = `${formatTime(players.time)} / ${formatTime(players.duration || data.duration || 0)}${frames}`;
    panel.setTime(players.time, players.playing);
    for (const screen of screens) screen.showFrame(players.frame);
    if (hasCorrupted) corrupted.badge.hidden = !corruptedSpans.some(([start, end]) => players.time >= start - 1e-6 && players.time < end - 1e-6);
    if (!players.playing) updateQuery({ t: players.time ? players.time.toFixed(3) : null });
  }

  /** Return the part of the query that is carried over to another cell or video. */
  function persistentQuery() {
    const query = new URLSearchParams();
    for (const name of ['score', 'tiou', 'rate']) if (queryParameter(name) !== null) query.set(name, queryParameter(name));
    return query.size ? `?${query}` : '';
  }
}

function createPanel(data, players, screens, hasCorrupted) {
  if (data.actions) return createTimelinePanel(data, players, hasCorrupted);
  if (data.answers) return createAnswersPanel(data, hasCorrupted);
  if (data.questions) return createQuestionsPanel(data, players, hasCorrupted);
  if (data.objects) return createObjectsPanel(data, players, screens);
  if (data.sets) return createFramesPanel(data, players, hasCorrupted);
  return { node: el('p', { class: 'quiet' }, 'Nothing is drawn of the results for a single video of this task.'), setFilm() {}, setCorruptedSpans() {}, setTime() {} };
}

const DETECTION_TEXTS = { truths: 'actions', lost: 'action lost', predictions: 'Detections', label: 'Class' };
const MOMENT_TEXTS = { truths: 'true windows', lost: 'moment lost', predictions: 'Windows', label: 'Sentence' };

/** Panel of action detection and moment retrieval: the timeline with its filters, legend and table. */
function createTimelinePanel(data, players, hasCorrupted) {
  const timeline = new Timeline({ seek: (time) => players.seek(time), hasCorrupted });
  const moments = data.by_sentence;
  const texts = moments ? MOMENT_TEXTS : DETECTION_TEXTS;
  const allWindows = el('input', { type: 'checkbox', checked: queryParameter('windows', '') === 'all', onchange: () => { filterDetections(); updateQuery({ windows: allWindows.checked ? 'all' : null }); } });
  const maxScore = Math.max(1, ...data.clean.map((detection) => detection.score), ...data.corrupted.map((detection) => detection.score));
  const defaultScore = Math.round(data.score * 100) / 100;
  const score = el('input', { type: 'range', min: 0, max: maxScore, step: 0.01, value: queryParameter('score', defaultScore), 'aria-label': 'Lowest score of a detection' });
  const scoreLabel = el('output', {});
  const tious = [...new Set([...data.tious, data.tiou, 0.3, 0.5, 0.7])].sort();
  const tiou = el('select', { 'aria-label': 'Overlap from which a detection is right' }, tious.map((value) =>
    el('option', { value, selected: value === data.tiou }, value.toFixed(2))));
  const counts = el('p', { class: 'counts' });
  const table = el('details', { class: 'table' }, el('summary', {}, `${texts.predictions} as a table`));
  score.addEventListener('input', () => { filterDetections(); updateQuery({ score: Number(score.value) === defaultScore ? null : score.value }); });
  tiou.addEventListener('change', () => {
    updateQuery({ tiou: tiou.value });
    addEventListener('urlchange', async () => {
      const next = await fetchJson(jsonUrl());
      if (next.page === 'video') { data = next; timeline.update({ data }); filterDetections(); }
    }, { once: true });
  });
  table.addEventListener('toggle', renderTable);
  timeline.update({ data, duration: data.duration, zoom: queryParameter('zoom', 1) });
  filterDetections();

  function filterDetections() {
    timeline.update({ minScore: moments ? -Infinity : Number(score.value), firstOnly: moments && !allWindows.checked });
    scoreLabel.textContent = Number(score.value).toFixed(2);
    const foundClean = timeline.foundActions('clean');
    const foundCorrupted = hasCorrupted ? timeline.foundActions('corrupted') : null;
    const lost = hasCorrupted ? [...foundClean].filter((action) => !foundCorrupted.has(action)).length : 0;
    replaceContent(counts,
      `${data.actions.length} ${texts.truths}; ${foundClean.size} found clean`,
      hasCorrupted ? `, ${foundCorrupted.size} corrupted; ` : '.', hasCorrupted ? el('strong', {}, `${lost} lost`) : '', hasCorrupted ? '.' : '',
      data.left_out ? ` The ${data.left_out} least confident detections are left out.` : '');
    renderTable();
  }

  function renderTable() {
    if (!table.open) return;
    const rows = [['Clean', 'clean'], ...(hasCorrupted ? [['Corrupted', 'corrupted']] : [])].flatMap(([name, side]) =>
      timeline.visibleDetections(side).map((detection) => [name, detection])).sort((a, b) => a[1].start - b[1].start);
    table.querySelector('.scroll')?.remove();
    table.append(el('div', { class: 'scroll' }, el('table', { class: 'list' },
      el('thead', {}, el('tr', {}, ['Video', texts.label, 'Start', 'End', 'Score', 'tIoU', 'Kind'].map((name, i) =>
        el('th', { scope: 'col', class: i > 1 && i < 6 ? 'number' : null }, name)))),
      el('tbody', {}, rows.map(([name, detection]) => el('tr', {},
        el('td', {}, name), el('td', {}, el('button', { type: 'button', class: 'plain', onclick: () => players.seek(detection.start) }, detection.label)),
        [detection.start, detection.end].map((value) => el('td', { class: 'number' }, value.toFixed(2))),
        el('td', { class: 'number' }, detection.score.toFixed(3)), el('td', { class: 'number' }, detection.tiou.toFixed(2)),
        el('td', {}, KINDS[detection.kind] || detection.kind)))))));
  }

  return {
    node: el('div', {}, timeline.node, counts,
      el('ul', { class: 'legend', 'aria-label': `Kinds of ${texts.predictions.toLowerCase()}` },
        Object.entries(KINDS).filter(([kind]) => !moments || ['true_positive', 'localization', 'background'].includes(kind)).map(([kind, label]) => el('li', {}, el('span', { class: `swatch ${kind}` }), label)),
        hasCorrupted ? el('li', {}, el('span', { class: 'swatch lost' }), texts.lost) : null,
        hasCorrupted ? el('li', {}, el('span', { class: 'swatch corrupted-span' }), 'corrupted frames') : null,
        data.found_struck ? el('li', {}, el('span', { class: 'swatch mended-span' }), 'frames found damaged, and mended') : null),
      table),
    controls: [
      moments ? el('label', { class: 'near' }, allWindows, ' all windows') : el('label', { class: 'near slider' }, 'Score ≥ ', score, scoreLabel),
      el('label', { class: 'near' }, 'tIoU ≥ ', tiou)],
    zoom: (factor) => { timeline.update({ zoom: timeline.zoom * factor }); updateQuery({ zoom: timeline.zoom === 1 ? null : timeline.zoom }); },
    setFilm: (film) => timeline.update({ duration: Math.max(film.end_s, ...data.actions.map((action) => action.end)) }),
    setCorruptedSpans: (spans) => timeline.update({ corruptedSpans: spans }),
    setMendedSpans: (spans) => timeline.update({ mendedSpans: spans }),
    setTime: (time, playing) => timeline.setTime(time, playing),
  };
}
