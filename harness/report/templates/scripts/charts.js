// What follows the filter: rows of tables, the leaderboard's second column, and the chart of paired differences. All
// other charts show what was declared: they keep their intervals.
const BARS = 288;
const apart = first("[data-follows]");
const colors = found(".ranking .head path").map((path) => path.getAttribute("fill"));
// The axis keeps its height: it is given ends that hold every bar.
const scaled = (axis, limit, to) => {
  const [start, end, from] = ["start", "end", "from"].map((key) => Number(axis.dataset[key]));
  const at = (value) => start + ((end - start) * (value + limit)) / (2 * limit);
  const step = [5, 2, 1].map((digit) => digit * 10 ** Math.floor(Math.log10(limit))).find((one) => one <= limit);
  first(".ticks", axis).replaceChildren(...[-step, 0, step].flatMap((value) => [
    drawn("line", { x1: from, x2: to, y1: at(value), y2: at(value), stroke: first("line", axis).getAttribute("stroke") }),
    drawn("text", { x: from - 6, y: at(value) + 4, "text-anchor": "end" }, (value > 0 ? "+" : "") + minus(String(Number(value.toPrecision(1))))),
  ]));
  return at;
};
// A query's scores, for who points at its mark, and for a spreadsheet.
const scoresAt = (place, difference) => {
  const query = data.ids[place], text = evidence.queries.find(({ id }) => id === query)?.text ?? "";
  const scores = pair().map((r) => `${data.retrievers[r]}: ${values(r)[place]}`);
  return [`query: ${query}`, `text: ${text.replace(/\s+/g, " ")}`, `difference: ${Number(difference.toFixed(6))}`, ...scores].join("\n");
};
const drawApart = () => {
  const { differences, mean } = compared(), svg = first("svg", apart), axis = first(".axis", svg);
  const [a, b] = pair(), from = Number(axis.dataset.from), sorted = [...differences].sort(([, x], [, y]) => y - x);
  const evenly = (_, i) => sorted[Math.round((i * (sorted.length - 1)) / (BARS - 1))];
  const bars = sorted.length > BARS ? Array.from({ length: BARS }, evenly) : sorted;
  const wide = Math.max(1, Math.floor(BARS / (bars.length || 1))), x2 = from + wide * bars.length;
  const at = scaled(axis, Math.max(0, ...bars.map(([, d]) => Math.abs(d))) || 1, x2);
  first(".bars", svg).replaceChildren(...bars.map(([place, d], i) => drawn("rect", {
    "data-at": place, fill: colors[d > 0 ? a : b],
    x: from + wide * i, width: bars.length <= 60 ? wide * 0.75 : wide, y: at(Math.max(0, d)), height: Math.abs(at(d) - at(0)),
  }, drawn("title", {}, scoresAt(place, d)))));
  for (const [line, value] of [[".zero", 0], [".mean", mean || 0]]) put(first(line, svg), { x2, y1: at(value), y2: at(value) });
  const which = explored() ? `: ${among()}, exploratory` : "";
  first("figcaption", apart).textContent = `${data.retrievers[a]} − ${data.retrievers[b]}, query by query${which}`;
  first(".plot", apart).ariaLabel = reading();
};
const drawCharts = () => {
  for (const [r, row] of found("[data-r]").entries()) {
    row.classList.toggle("looked", Boolean(apart) && pair().includes(r));
    first(".chosen", row).textContent = round(mean(r));
  }
  for (const row of found("[data-slice]")) row.classList.toggle("looked", row.dataset.slice === state.slice);
  if (apart) drawApart();
};
const lookInto = (q = "") => {
  change({ q, group: "", ...(!inside.has(places.get(q)) && { slice: "" }) }); // A slice without it is left.
  browser.scrollIntoView();
};
// A mark stands for a query or a slice.
for (const plot of found("figure.chart .plot")) {
  on(plot, "click", ({ target }) => {
    const { at, slice } = target.closest("[data-at], [data-slice]")?.dataset ?? {};
    if (at) lookInto(data.ids[at]);
    if (known.slice.includes(slice)) change({ slice });
    if (slice === data.all) change({ slice: "" });
  });
}
