// The filter: A against B, a slice, a measure, a group, a query. The address holds it, by names.
let data, evidence, evidenceOf, beside, places, known, inside; // from start on
const bar = $("client-filter"), state = {};
const selects = Object.fromEntries(found("[data-key]").map((select) => [select.dataset.key, select]));
const placeOf = (key) => known[key].indexOf(state[key]);
const pair = () => (selects.a ? [placeOf("a"), placeOf("b")] : [0, 0]);
const values = (r) => data.values[placeOf("measure")][r];
const explored = () => placeOf("slice") > 0 || placeOf("measure") > 0;

// Over the queries with a value; NaN without any.
const weighted = (places, valueAt) => {
  let sum = 0, total = 0;
  for (const i of places) {
    const value = valueAt(i), weight = data.weights?.[i] ?? 1;
    if (value === null) continue;
    sum += weight * value;
    total += weight;
  }
  return sum / total;
};
const scoreOf = ({ id }, r) => values(r)[places.get(id)] ?? NaN;
const mean = (r, among = inside) => weighted(among, (i) => values(r)[i]);
// Queries won, tied and lost where both are defined.
const record = () => {
  const [x, y] = pair().map(values), both = [...inside].filter((i) => x[i] !== null && y[i] !== null);
  const those = (sign) => count(both.filter((i) => Math.sign(x[i] - y[i]) === sign).length);
  return `won ${those(1)}, tied ${those(0)}, lost ${those(-1)}.`;
};
const among = () => {
  const asked = state.slice ? `${count(inside.size)} of ` : data.ids.length > 1 ? "all " : "";
  return `${state.measure}, ${asked}${queries(data.ids.length)}${state.slice && ` (${state.slice})`}`;
};
const reading = () => {
  const [a, b] = pair(), name = data.retrievers, start = `${among()}: ${name[a]} ${round(mean(a))}`;
  if (!selects.a) return `${start}.`;
  const note = explored() ? " Exploratory: no test was made for this choice." : "";
  return `${start}, ${name[b]} ${round(mean(b))}; ${name[a]} ${record()}${note}`;
};

const draw = () => {
  const slice = placeOf("slice");
  inside = new Set(slice ? data.slices[slice - 1][1] : data.ids.keys());
  for (const key in selects) selects[key].selectedIndex = placeOf(key);
  $("client-filter-reading").textContent = reading();
  // Tests do not change: a note says so while another selection is shown.
  root.classList.toggle("explored", explored());
  drawCharts();
  drawQueries();
};
const initial = () => Object.fromEntries(Object.entries(known).map(([key, choices]) => [key, data.pair[key] ?? choices[0]]));
// Each selection is a step of the history: Back undoes it.
const change = (choice, redraw = draw) => {
  Object.assign(state, choice);
  redraw();
  const address = `#${new URLSearchParams(Object.entries(state).filter(([, value]) => value))}`;
  if (location.hash !== address) history.pushState(null, "", address);
};
// A link names its changes; unknown names are ignored.
const restore = () => {
  const words = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, initial());
  for (const key in known) if (known[key].includes(words.get(key))) state[key] = words.get(key);
  draw();
};

// Packed JSON; rejected if the browser cannot unpack it.
const unpacked = async (id) => {
  const bytes = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
};
const start = async () => {
  [data, evidence, beside] = await Promise.all(["scores", "evidence", "texts"].map(unpacked));
  const { retrievers, measures, ids } = data, [slice, group] = [selects.slice, selects.group].map(({ options }) => [...options].map(({ value }) => value));
  evidenceOf = new Map(evidence.queries.map((query) => [query.id, query]));
  places = new Map(ids.map((id, i) => [id, i]));
  known = { ...(selects.a && { a: retrievers, b: retrievers }), slice, measure: measures, group, q: ["", ...ids] };
  for (const key in selects) on(selects[key], "input", ({ target }) => change({ [key]: known[key][target.selectedIndex] }));
  on($("client-filter-copy"), "click", () => copied(location.href));
  on($("client-filter-reset"), "click", () => change(initial()));
  first("details", bar).open = location.hash.includes("=");
  bar.hidden = browser.hidden = false;
  const look = () => {
    restore();
    if (state.q || state.group) browser.scrollIntoView();
  };
  addEventListener("hashchange", look);
  look();
  root.classList.add("filter-ready");
};
$("print")?.addEventListener("click", () => print());
// A link within the page keeps the address, which has the state; a fold at its target opens.
addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]'), target = link && $(decodeURIComponent(link.hash.slice(1)));
  if (!target) return;
  event.preventDefault();
  target.closest("details")?.setAttribute("open", "");
  target.scrollIntoView();
  if (target.tabIndex < 0) target.tabIndex = -1; // From here on it can have the focus.
  target.focus({ preventScroll: true });
});
