// All rows with both intervals: one path for each kind of mark, whatever the number of rows.
const ORDERS = {
  mean: ['prediction', (output) => output.mean], error: ['uncertainty, least certain last', (output) => output.confidence],
  observed: ['observed value', (output) => output.observed], file: ['place in the data', null],
};
const plotState = { order: [], place: [] };

function sortRows() {
  const by = ORDERS[state.sort][1];
  const order = report.labels.map((_, i) => i);
  if (by) { const values = by(current()); order.sort((a, b) => values[a] - values[b] || a - b); }
  plotState.order = order;
  order.forEach((row, i) => { plotState.place[row] = i; });
}

const isMissed = (output, i) => output.observed && output.prediction && Math.abs(output.observed[i] - output.mean[i]) > output.prediction[i];

function drawIntervals() {
  const output = current();
  const { order } = plotState;
  const wide = output.prediction || output.confidence;
  let [low, high] = [Infinity, -Infinity];
  order.forEach((i) => {
    low = Math.min(low, output.mean[i] - wide[i], output.observed ? output.observed[i] : Infinity);
    high = Math.max(high, output.mean[i] + wide[i], output.observed ? output.observed[i] : -Infinity);
  });
  const made = frame(byId('intervals-plot'), state.width ? 280 : 360, [-0.5, nRows - 0.5], padded(low, high), { xTicks: false, bottom: 26, xLabel: `${nRows.toLocaleString('en')} rows, sorted by ${ORDERS[state.sort][0].split(',')[0]}`,
    label: `Predictions of ${output.name} for ${nRows} rows with confidence and prediction intervals` });
  Object.assign(plotState, made);
  const step = (made.box.right - made.box.left) / nRows;
  const perColumn = Math.max(1, Math.round(2.4 / step));
  drawMarks(output, made, step, perColumn);
  describeIntervals(output, perColumn);
  made.mark = svg('g', { id: 'marker' });
  made.hair = svg('path', { class: 'hair', d: '' });
  plotState.mark = made.mark; plotState.hair = made.hair;
  const area = svg('rect', { class: 'catch', id: 'catch', x: made.box.left, y: made.box.top, width: made.box.right - made.box.left, height: made.box.bottom - made.box.top });
  area.addEventListener('pointermove', hoverRow);
  area.addEventListener('pointerleave', () => { hideTip(); plotState.hair.setAttribute('d', ''); });
  area.addEventListener('click', (event) => pick(rowAt(event)));
  made.root.append(made.hair, made.mark, area);
  made.root.setAttribute('tabindex', '0');
  made.root.addEventListener('keydown', stepThroughRows);
  markRow();
}

// With many rows a column of a few pixels stands for several: the interval of the middle one by width is drawn thick, the
// widest thin, the smallest and largest observation inside as dots; observations outside are all drawn.
function drawMarks(output, { root, x, y }, step, perColumn) {
  const paths = { extreme: [], wide: [], narrow: [], mean: [], hit: [], miss: [] };
  const half = output.prediction || output.confidence;
  const bar = (at, row, halves) => `M${at} ${y(output.mean[row] - halves[row]).toFixed(1)}V${y(output.mean[row] + halves[row]).toFixed(1)}`;
  const arm = perColumn > 1 ? 2.2 : 3.5;
  for (let start = 0; start < nRows; start += perColumn) {
    const rows = plotState.order.slice(start, start + perColumn).sort((a, b) => half[a] - half[b]);
    const [at, typical] = [x(start + (rows.length - 1) / 2).toFixed(1), rows[Math.floor((rows.length - 1) / 2)]];
    if (rows.length > 1) paths.extreme.push(bar(at, rows[rows.length - 1], half));
    if (output.prediction) paths.wide.push(bar(at, typical, output.prediction));
    paths.narrow.push(bar(at, typical, output.confidence));
    paths.mean.push(`M${at} ${y(output.mean[typical]).toFixed(1)}h0`);
    if (!output.observed) continue;
    rows.filter((i) => isMissed(output, i)).forEach((i) => {
      const [px, py] = [x(plotState.place[i]), y(output.observed[i])];
      paths.miss.push(`M${(px - arm).toFixed(1)} ${(py - arm).toFixed(1)}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`);
    });
    const hits = rows.filter((i) => !isMissed(output, i)).map((i) => output.observed[i]);
    if (hits.length) new Set([Math.min(...hits), Math.max(...hits)]).forEach((value) => paths.hit.push(`M${at} ${y(value).toFixed(1)}h0`));
  }
  const column = step * perColumn;
  const thick = perColumn > 1 ? column + 0.4 : Math.min(10, Math.max(1.4, 0.72 * column));
  const dot = perColumn > 1 ? 2 : Math.min(6, Math.max(2.6, 0.6 * column));
  const sizes = { extreme: 1, wide: thick, narrow: thick, mean: dot, hit: dot, miss: perColumn > 1 ? 1.2 : 1.8 };
  for (const [kind, pieces] of Object.entries(paths)) root.append(svg('path', { class: kind, 'stroke-width': sizes[kind], d: pieces.join('') }));
}

function describeIntervals(output, perColumn) {
  const many = perColumn > 1 ? ` Each column stands for ${perColumn} rows: a typical interval, the widest as a thin line, and every observation outside.` : '';
  byId('intervals-hint').textContent = `Hover for values; click a row, or focus the plot and use the arrow keys, to see why it is as certain as it is.${many}`;
  const items = [[el('span', { class: 'swatch prediction' }), `${percentOfLevel} prediction interval`], [el('span', { class: 'swatch confidence' }), `${percentOfLevel} confidence interval`], [key('●', '--mean'), 'prediction']];
  if (!output.prediction) items.shift();
  if (output.observed) items.push([key('●', '--observed'), 'observed, inside'], [key('×', '--observed'), 'observed, outside its prediction interval']);
  byId('intervals-legend').replaceChildren(...items.map((item) => el('li', {}, ...item)));
}
function key(sign, colour) {
  const node = el('span', { class: 'key', 'aria-hidden': 'true' }, sign);
  node.style.color = `var(${colour})`;
  return node;
}

// The row under the pointer: of those within a few pixels sideways, the one whose prediction or observation is nearest.
function rowAt(event) {
  const { root, box, x, y, width } = plotState;
  const bounds = root.getBoundingClientRect();
  const [px, py] = [(event.clientX - bounds.left) * width / bounds.width, (event.clientY - bounds.top) * width / bounds.width];
  const centre = Math.round(x.back(Math.min(Math.max(px, box.left), box.right)));
  const reach = Math.floor(3 * nRows / (box.right - box.left));
  const output = current();
  let [best, nearest] = [plotState.order[Math.min(Math.max(centre, 0), nRows - 1)], Infinity];
  for (let i = Math.max(0, centre - reach); reach && i <= Math.min(nRows - 1, centre + reach); i += 1) {
    const row = plotState.order[i];
    const distance = Math.min(Math.abs(y(output.mean[row]) - py), output.observed ? Math.abs(y(output.observed[row]) - py) : Infinity);
    if (distance < nearest) [best, nearest] = [row, distance];
  }
  return best;
}

function hoverRow(event) {
  const row = rowAt(event);
  const output = current();
  const lines = [`prediction ${figure(output.mean[row])}`, `${percentOfLevel} confidence ${range(output.mean[row], output.confidence[row])}`];
  if (output.prediction) lines.push(`${percentOfLevel} prediction ${range(output.mean[row], output.prediction[row])}`);
  if (output.observed) lines.push(`observed ${figure(output.observed[row])}${isMissed(output, row) ? ', outside' : ''}`);
  showTip(event, rowName(row), lines);
  plotState.hair.setAttribute('d', `M${plotState.x(plotState.place[row]).toFixed(1)} ${plotState.box.top}V${plotState.box.bottom}`);
}

function stepThroughRows(event) {
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -nRows, End: nRows };
  if (!(event.key in moves)) return;
  event.preventDefault();
  pick(plotState.order[Math.min(nRows - 1, Math.max(0, plotState.place[state.row] + moves[event.key]))]);
}

function markRow() {
  const { x, y, box, place, mark } = plotState;
  const at = x(place[state.row]).toFixed(1);
  mark.replaceChildren(svg('path', { class: 'here', d: `M${at} ${box.top}V${box.bottom}` }), svg('circle', { class: 'ring', cx: at, cy: y(current().mean[state.row]).toFixed(1), r: 6 }));
}
