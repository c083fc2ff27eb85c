function drawCharts() {
  drawIntervals();
  drawBands();
  drawCoverage();
  drawSplit();
  drawSeeds();
}

function drawAll() {
  rankRows();
  sortRows();
  state.row = certainty.order[0];
  drawCharts();
  drawTable();
  pick(state.row);
}

function setUp() {
  const orders = Object.entries(ORDERS).filter(([name]) => name !== 'observed' || current().observed);
  byId('order').append(...orders.map(([name, [words]]) => el('option', { value: name }, words)));
  byId('order').addEventListener('change', (event) => { state.sort = event.target.value; sortRows(); drawIntervals(); });
  byId('longer').addEventListener('click', () => { tableState.length += 50; drawTable(); });
  const choice = byId('output');
  if (choice) choice.addEventListener('change', () => { state.output = +choice.value; drawAll(); });
  setUpSearch();
  let [seen, waiting] = [document.documentElement.clientWidth, 0];
  window.addEventListener('resize', () => {
    if (document.documentElement.clientWidth === seen) return;
    seen = document.documentElement.clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawCharts);
  });
  window.addEventListener('beforeprint', () => { state.width = 680; drawCharts(); });
  window.addEventListener('afterprint', () => { state.width = null; drawCharts(); });
}

setUp();
drawAll();
