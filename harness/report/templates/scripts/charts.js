// The chart of paired differences follows the filter. All others show what was declared: they keep their intervals.
const place = (name) => clientFilter.data().retrievers.indexOf(name);
const px = (value) => Number(value.toFixed(1));
const BARS = 288;
const told = (node, facts) => {
  const lines = Object.entries(facts).map(([key, value]) => `${key}: ${typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : value}`);
  node.append(drawn("title", {}, lines.join("\n")));
};
// The axis keeps its height: it is given round ends that hold every bar.
const scaled = (axis, limit) => {
  const [start, end, from, to] = ["start", "end", "from", "to"].map((key) => Number(axis.dataset[key]));
  const at = (value) => px(start + ((end - start) * (value + limit)) / (2 * limit));
  const step = 10 ** Math.floor(Math.log10(limit)), wide = limit / step >= 5 ? 2 : limit / step >= 2 ? 1 : 0.5;
  const color = axis.querySelector("line").getAttribute("stroke"), ticks = [];
  for (let i = -Math.floor(limit / (wide * step)); i * wide * step <= limit; i += 1) ticks.push(i * wide * step);
  axis.querySelector(".ticks").replaceChildren(...ticks.flatMap((value) => {
    const text = drawn("text", { x: from - 6, y: at(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3))).replace("-", "\u2212"));
    return [drawn("line", { x1: from, x2: to, y1: at(value), y2: at(value), stroke: color }), text];
  }));
  return at;
};
const figures = [...document.querySelectorAll("figure.chart")];
const apart = figures.find((figure) => figure.dataset.follows === "differences");
const ownChoice = () => {
  const { a, b } = clientFilter.state, { retrievers } = clientFilter.data();
  return clientFilter.plain() && apart.dataset.pair === `${retrievers[a]} ${retrievers[b]}`;
};
const drawApart = () => {
  const { a, b } = clientFilter.state, pair = clientFilter.apart(a, b), svg = apart.querySelector(".plot svg");
  const axis = svg.querySelector(".axis"), left = Number(axis.dataset.from);
  let order = [...pair.places.keys()].sort((x, y) => pair.differences[y] - pair.differences[x]);
  if (order.length > BARS) order = Array.from({ length: BARS }, (_, i) => order[Math.round((i * (order.length - 1)) / (BARS - 1))]);
  const wide = Math.max(1, Math.floor(BARS / Math.max(1, order.length)));
  axis.dataset.to = left + wide * order.length;
  const at = scaled(axis, Math.max(0, ...pair.differences.map(Math.abs)) || 1), colors = [a, b].map((r) => evidence().retrievers[r].color);
  svg.querySelector(".bars").replaceChildren(...order.map((i, bar) => {
    const d = pair.differences[i], y = at(Math.max(0, d));
    return drawn("rect", { "data-at": pair.places[i], x: left + wide * bar, y, width: order.length <= 60 ? wide * 0.75 : wide, height: px(at(Math.min(0, d)) - y), fill: colors[d > 0 ? 0 : 1] });
  }));
  put(svg.querySelector(".zero"), { x2: axis.dataset.to, y1: at(0), y2: at(0) });
  put(svg.querySelector(".mean"), { x2: axis.dataset.to, y1: at(pair.mean || 0), y2: at(pair.mean || 0) });
};
// What a mark stands for: a query, a slice or a retriever.
const meant = (node) => {
  const mark = node.closest("[data-at], [data-slice], [data-retriever]");
  if (!mark || !clientFilter.data()) return null;
  const { ids, slices, all } = clientFilter.data(), { at, slice, retriever } = mark.dataset;
  if (at !== undefined) return { q: ids[Number(at)], group: "" };
  if (slice === all || slices.has(slice)) return { slice: slice === all ? "" : slice };
  const r = place(retriever ?? slice);
  return r < 0 || r === clientFilter.state.a ? null : { b: r };
};
// A query's scores, for who points at its mark, and for a spreadsheet.
const scoresAt = (at) => {
  const { ids, retrievers } = clientFilter.data(), id = ids[at], { a, b } = clientFilter.state;
  const value = (r) => clientFilter.values(r)[at];
  const text = evidence().queries.find((query) => query.id === id)?.text ?? "";
  return { query: id, text, difference: value(a) - value(b), [retrievers[a]]: value(a), [retrievers[b]]: value(b) };
};
const shownOf = (figure) => [...figure.querySelectorAll(".plot svg")].find((svg) => svg.getBoundingClientRect().width > 0) ?? figure.querySelector(".plot svg");
const rowsOf = (figure) => {
  const at = [...shownOf(figure).querySelectorAll("[data-at]")];
  if (at.length) return at.map((node) => scoresAt(Number(node.dataset.at)));
  return [...shownOf(figure).querySelectorAll(".dot > title")].map((title) => Object.fromEntries(title.textContent.split("\n").map((line) => {
    const [key, ...rest] = line.split(": ");
    return [key, rest.join(": ")];
  })));
};
let ownPlot = null;
clientFilter.follow(() => {
  for (const figure of figures) for (const node of figure.querySelectorAll("[data-at], [data-slice], [data-retriever]")) {
    node.classList.toggle("link", meant(node) !== null);
    node.classList.toggle("chosen-slice", node.dataset.slice !== undefined && node.dataset.slice === clientFilter.state.slice);
  }
  if (!apart) return;
  const { a, b } = clientFilter.state, { retrievers } = clientFilter.data(), plot = apart.querySelector(".plot");
  const caption = apart.querySelector("figcaption"), changed = !ownChoice();
  ownPlot ??= plot.firstElementChild.cloneNode(true);
  if (changed) drawApart(); else plot.replaceChildren(ownPlot.cloneNode(true));
  caption.textContent = changed ? `${retrievers[a]} \u2212 ${retrievers[b]}, query by query` : apart.dataset.title;
  if (!clientFilter.plain()) caption.append(make("small", "note", ` ${clientFilter.note()}`));
});
for (const figure of figures) {
  const plot = figure.querySelector(".plot");
  plot.addEventListener("pointerover", (event) => {
    const node = event.target.closest("[data-at]");
    if (node && clientFilter.data() && !node.querySelector("title")) told(node, scoresAt(Number(node.dataset.at)));
  });
  plot.addEventListener("click", (event) => {
    const choice = meant(event.target);
    if (!choice) return;
    clientFilter.change(choice);
    if (choice.q) $("queries").scrollIntoView();
  });
}
