// One row: how sure, and why. And the ways to pick it.
const certainty = { order: [], rank: [] };

function rankRows() {
  const { confidence } = current();
  certainty.order = report.labels.map((_, i) => i).sort((a, b) => confidence[b] - confidence[a] || a - b);
  certainty.order.forEach((row, i) => { certainty.rank[row] = i; });
}

const sentence = (words) => words[0].toUpperCase() + words.slice(1);
const shareBelow = (values, value) => sum(values.map((other) => (other < value ? 1 : other === value ? 0.5 : 0))) / values.length;

function strip(share, label) {
  const root = svg('svg', { class: 'rank', role: 'img', 'aria-label': label });
  root.append(svg('line', { class: 'track', x1: '3%', x2: '97%', y1: 6, y2: 6 }), svg('circle', { class: 'pointer', cx: `${(5 + 90 * share).toFixed(1)}%`, cy: 6, r: 4.5 }));
  return root;
}

// Reasons in words, the strongest first.
function reasonsOf(row) {
  const output = current();
  const reasons = [];
  if (farRows.has(row)) reasons.push('It lies outside what the training rows cover: prediction and interval are extrapolated.');
  const total = square(output.error[row]);
  Object.entries(output.parts).map(([part, values]) => [part, values[row] / (total || 1)]).filter(([, share]) => share >= 0.1).sort((a, b) => b[1] - a[1])
    .forEach(([part, share]) => reasons.push(`${sentence(wordsOfPart(part)[0])}: ${percent(share)} of the variance of the prediction.`));
  (output.reasons[row] || []).forEach(([feature, saved]) => {
    reasons.push(`${report.features[feature]} = ${valueOf(feature, report.x[feature][row])}: with a typical value instead, the standard error would be ${percent(saved)} smaller.`);
  });
  if (!output.reasons[row] && report.features.length) reasons.push('Which features make it uncertain was asked for less certain rows only.');
  else if (report.features.length && !output.reasons[row].length) reasons.push('No single feature makes it uncertain: with a typical value of any one of them it would be about as uncertain, or more.');
  return reasons;
}

function mainReason(row) {
  const output = current();
  if (farRows.has(row)) return 'outside the training rows';
  const feature = (output.reasons[row] || [])[0];
  if (feature) return `${report.features[feature[0]]} = ${valueOf(feature[0], report.x[feature[0]][row])}`;
  const parts = Object.entries(output.parts).sort((a, b) => b[1][row] - a[1][row]);
  return parts.length ? wordsOfPart(parts[0][0])[0] : '';
}

function drawRow() {
  const output = current();
  const row = state.row;
  const below = nRows > 1 ? 1 - certainty.rank[row] / (nRows - 1) : 0.5;
  const rank = certainty.rank[row] === 0 ? 'the least certain row' : certainty.rank[row] === nRows - 1 ? 'the most certain row' : `less certain than ${percent(below)} of the rows`;
  byId('row-body').replaceChildren(
    el('h2', { id: 'row-title' }, rowName(row)),
    el('p', { class: 'value' }, figure(output.mean[row]), ' ', el('small', {}, plusMinus(output.confidence[row]))),
    rangesOf(output, row),
    el('h3', {}, `How sure? ${sentence(rank)}`),
    strip(1 - below, `${rank}, on a line from least to most certain`),
    el('div', { class: 'ends' }, el('span', {}, 'least certain'), el('span', {}, 'most certain')),
    el('h3', {}, 'Where its uncertainty comes from'), ...splitOf(row),
    el('h3', {}, 'Why'), el('ul', { class: 'why' }, reasonsOf(row).map((reason) => el('li', {}, reason))),
    ...(report.features.length ? [el('h3', {}, 'Its values'), valuesOf(row)] : []),
  );
}

function rangesOf(output, row) {
  const lines = [[`${percentOfLevel} confidence`, range(output.mean[row], output.confidence[row])]];
  if (output.prediction) lines.push([`${percentOfLevel} prediction`, range(output.mean[row], output.prediction[row])]);
  const list = el('dl', { class: 'ranges' }, lines.map(([name, words]) => [el('dt', {}, name), el('dd', {}, words)]));
  if (output.observed) {
    const missed = isMissed(output, row);
    list.append(el('dt', {}, 'observed'), el('dd', { class: missed ? 'missed' : null }, `${figure(output.observed[row])}${!output.prediction ? '' : missed ? ', outside the prediction interval' : ', inside'}`));
  }
  return list;
}

function splitOf(row) {
  const sources = sourcesOf([row]);
  const total = sum(sources.map((source) => source.value)) || 1;
  const { seed } = current();
  const words = !seed ? null : report.seedIsTakenOut
    ? `Another seed would have moved a single network’s prediction of this row by ${plusMinus(seed[row])}; here that is taken out.`
    : `Another seed would have moved this prediction by ${plusMinus(seed[row])}.`;
  return [splitBar(sources, `Split of the variance of this row: ${inWords(sources)}`),
    el('table', { class: 'split' }, el('tbody', {}, sources.map((source) => el('tr', {}, el('th', { scope: 'row' }, el('span', { class: `swatch ${source.kind}` }), source.name), el('td', {}, plusMinus(Math.sqrt(source.value))), el('td', {}, percent(source.value / total)))))),
    words && el('p', { class: 'hint' }, words)];
}

function valuesOf(row) {
  return el('table', { class: 'values' }, el('tbody', {}, report.features.map((name, j) => {
    const value = report.x[j][row];
    if (report.levels[j].length) {
      const alike = sum(report.x[j].map((other) => (other === value ? 1 : 0))) / nRows;
      return el('tr', {}, el('th', { scope: 'row', title: name }, name), el('td', { class: nRows >= 40 && alike < 0.05 ? 'odd' : null }, valueOf(j, value)), el('td', { class: 'strip', title: `${percent(alike)} of the rows have it` }, el('small', {}, `in ${percent(alike)}`)));
    }
    const share = shareBelow(report.x[j], value);
    const isOdd = nRows >= 40 && (share < 0.025 || share > 0.975);
    return el('tr', {}, el('th', { scope: 'row', title: name }, name), el('td', { class: isOdd ? 'odd' : null }, given(value)), el('td', { class: 'strip' }, strip(share, `larger than ${percent(share)} of the rows`)));
  })));
}

function pick(row) {
  state.row = row;
  drawRow();
  markRow();
  drawBands();
  markTable();
  byId('less').disabled = certainty.rank[row] === 0;
  byId('more').disabled = certainty.rank[row] === nRows - 1;
}
const pickByRank = (step) => pick(certainty.order[Math.min(nRows - 1, Math.max(0, certainty.rank[state.row] + step))]);

// A combobox: type part of a label, arrows choose among the matches, Enter takes one, Escape closes.
function setUpSearch() {
  const [input, list] = [byId('search'), byId('matches')];
  const lower = report.labels.map((label) => label.toLowerCase());
  let [matches, active] = [[], -1];
  const close = () => { list.hidden = true; input.setAttribute('aria-expanded', 'false'); input.removeAttribute('aria-activedescendant'); };
  const take = (row) => { input.value = report.labels[row]; close(); pick(row); };
  const show = () => {
    list.replaceChildren(...matches.map((row, i) => {
      const option = el('li', { role: 'option', id: `match-${i}`, 'aria-selected': String(i === active) }, report.labels[row]);
      option.addEventListener('pointerdown', (event) => { event.preventDefault(); take(row); });
      return option;
    }));
    if (!matches.length) list.append(el('li', { 'aria-disabled': 'true' }, 'no such row'));
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    if (active >= 0) input.setAttribute('aria-activedescendant', `match-${active}`);
  };
  input.addEventListener('input', () => {
    const text = input.value.trim().toLowerCase();
    const quality = (label) => (label === text ? 0 : label.startsWith(text) ? 1 : label.includes(text) ? 2 : 3);
    matches = text ? lower.map((label, i) => [quality(label), i]).filter(([q]) => q < 3).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, 8).map(([, i]) => i) : [];
    active = matches.length ? 0 : -1;
    if (text) show(); else close();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close();
    if (list.hidden || !matches.length) return;
    if (event.key === 'Enter') take(matches[active]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    active = (active + step + matches.length) % matches.length;
    show();
  });
  input.addEventListener('blur', close);
  byId('less').addEventListener('click', () => pickByRank(-1));
  byId('more').addEventListener('click', () => pickByRank(1));
}
