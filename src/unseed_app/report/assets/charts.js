// The plots but for the one of all rows: features, calibration, split and seeds.
const widthOf = (host, most) => Math.max(200, Math.min(state.width ? state.width * (host.dataset.share || 1) : host.clientWidth, most || 1e4));

// Axes and grid; returns scales and the group to draw into.
function frame(host, height, xDomain, yDomain, options) {
  const width = widthOf(host, options.most);
  const yTicks = ticks(yDomain[0], yDomain[1], Math.max(3, Math.round(height / 50)));
  const labels = yTicks.places.map((place) => (options.yText || tickLabel)(place, yTicks.digits));
  const left = 12 + 7 * Math.max(...labels.map((label) => label.length), 1);
  const box = { left, right: width - 8, top: 10, bottom: height - (options.bottom || 40) };
  const x = linear(xDomain, [box.left, box.right]);
  const y = linear(yDomain, [box.bottom, box.top]);
  const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': options.label });
  yTicks.places.forEach((place, i) => root.append(
    svg('path', { class: 'grid', d: `M${box.left} ${y(place).toFixed(1)}H${box.right}` }),
    svg('text', { x: box.left - 6, y: y(place) + 4, 'text-anchor': 'end' }, labels[i]),
  ));
  if (options.xTicks !== false) {
    const xTicks = options.xPlaces ? { places: options.xPlaces, digits: null } : ticks(xDomain[0], xDomain[1], Math.max(3, Math.round((box.right - box.left) / 70)));
    xTicks.places.forEach((place) => root.append(svg('text', { x: x(place), y: box.bottom + 17 + (options.gap || 0), 'text-anchor': 'middle' },
      xTicks.digits === null ? (options.xText || given)(place) : (options.xText || tickLabel)(place, xTicks.digits))));
  }
  if (options.yLabel) root.append(svg('text', { x: box.left + 6, y: box.top + 12 }, options.yLabel));
  if (options.xLabel) root.append(svg('text', { x: (box.left + box.right) / 2, y: height - 4, 'text-anchor': 'middle' }, options.xLabel));
  root.append(svg('path', { class: 'axis', d: `M${box.left} ${box.bottom}H${box.right}` }));
  host.replaceChildren(root);
  return { root, x, y, box, width };
}

function padded(low, high) {
  const room = (high - low || Math.abs(high) || 1) * 0.04;
  return [low - room, high + room];
}

function drawBands() {
  const host = byId('bands');
  const bands = current().bands;
  byId('features').hidden = !bands.length;
  const domain = padded(Math.min(...bands.flatMap((band) => band.low)), Math.max(...bands.flatMap((band) => band.high)));
  const plots = bands.map((band) => {
    const name = report.features[band.feature];
    return { band, name, host: el('div', { class: 'figure', 'data-share': 0.31 }) };
  });
  host.replaceChildren(...plots.map((plot) => el('div', {}, el('h3', { title: plot.name }, plot.name), plot.host)));
  plots.forEach((plot) => drawBand(plot.host, plot.band, plot.name, domain));
}

function drawBand(host, band, name, domain) {
  const v = band.values;
  const ends = [v[0], v[v.length - 1]];
  const isCategory = report.levels[band.feature].length > 0;
  const words = (value) => valueOf(band.feature, value);
  const few = band.isDiscrete && v.length <= 5;
  const { root, x, y, box } = frame(host, 190, few || isCategory ? padded(...ends) : ends, domain, {
    bottom: 34, gap: 9, xPlaces: few ? v : null, xTicks: few || !isCategory, xText: isCategory ? (place) => shortened(words(place), 10) : null,
    label: `Prediction of ${current().name} as ${name} goes from ${words(ends[0])} to ${words(ends[1])}: from ${figure(band.mean[0])} to ${figure(band.mean[v.length - 1])}`,
  });
  const at = (values, i) => `${x(v[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
  const line = (values) => v.map((_, i) => at(values, i)).join('L');
  if (band.isDiscrete) {
    v.forEach((_, i) => root.append(svg('path', { class: 'whisker', d: `M${at(band.low, i)}L${at(band.high, i)}` }), svg('circle', { class: 'dot', cx: x(v[i]), cy: y(band.mean[i]), r: 4.5 })));
  } else {
    const back = v.map((_, i) => at(band.high, v.length - 1 - i)).join('L');
    root.append(svg('path', { class: 'ribbon', d: `M${line(band.low)}L${back}Z` }));
    root.append(svg('path', { class: 'curve', d: `M${line(band.mean)}` }));
  }
  const most = Math.max(...band.histogram);
  const step = (x(ends[1]) - x(ends[0])) / band.histogram.length;
  band.histogram.forEach((count, i) => count && root.append(svg('rect', { class: 'rug', x: x(ends[0]) + i * step, width: Math.max(step - 0.5, 1), y: box.bottom + 2, height: 6, 'fill-opacity': (0.2 + 0.8 * count / most).toFixed(2) })));
  const here = report.x[band.feature][state.row];
  root.append(svg('path', { class: 'here', d: `M${x(here).toFixed(1)} ${box.top}V${box.bottom}` }));
  const area = svg('rect', { class: 'catch', x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
  area.addEventListener('pointermove', (event) => {
    const place = x.back((event.clientX - root.getBoundingClientRect().left) * (root.viewBox.baseVal.width / root.getBoundingClientRect().width));
    const i = v.reduce((best, value, j) => (Math.abs(value - place) < Math.abs(v[best] - place) ? j : best), 0);
    showTip(event, `${name} = ${words(v[i])}`, [`prediction ${figure(band.mean[i])}`, `${percentOfLevel} confidence ${figure(band.low[i])} to ${figure(band.high[i])}`]);
  });
  area.addEventListener('pointerleave', hideTip);
  root.append(area);
}

// What the bands say, without more certainty than eleven looks at the same rows allow.
function verdictOf(curve) {
  const levels = (isBeyond) => curve.nominal.filter((_, i) => isBeyond(i));
  const [less, more] = [levels((i) => curve.observed[i] < curve.low[i]), levels((i) => curve.observed[i] > curve.high[i])];
  if (!less.length && !more.length) return 'Yes, as far as these rows can tell: at every level the share of observed values inside is what chance allows.';
  const say = (found, words, meaning) => (found.length ? `At ${found.length} of ${curve.nominal.length} levels (${found.map(percent).join(', ')}) intervals hold ${words} than they promise, beyond what chance allows${found.length === 1 ? '; one such level can still be luck.' : `: ${meaning}.`}` : '');
  return [say(less, 'less', 'they are too narrow for these rows'), say(more, 'more', 'they are wider than these rows need')].filter(Boolean).join(' ');
}

function drawCoverage() {
  const host = byId('coverage');
  const curve = current().coverage;
  if (!curve) {
    host.replaceChildren(el('p', {}, current().observed ? 'All of these rows were in the training, so nobody can say: give rows that were not.' : 'No observed values were given, so nobody can say.'));
    return;
  }
  const plot = el('div', { class: 'figure', 'data-share': 0.5 });
  const verdict = verdictOf(curve);
  const cells = curve.nominal.map((nominal, i) => el('tr', {}, el('th', { scope: 'row' }, percent(nominal)), el('td', {}, `${(100 * curve.observed[i]).toFixed(1)} %`), el('td', {}, `${(100 * curve.low[i]).toFixed(1)} to ${(100 * curve.high[i]).toFixed(1)} %`)));
  host.replaceChildren(el('p', {}, verdict), el('div', { class: 'side' }, plot, el('div', {},
    el('table', {}, el('caption', {}, 'Prediction intervals: what they promise, the share of observed values inside, and where that share would be by chance in 95 of 100 samples if the promise holds'),
      el('thead', {}, el('tr', {}, ...['promised', 'observed', 'by chance'].map((name) => el('th', { scope: 'col' }, name)))), el('tbody', {}, cells)))));
  drawCoveragePlot(plot, curve, verdict);
  drawPlaces(host, current().places);
}

// Places of the observed values in their laws: bins of equal chance, so that bars of one height mean that the laws are right.
function drawPlaces(host, places) {
  const n = places.counts.length;
  const unlikely = places.counts.filter((count, i) => count < places.low[i] || count > places.high[i]).length;
  const words = `Where observed values are in their laws, from the least to the greatest value that was to be expected: ${unlikely || 'none'} of ${n} bars ${unlikely === 1 ? 'is' : 'are'} outside of what chance allows each in 95 of 100 samples.`;
  const plot = el('div', { class: 'figure' });
  host.append(el('p', {}, words), plot);
  const { root, x, y } = frame(plot, 180, [0, 1], [0, Math.max(...places.counts, places.high[0])], { most: 380, xText: (share) => `${Math.round(100 * share)} %`, xPlaces: [0, 0.2, 0.4, 0.6, 0.8, 1], xLabel: 'place in the law of a new observation', yLabel: 'rows', label: words });
  root.append(svg('path', { class: 'chance', d: `M${x(0)} ${y(places.low[0])}H${x(1)}V${y(places.high[0])}H${x(0)}Z` }));
  places.counts.forEach((count, i) => root.append(svg('path', { class: 'curve', d: `M${x(i / n) + 1} ${y(0)}V${y(count)}H${x((i + 1) / n) - 1}V${y(0)}` }, svg('title', {}, `${count} rows`))));
}

function drawCoveragePlot(plot, curve, verdict) {
  const text = (share) => `${Math.round(100 * share)} %`;
  const { root, x, y } = frame(plot, Math.min(widthOf(plot, 380), 360), [0, 1], [0, 1], { most: 380, xText: text, yText: text, xPlaces: [0, 0.2, 0.4, 0.6, 0.8, 1], xLabel: 'promised', yLabel: 'observed', label: `Observed against promised coverage. ${verdict}` });
  const points = curve.nominal.map((nominal) => x(nominal).toFixed(1));
  const back = points.map((_, i) => points.length - 1 - i);
  root.append(svg('path', { class: 'chance', d: `M${points.map((place, i) => `${place} ${y(curve.low[i])}`).join('L')}L${back.map((i) => `${points[i]} ${y(curve.high[i])}`).join('L')}Z` }));
  root.append(svg('path', { class: 'ideal', d: `M${x(0)} ${y(0)}L${x(1)} ${y(1)}` }));
  root.append(svg('path', { class: 'curve', d: `M${points.map((place, i) => `${place} ${y(curve.observed[i])}`).join('L')}` }));
  curve.nominal.forEach((nominal, i) => root.append(svg('circle', { class: 'dot', cx: x(nominal), cy: y(curve.observed[i]), r: 4.5 }, svg('title', {}, `promised ${percent(nominal)}, observed ${(100 * curve.observed[i]).toFixed(1)} %`))));
}

// Parts of the data's variance: in a few words for one row, and in a clause for all. Those of one's own have their names alone.
const PARTS = {
  posterior: ['few similar training rows', 'what the training rows cannot tell about a function this smooth: large where they have few neighbours'],
  sampling: ['parts of the data disagree', 'fits to parts of the training rows disagree'],
  misfit: ['structure the network missed', 'structure the network has left in its errors'],
  rival: ['a rival network disagrees', 'a different network, which the data like nearly as well, disagrees'],
};
const wordsOfPart = (name) => PARTS[name] || [name, ''];

// One stacked bar of variances; what is taken out of the prediction is hatched.
function splitBar(shares, label) {
  const id = `hatch-${splitBar.count = (splitBar.count || 0) + 1}`;
  const pattern = svg('pattern', { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('path', { class: 'hatch', d: 'M0 0V6' }));
  const root = svg('svg', { class: 'bar', role: 'img', 'aria-label': label }, svg('defs', {}, pattern));
  const total = sum(shares.map((share) => share.value)) || 1;
  let from = 0;
  for (const share of shares) {
    const width = 100 * share.value / total;
    root.append(svg('rect', { class: `seg ${share.kind}`, x: `${from.toFixed(2)}%`, width: `${width.toFixed(2)}%`, height: '100%', fill: share.kind === 'seed' ? `url(#${id})` : null }));
    from += width;
  }
  return root;
}

// Sources of uncertainty of one row, or of all on average: [{kind, name, value: variance, note}].
function sourcesOf(rows) {
  const output = current();
  const average = (values) => sum(rows.map((i) => values[i])) / rows.length;
  const averageSquare = (values) => sum(rows.map((i) => square(values[i]))) / rows.length;
  const sources = [{ kind: 'data', name: report.spread, value: averageSquare(output.error), note: report.spreadMeaning,
    parts: Object.entries(output.parts).map(([key, values]) => ({ name: wordsOfPart(key)[0], note: wordsOfPart(key)[1], value: average(values) })).sort((a, b) => b.value - a.value) }];
  if (output.noise) sources.push({ kind: 'noise', name: 'noise', value: averageSquare(output.noise), note: 'a single observation scatters around the function by this much', parts: [] });
  if (output.seed && report.seedIsTakenOut) sources.push({ kind: 'seed', name: 'seed, taken out', value: averageSquare(output.seed), note: report.seedMeaning, parts: [] });
  return sources;
}
const inWords = (sources) => sources.map((source) => `${source.name} ${plusMinus(Math.sqrt(source.value))}`).join(', ');

function drawSplit() {
  const sources = sourcesOf(report.labels.map((_, i) => i));
  const total = sum(sources.map((source) => source.value)) || 1;
  const line = (source, isMinor) => el('tr', { class: isMinor ? 'minor' : null }, el('th', { scope: 'row' }, isMinor ? '' : el('span', { class: `swatch ${source.kind}` }), source.name), el('td', {}, plusMinus(Math.sqrt(source.value))), el('td', {}, percent(source.value / total)), el('td', { class: 'words' }, source.note));
  byId('split').replaceChildren(
    el('p', {}, 'A single network’s prediction of one new observation would be off for these reasons; the average over all rows, as shares of the variance.'),
    splitBar(sources, `Average split of the variance: ${inWords(sources)}`),
    el('div', { class: 'scroll' }, el('table', { class: 'split' }, el('caption', {}, `Root mean square over the rows, in units of ${current().name}; shares are of the variance`),
      el('thead', {}, el('tr', {}, ...['source', 'size', 'share'].map((name) => el('th', { scope: 'col' }, name)), el('th', { scope: 'col', class: 'words' }, 'what it is'))),
      el('tbody', {}, sources.flatMap((source) => [line(source, false), ...source.parts.filter((part) => part.value > 0).map((part) => line(part, true))])))),
  );
}

function drawSeeds() {
  const output = current();
  const host = byId('seed-plot');
  byId('seeds').hidden = !output.seed;
  if (!output.seed) return;
  const sorted = [...output.seed].sort((a, b) => a - b);
  const [middle, worst] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[sorted.length - 1]].map(plusMinus);
  const share = Math.sqrt(sum(output.seed.map(square)) / (sum(output.error.map(square)) || 1));
  const words = report.seedIsTakenOut
    ? `Another seed would have moved a single network’s prediction by ${middle} at the median row and by ${worst} at the worst: ${figure(share, 2)} times the standard error that is left. Here it is taken out.`
    : `${sentence(report.seedMeaning)}: ${middle} at the median row, ${worst} at the worst.`;
  const plot = el('div', { class: 'figure' });
  const drawn = output.draws ? `dots: what ${output.draws[0].length} other seeds would have said, less the PNC prediction` : 'lines: two standard deviations over seeds, either side';
  host.replaceChildren(el('p', {}, words), plot, el('ul', { class: 'legend' },
    el('li', {}, el('span', { class: 'swatch confidence' }), `${percentOfLevel} confidence interval`), el('li', {}, el('span', { class: 'swatch seed' }), drawn)));
  drawSeedPlot(plot, output);
}

function drawSeedPlot(plot, output) {
  const rows = report.rowsWithSeeds;
  const reach = Math.max(...rows.map((row, i) => Math.max(output.confidence[row], 2 * output.seed[row], ...(output.draws ? output.draws[i].map(Math.abs) : [0]))));
  const { root, x, y } = frame(plot, 240, [-0.6, rows.length - 0.4], padded(-reach, reach), { xTicks: false, bottom: 24, xLabel: `${rows.length} rows, from the smallest prediction to the largest`,
    label: `Movement of a single network’s prediction under other seeds at ${rows.length} rows, against the confidence interval` });
  root.append(svg('path', { class: 'ideal', d: `M${x(-0.6)} ${y(0)}H${x(rows.length - 0.4)}` }));
  rows.forEach((row, i) => {
    const bar = svg('path', { class: 'narrow', 'stroke-width': 14, 'stroke-opacity': 0.5, d: `M${x(i)} ${y(-output.confidence[row])}V${y(output.confidence[row])}` }, svg('title', {}, `${rowName(row)}: confidence ${plusMinus(output.confidence[row])}, seed ${plusMinus(output.seed[row])}`));
    root.append(bar);
    if (output.draws) output.draws[i].forEach((draw, j) => root.append(svg('circle', { class: 'draw', cx: (x(i) + ((j * 7) % 11 - 5)).toFixed(1), cy: y(draw).toFixed(1), r: 2.6 })));
    else root.append(svg('path', { class: 'seedbar', d: `M${x(i)} ${y(-2 * output.seed[row])}V${y(2 * output.seed[row])}` }));
  });
}
