// Small helpers: elements, numbers in words, scales. Text from the data only ever becomes text nodes.
const report = JSON.parse(document.getElementById('data').textContent);
const state = { output: 0, row: 0, sort: 'mean', width: null };
const byId = (id) => document.getElementById(id);
const current = () => report.outputs[state.output];
const nRows = report.labels.length;
const farRows = new Set(report.far || []);
const percentOfLevel = `${+(100 * report.level).toPrecision(6)}\u00a0%`;

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

function figure(value, significant = 4) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  const digits = size === 0 ? 0 : Math.max(0, significant - 1 - Math.floor(Math.log10(size)));
  const text = size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential(significant - 1)
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return text.replace('-', '−');
}
// A value of a feature, as it is in the data: no zeros that are not there.
function given(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return figure(value);
  return value.toLocaleString('en', { maximumFractionDigits: size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size))) }).replace('-', '−');
}
// The same with the feature's own words: a category has names for its values.
const valueOf = (feature, value) => (report.levels[feature].length ? report.levels[feature][value] : given(value));
const rowName = (row) => (/^\d+$/.test(report.labels[row]) ? `Row ${report.labels[row]}` : report.labels[row]);
const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const plusMinus = (value) => `±\u00a0${figure(value, 3)}`;
const percent = (share) => `${share > 0 && share < 0.01 ? '<\u00a01' : Math.round(100 * share)}\u00a0%`;
const range = (centre, half) => `${figure(centre - half)} to ${figure(centre + half)}`;
const square = (value) => value * value;
const sum = (values) => values.reduce((total, value) => total + value, 0);

function linear(from, to) {
  const slope = (to[1] - to[0]) / (from[1] - from[0] || 1);
  const scale = (value) => to[0] + slope * (value - from[0]);
  scale.back = (place) => from[0] + (place - to[0]) / slope;
  return scale;
}

function ticks(low, high, count) {
  const raw = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const places = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) places.push(i * step);
  return { places, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}
function tickLabel(value, digits) {
  if (value !== 0 && (Math.abs(value) >= 1e6 || digits > 5)) return (+value.toPrecision(6)).toExponential().replace('-', '−').replace('e+', 'e');
  return (+value.toFixed(digits)).toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace('-', '−');
}

const tip = byId('tip');
function showTip(event, title, lines) {
  tip.replaceChildren(el('strong', {}, title), ...lines.map((line) => el('div', {}, line)));
  tip.hidden = false;
  const page = document.documentElement;
  const left = Math.min(event.pageX + 14, page.scrollLeft + page.clientWidth - tip.offsetWidth - 8);
  const below = event.pageY + 18;
  const isOff = below + tip.offsetHeight > page.scrollTop + page.clientHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${isOff ? event.pageY - tip.offsetHeight - 12 : below}px`;
}
const hideTip = () => { tip.hidden = true; };
