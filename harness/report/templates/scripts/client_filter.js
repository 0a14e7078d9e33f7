// The filter: A against B, a slice, a measure, a group, a query. It stands in the address, by names.
let data, evidence, beside, places, known, inside; // from start on
const bar = $("client-filter"), state = {};
const selectOf = (key) => $(key === "group" ? "look-group" : `client-filter-${key}`);
const placeOf = (key) => known[key].indexOf(state[key]);
const pair = () => (known.a ? [placeOf("a"), placeOf("b")] : [0, 0]);
const values = (r) => data.values[placeOf("measure")][r];
const explored = () => placeOf("slice") > 0 || placeOf("measure") > 0;

// NaN without any.
const weighted = (places, valueAt) => {
  let sum = 0, total = 0;
  for (const i of places) {
    const weight = data.weights?.[i] ?? 1;
    sum += weight * valueAt(i);
    total += weight;
  }
  return sum / total;
};
const mean = (r, among = inside) => weighted([...among].filter((i) => values(r)[i] !== null), (i) => values(r)[i]);
// Mean difference and who is higher, on the queries where both are defined.
const compared = () => {
  const [x, y] = pair().map(values), differences = new Map();
  for (const i of inside) if (x[i] !== null && y[i] !== null) differences.set(i, Math.abs(x[i] - y[i]) < 1e-6 ? 0 : x[i] - y[i]);
  const those = (sign) => count([...differences.values()].filter((d) => Math.sign(d) === sign).length);
  const mean = weighted(differences.keys(), (i) => differences.get(i));
  return { differences, mean, record: `higher on ${those(1)}, equal on ${those(0)}, lower on ${those(-1)}.` };
};
const among = () => {
  const asked = state.slice ? `${count(inside.size)} of` : "all";
  return `${state.measure}, ${asked} ${count(data.ids.length)} queries${state.slice && ` (${state.slice})`}`;
};
const reading = () => {
  const [a, b] = pair(), name = data.retrievers, start = `${among()}: ${name[a]} ${round(mean(a))}`;
  if (!known.a) return `${start}.`;
  const note = explored() ? " Exploratory: no test was made for this choice." : "";
  return `${start}, ${name[b]} ${round(mean(b))}; ${name[a]} ${compared().record}${note}`;
};

const draw = () => {
  const slice = placeOf("slice");
  inside = new Set(slice ? data.slices[slice - 1][1] : data.ids.keys());
  for (const key in known) if (selectOf(key)) selectOf(key).selectedIndex = placeOf(key);
  $("client-filter-reading").textContent = reading();
  // What was tested stays as it was: it says so while another choice is looked at.
  root.classList.toggle("explored", explored());
  drawCharts();
  drawQueries();
};
const initial = () => Object.fromEntries(Object.entries(known).map(([key, [first]]) => [key, data.pair[key] ?? first]));
// Each choice is a step of the history: Back takes it back.
const change = (choice) => {
  Object.assign(state, choice);
  draw();
  const address = `#${new URLSearchParams(Object.entries(state).filter(([, value]) => value))}`;
  if (location.hash !== address) history.pushState(null, "", address);
};
// A link says what it changes; what the page does not have is passed over.
const restore = () => {
  const words = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, initial());
  for (const key in known) if (known[key].includes(words.get(key))) state[key] = words.get(key);
  draw();
};

// Packed JSON; rejected where the browser cannot unpack it.
const unpacked = async (id) => {
  const bytes = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
};
const start = async () => {
  [data, evidence, beside] = await Promise.all(["scores", "evidence", "texts"].map(unpacked));
  const { retrievers, slices, measures, ids, left } = data, groups = [...selectOf("group").options].map(({ value }) => value);
  places = new Map(ids.map((id, i) => [id, i]));
  known = { slice: ["", ...slices.map(([name]) => name)], measure: measures, group: groups, q: ["", ...ids] };
  if (retrievers.length > 1) known = { a: retrievers, b: retrievers, ...known };
  const shown = { ...known, slice: [data.all, ...slices.map(([name, places]) => `${name} (${places.length})`)] };
  for (const key in known) {
    const select = selectOf(key), option = (text, value) => put(make("option", "", text), { value });
    if (key !== "group") select?.append(...shown[key].map(option));
    select?.addEventListener("input", () => change({ [key]: known[key][select.selectedIndex] }));
  }
  if (left) selectOf("measure").append(put(make("option", "", `${left} more in scores.csv`), { disabled: "" }));
  $("client-filter-copy").addEventListener("click", () => copied(location.href));
  $("client-filter-reset").addEventListener("click", () => change(initial()));
  bar.querySelector("details").open = location.hash.includes("=");
  bar.hidden = browser.hidden = false;
  addEventListener("hashchange", restore);
  restore();
  if (state.q || state.group) $("queries").scrollIntoView();
  root.classList.add("filter-ready");
};
$("print")?.addEventListener("click", () => print());
// A way within the page leaves the address, which holds the state; a fold that it leads to opens.
addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]'), target = link && $(decodeURIComponent(link.hash.slice(1)));
  if (!target) return;
  event.preventDefault();
  target.closest("details")?.setAttribute("open", "");
  target.scrollIntoView();
  if (!target.matches("input, summary, button")) target.tabIndex = -1;
  target.focus({ preventScroll: true });
});
