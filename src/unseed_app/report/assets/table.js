// The table of rows: sorted over all of them, as many shown as asked for.
const tableState = { key: 'confidence', sign: -1, length: 12 };
const collator = new Intl.Collator('en', { numeric: true });

function columns() {
  const output = current();
  return [
    { key: 'label', name: 'row', values: report.labels },
    { key: 'mean', name: 'prediction', values: output.mean },
    { key: 'confidence', name: `${percentOfLevel} confidence`, values: output.confidence, text: (i) => range(output.mean[i], output.confidence[i]) },
    { key: 'observed', name: 'observed', values: output.observed, kind: (i) => (isMissed(output, i) ? 'missed' : null) },
    { key: 'error', name: `± ${report.spread}`, values: output.error, digits: 3 },
    { key: 'noise', name: '± noise', values: output.noise, digits: 3 },
    { key: 'seed', name: '± seed', values: output.seed, digits: 3 },
    { key: 'why', name: 'mainly because', values: null, text: mainReason },
  ].filter((column) => column.values || column.text);
}

function drawTable() {
  const shown = columns();
  const by = shown.find((column) => column.key === tableState.key) || shown[2];
  const compare = by.key === 'label' ? collator.compare : (a, b) => a - b;
  const order = report.labels.map((_, i) => i).sort((a, b) => tableState.sign * compare(by.values[a], by.values[b]) || a - b);
  const visible = order.slice(0, tableState.length);
  byId('table').replaceChildren(
    el('caption', {}, 'Click a heading to sort all rows by it, a row to see why it is uncertain. Observed values outside their prediction interval are coloured and marked ×.'),
    el('thead', {}, el('tr', {}, shown.map((column) => heading(column, by)))),
    el('tbody', {}, visible.map((row) => tableRow(row, shown))),
  );
  const left = nRows - visible.length;
  byId('longer').hidden = left <= 0;
  byId('longer').textContent = `Show ${Math.min(50, left)} more`;
  byId('shown').textContent = `${visible.length.toLocaleString('en')} of ${nRows.toLocaleString('en')} rows`;
  markTable();
}

function heading(column, by) {
  if (!column.values) return el('th', { scope: 'col', class: 'words' }, column.name);
  const direction = tableState.sign < 0 ? 'descending' : 'ascending';
  const button = el('button', { type: 'button', 'data-key': column.key }, column.name);
  button.addEventListener('click', () => {
    tableState.sign = column.key === by.key ? -tableState.sign : column.key === 'label' ? 1 : -1;
    tableState.key = column.key;
    drawTable();
    byId('table').querySelector(`[data-key="${column.key}"]`).focus({ preventScroll: true });
  });
  return el('th', { scope: 'col', 'aria-sort': column.key === by.key ? direction : 'none' }, button);
}

function tableRow(row, shown) {
  const cells = shown.map((column) => {
    if (column.key === 'label') return el('th', { scope: 'row' }, el('button', { type: 'button', title: report.labels[row] }, report.labels[row]));
    const kind = column.kind ? column.kind(row) : null;
    const text = column.text ? column.text(row) : figure(column.values[row], column.digits || 4);
    return el('td', { class: column.values ? kind : 'words' }, kind === 'missed' ? `× ${text}` : text);
  });
  const line = el('tr', { 'data-row': row }, cells);
  line.addEventListener('click', () => {
    pick(row);
    if (getComputedStyle(byId('row')).position !== 'sticky') byId('row').scrollIntoView({ block: 'start' });
  });
  return line;
}

function markTable() {
  byId('table').querySelectorAll('tbody tr').forEach((line) => line.classList.toggle('picked', +line.dataset.row === state.row));
}
