// One clientFilter for the page: A against B, a slice, a measure. It stands in the address; whoever follows it listens.
const clientFilter = (() => {
  const bar = $("client-filter");
  const pick = { a: $("client-filter-a"), b: $("client-filter-b"), slice: $("client-filter-slice"), measure: $("client-filter-measure") };
  const state = { a: 0, b: 0, slice: "", measure: 0, group: "", q: "" };
  const listeners = [];
  let data = null, places = new Map(), members = null;

  const initial = () => ({ a: data.pair[0], b: data.pair[1], slice: "", measure: 0, group: "", q: "" });
  const everywhere = () => data.ids.map((_, i) => i);
  const chosen = () => data.slices.get(state.slice) ?? everywhere();
  const values = (r, m = state.measure) => data.values[m][r];
  const weight = (i) => (data.weights ? data.weights[i] : 1);
  const mean = (r, m = state.measure, among = chosen()) => {
    let sum = 0, whole = 0;
    for (const i of among) { const value = values(r, m)[i]; if (value !== null) { sum += weight(i) * value; whole += weight(i); } }
    return whole ? sum / whole : NaN;
  };
  // Queries, mean difference and who is higher, where both are defined.
  const apart = (a, b, m = state.measure, among = chosen()) => {
    const pair = { places: [], differences: [], mean: NaN, better: 0, equal: 0, worse: 0 };
    for (const i of among) {
      const x = values(a, m)[i], y = values(b, m)[i];
      if (x === null || y === null) continue;
      const d = Math.abs(x - y) < 1e-6 ? 0 : x - y;
      pair.places.push(i);
      pair.differences.push(d);
      if (d > 0) pair.better += 1; else if (d < 0) pair.worse += 1; else pair.equal += 1;
    }
    const whole = pair.places.reduce((sum, i) => sum + weight(i), 0);
    if (whole) pair.mean = pair.differences.reduce((sum, d, at) => sum + weight(pair.places[at]) * d, 0) / whole;
    return pair;
  };
  const plain = () => state.slice === "" && state.measure === 0;
  const among = () => (state.slice ? `${count(chosen().length)} of ${count(data.ids.length)} queries (${state.slice})` : `all ${count(data.ids.length)} queries`);
  const reading = () => {
    const { a, b } = state, name = data.retrievers;
    const start = `${data.measures[state.measure]}, ${among()}: ${name[a]} ${round(mean(a))}`;
    if (name.length < 2) return `${start}.`;
    const pair = apart(a, b);
    const record = `${name[a]} higher on ${count(pair.better)}, equal on ${count(pair.equal)}, lower on ${count(pair.worse)}.`;
    return `${start}, ${name[b]} ${round(mean(b))}; ${record}${plain() ? "" : " Exploratory: no test was made for this choice."}`;
  };

  const draw = () => {
    for (const [key, select] of Object.entries(pick)) if (select) select.value = String(state[key]);
    $("client-filter-reading").textContent = reading();
    members = state.slice ? new Set(chosen().map((i) => data.ids[i])) : null;
    // What was tested stays as it was: it says so while another choice is looked at.
    for (const note of document.querySelectorAll(".fixed")) note.hidden = plain();
    listeners.forEach((listener) => listener());
  };
  const address = () => {
    const words = new URLSearchParams();
    if (data.retrievers.length > 1) { words.set("a", data.retrievers[state.a]); words.set("b", data.retrievers[state.b]); }
    if (state.slice) words.set("slice", state.slice);
    if (state.measure) words.set("measure", data.measures[state.measure]);
    if (state.group) words.set("group", state.group);
    if (state.q) words.set("q", state.q);
    return `#${words}`;
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
    const first = initial(), said = (key, known) => (known(words.get(key)) ? words.get(key) : "");
    for (const key of ["a", "b"]) if (data.retrievers.includes(words.get(key))) first[key] = data.retrievers.indexOf(words.get(key));
    first.slice = said("slice", (name) => data.slices.has(name));
    first.measure = Math.max(0, data.measures.indexOf(words.get("measure")));
    first.group = said("group", (name) => Object.hasOwn(evidence().groups, name) || ["lost", "won"].includes(name));
    first.q = said("q", (id) => places.has(id));
    Object.assign(state, first);
    draw();
    if (past === undefined && (words.has("q") || words.has("group"))) $("queries").scrollIntoView();
  };

  const options = (select, entries) => select?.replaceChildren(...entries.map(([value, text]) => {
    const option = make("option", "", text);
    option.value = value;
    return option;
  }));
  const start = async () => {
    [data, kept] = await Promise.all(["scores", "evidence"].map(unpacked));
    data.slices = new Map(Object.entries(data.slices));
    places = new Map(data.ids.map((id, i) => [id, i]));
    const names = data.retrievers.map((name, i) => [String(i), name]);
    options(pick.a, names);
    options(pick.b, names);
    options(pick.slice, [["", data.all], ...[...data.slices].map(([name, of]) => [name, `${name} (${of.length})`])]);
    options(pick.measure, data.measures.map((name, i) => [String(i), name]));
    if (data.left) {
      const rest = make("option", "", `${data.left} more in scores.csv`);
      rest.disabled = true;
      pick.measure.append(rest);
    }
    Object.assign(state, initial());
    for (const [key, select] of Object.entries(pick)) {
      select?.addEventListener("input", () => change({ [key]: key === "slice" ? select.value : Number(select.value) }));
    }
    $("client-filter-copy").addEventListener("click", () => copied(location.href.split("#")[0] + address()));
    $("client-filter-reset").addEventListener("click", () => change(initial()));
    bar.querySelector("details").open = location.hash.includes("=");
    bar.hidden = false;
    root.classList.add("filter-ready");
    // What has the focus is never hidden behind the bar.
    const clear = () => { root.style.scrollPaddingBottom = `${bar.offsetHeight + 12}px`; };
    clear();
    new ResizeObserver(clear).observe(bar);
    addEventListener("popstate", restore);
    addEventListener("hashchange", () => restore());
    draw();
    restore();
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
