// One clientFilter for the page: A against B, a slice, a measure. It stands in the address; whoever follows it listens.
// Packed JSON; rejected where the browser cannot unpack it.
const unpacked = async (id) => {
  const letters = atob($(id).textContent), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
};
let kept = null; // from clientFilter.start on
const evidence = () => kept;
const clientFilter = (() => {
  const bar = $("client-filter"), selects = [...bar.querySelectorAll("select")];
  const state = { a: 0, b: 0, slice: "", measure: 0, group: "", q: "" };
  const listeners = [];
  let data = null, known = {}, places = new Map(), members = null;

  const initial = () => ({ a: data.pair[0], b: data.pair[1], slice: "", measure: 0, group: "", q: "" });
  const chosen = () => data.slices.get(state.slice) ?? [...data.ids.keys()];
  const values = (r, m = state.measure) => data.values[m][r];
  const weight = (i) => (data.weights ? data.weights[i] : 1);
  // NaN without any.
  const weighted = (pairs) => pairs.reduce((sum, [i, value]) => sum + weight(i) * value, 0) / pairs.reduce((sum, [i]) => sum + weight(i), 0);
  const mean = (r, m = state.measure, among = chosen()) =>
    weighted(among.map((i) => [i, values(r, m)[i]]).filter(([, value]) => value !== null));
  // Queries, mean difference and who is higher, where both are defined.
  const apart = (a, b) => {
    const x = values(a), y = values(b), places = chosen().filter((i) => x[i] !== null && y[i] !== null);
    const differences = places.map((i) => (Math.abs(x[i] - y[i]) < 1e-6 ? 0 : x[i] - y[i]));
    const those = (sign) => differences.filter((d) => Math.sign(d) === sign).length;
    return { places, differences, mean: weighted(places.map((i, at) => [i, differences[at]])), better: those(1), equal: those(0), worse: those(-1) };
  };
  const plain = () => state.slice === "" && state.measure === 0;
  const among = () => (state.slice ? `${count(chosen().length)} of ${count(data.ids.length)} queries (${state.slice})` : `all ${count(data.ids.length)} queries`);
  const reading = () => {
    const { a, b } = state, name = data.retrievers;
    const start = `${data.measures[state.measure]}, ${among()}: ${name[a]} ${round(mean(a))}`;
    if (name.length < 2) return `${start}.`;
    const { better, equal, worse } = apart(a, b);
    const record = `${name[a]} higher on ${count(better)}, equal on ${count(equal)}, lower on ${count(worse)}.`;
    return `${start}, ${name[b]} ${round(mean(b))}; ${record}${plain() ? "" : " Exploratory: no test was made for this choice."}`;
  };

  const keyOf = (select) => select.id.replace("client-filter-", "");
  const draw = () => {
    for (const select of selects) select.value = state[keyOf(select)];
    $("client-filter-reading").textContent = reading();
    members = state.slice ? new Set(chosen().map((i) => data.ids[i])) : null;
    // What was tested stays as it was: it says so while another choice is looked at.
    for (const note of document.querySelectorAll(".fixed")) note.hidden = plain();
    listeners.forEach((listener) => listener());
  };
  const isPlace = (key) => ["a", "b", "measure"].includes(key);
  const address = () => {
    const said = Object.entries(state).filter(([key, value]) => (key === "a" || key === "b" ? data.retrievers.length > 1 : value));
    return `#${new URLSearchParams(said.map(([key, value]) => [key, isPlace(key) ? known[key][value] : value]))}`;
  };
  // Each choice is a step of the history: Back takes it back.
  const change = (choice) => {
    Object.assign(state, choice);
    draw();
    if (location.hash !== address()) history.pushState(null, "", address());
  };
  // A link says what it changes; what the page does not have is passed over.
  const restore = ({ state: past } = {}) => {
    const words = new URLSearchParams(location.hash.slice(1));
    if (past === undefined && !Object.keys(state).some((key) => words.has(key))) return;
    Object.assign(state, initial());
    for (const [key, possible] of Object.entries(known)) {
      const at = possible.indexOf(words.get(key));
      if (at >= 0) state[key] = isPlace(key) ? at : possible[at];
    }
    draw();
    if (past === undefined && (words.has("q") || words.has("group"))) $("queries").scrollIntoView();
  };

  const option = (value, text) => put(make("option", "", text), { value });
  const start = async () => {
    [data, kept] = await Promise.all(["scores", "evidence"].map(unpacked));
    const names = data.retrievers, slices = Object.entries(data.slices);
    data.slices = new Map(slices);
    places = new Map(data.ids.map((id, i) => [id, i]));
    known = { a: names, b: names, slice: slices.map(([name]) => name), measure: data.measures, group: ["lost", "won", ...Object.keys(kept.groups)], q: data.ids };
    const sizes = slices.map(([name, of]) => option(name, `${name} (${of.length})`));
    for (const select of selects) {
      const key = keyOf(select);
      select.append(...(key === "slice" ? [option("", data.all), ...sizes] : known[key].map((name, i) => option(i, name))));
      if (key === "measure" && data.left) select.append(put(make("option", "", `${data.left} more in scores.csv`), { disabled: "" }));
      select.addEventListener("input", () => change({ [key]: isPlace(key) ? Number(select.value) : select.value }));
    }
    Object.assign(state, initial());
    $("client-filter-copy").addEventListener("click", () => copied(location.href.split("#")[0] + address()));
    $("client-filter-reset").addEventListener("click", () => change(initial()));
    bar.querySelector("details").open = location.hash.includes("=");
    bar.hidden = false;
    // What has the focus is never hidden behind the bar.
    const clear = () => { root.style.scrollPaddingBottom = `${bar.offsetHeight + 12}px`; };
    clear();
    new ResizeObserver(clear).observe(bar);
    addEventListener("popstate", restore);
    addEventListener("hashchange", () => restore());
    draw();
    restore();
    root.classList.add("filter-ready");
  };
  return {
    state, change, chosen, values, mean, apart, plain, start,
    note: () => `${data.measures[state.measure]}, ${among()}: exploratory`,
    data: () => data,
    follow: (listener) => listeners.push(listener),
    // Ids of the slice's queries; null where all are looked at.
    members: () => members,
    place: (id) => places.get(id),
    score: (id, r) => values(r)[places.get(id)] ?? NaN,
  };
})();
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
