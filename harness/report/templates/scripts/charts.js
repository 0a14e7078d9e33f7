// What follows the filter: the leaderboard, the picture of all queries, and the chart of paired differences. All other
// charts show what was declared: they keep their intervals.
const BARS = 288, LEVELS = 4;
const px = (value) => Number(value.toFixed(1));
const figures = [...document.querySelectorAll("figure.chart")];
const apart = figures.find((figure) => figure.dataset.follows === "differences");
const markRows = () => {
  const { a, b, slice } = clientFilter.state, chosen = slice || clientFilter.data().all;
  for (const row of document.querySelectorAll("[data-r]")) row.classList.toggle("looked", [a, b].includes(Number(row.dataset.r)));
  for (const row of document.querySelectorAll("[data-slice]")) row.classList.toggle("looked", row.dataset.slice === chosen);
};
const leaderboard = () => {
  const caption = $("board-note");
  for (const one of document.querySelectorAll("table.board .chosen")) {
    one.hidden = clientFilter.plain();
    if (one.dataset.of !== undefined) one.textContent = round(clientFilter.mean(Number(one.dataset.of)));
  }
  caption.hidden = clientFilter.plain();
  caption.textContent = `Column “chosen”: ${clientFilter.note()}.`;
};
const pictureOfFailures = () => {
  const inside = new Set(clientFilter.chosen()), order = evidence().order.map(clientFilter.place).filter((i) => inside.has(i));
  for (const row of document.querySelectorAll(".failure_map > svg")) {
    const scores = clientFilter.values(Number(row.dataset.row)), top = Math.max(1, ...scores);
    const levels = order.map((i) => Math.ceil((LEVELS * (scores[i] ?? 0)) / top - 1e-9));
    row.replaceChildren(...levels.flatMap((level, x) => (level ? drawn("rect", { x, y: 0, width: 1, height: 1, class: `l${level}` }) : [])));
    row.setAttribute("viewBox", `0 0 ${Math.max(1, order.length)} 1`);
    row.places = order;
  }
};
for (const row of document.querySelectorAll(".failure_map > svg")) {
  row.addEventListener("click", ({ clientX }) => {
    const { left, width } = row.getBoundingClientRect(), order = row.places ?? evidence().order.map(clientFilter.place);
    const at = order[Math.min(order.length - 1, Math.max(0, Math.floor(((clientX - left) / width) * order.length)))];
    const rival = Number(row.dataset.row);
    clientFilter.change({ q: clientFilter.data().ids[at], group: "", ...(rival === clientFilter.state.a ? {} : { b: rival }) });
    $("queries").scrollIntoView();
  });
}

// The axis keeps its height: it is given round ends that hold every bar.
const scaled = (axis, limit) => {
  const [start, end, from, to] = ["start", "end", "from", "to"].map((key) => Number(axis.dataset[key]));
  const at = (value) => px(start + ((end - start) * (value + limit)) / (2 * limit));
  const power = 10 ** Math.floor(Math.log10(limit)), step = power * (limit / power >= 5 ? 2 : limit / power >= 2 ? 1 : 0.5);
  const stroke = axis.querySelector("line").getAttribute("stroke"), most = Math.floor(limit / step);
  axis.querySelector(".ticks").replaceChildren(...Array.from({ length: 2 * most + 1 }, (_, i) => (i - most) * step).flatMap((value) => [
    drawn("line", { x1: from, x2: to, y1: at(value), y2: at(value), stroke }),
    drawn("text", { x: from - 6, y: at(value) + 4, "text-anchor": "end" }, minus(String(Number(value.toPrecision(3))))),
  ]));
  return at;
};
const drawApart = () => {
  const { a, b } = clientFilter.state, pair = clientFilter.apart(a, b), svg = apart.querySelector(".plot svg");
  const axis = svg.querySelector(".axis"), left = Number(axis.dataset.from), colors = [b, a].map((r) => evidence().retrievers[r].color);
  let order = [...pair.places.keys()].sort((x, y) => pair.differences[y] - pair.differences[x]);
  if (order.length > BARS) order = Array.from({ length: BARS }, (_, i) => order[Math.round((i * (order.length - 1)) / (BARS - 1))]);
  const wide = Math.max(1, Math.floor(BARS / Math.max(1, order.length)));
  axis.dataset.to = left + wide * order.length;
  const at = scaled(axis, Math.max(0, ...pair.differences.map(Math.abs)) || 1);
  svg.querySelector(".bars").replaceChildren(...order.map((i, bar) => {
    const d = pair.differences[i], y = at(Math.max(0, d));
    return drawn("rect", { "data-at": pair.places[i], x: left + wide * bar, y, width: order.length <= 60 ? wide * 0.75 : wide, height: px(at(Math.min(0, d)) - y), fill: colors[Number(d > 0)] });
  }));
  for (const [line, value] of [[".zero", 0], [".mean", pair.mean || 0]]) put(svg.querySelector(line), { x2: axis.dataset.to, y1: at(value), y2: at(value) });
};
// What a mark stands for: a query, a slice or a retriever.
const MARKS = "[data-at], [data-slice], [data-retriever]";
const meant = (node) => {
  const mark = node.closest(MARKS);
  if (!mark || !clientFilter.data()) return null;
  const { ids, slices, all, retrievers } = clientFilter.data(), { at, slice, retriever } = mark.dataset;
  if (at !== undefined) return { q: ids[Number(at)], group: "" };
  if (slice === all || slices.has(slice)) return { slice: slice === all ? "" : slice };
  const r = retrievers.indexOf(retriever ?? slice);
  return r < 0 || r === clientFilter.state.a ? null : { b: r };
};
// A query's scores, for who points at its mark, and for a spreadsheet.
const scoresAt = ({ dataset: { at } }) => {
  const { ids, retrievers } = clientFilter.data(), query = ids[at], { a, b } = clientFilter.state;
  const [x, y] = [a, b].map((r) => clientFilter.values(r)[at]);
  const text = evidence().queries.find(({ id }) => id === query)?.text ?? "";
  return { query, text, difference: x - y, [retrievers[a]]: x, [retrievers[b]]: y };
};
const shownOf = (figure) => [...figure.querySelectorAll(".plot svg")].find((svg) => svg.getBoundingClientRect().width > 0) ?? figure.querySelector(".plot svg");
const rowsOf = (figure) => {
  const shown = shownOf(figure), bars = [...shown.querySelectorAll("[data-at]")];
  if (bars.length) return bars.map(scoresAt);
  return [...shown.querySelectorAll(".dot > title")].map(({ textContent }) => Object.fromEntries(textContent.split("\n").map((line) => {
    const [key, ...rest] = line.split(": ");
    return [key, rest.join(": ")];
  })));
};
let ownPlot = null, redrawn = false;
clientFilter.follow(() => {
  markRows();
  leaderboard();
  redrawn ||= !clientFilter.plain(); // Until then the picture is the page's own.
  if (redrawn) pictureOfFailures();
  for (const figure of figures) for (const node of figure.querySelectorAll(MARKS)) {
    node.classList.toggle("link", meant(node) !== null);
    node.classList.toggle("chosen-slice", node.dataset.slice === clientFilter.state.slice);
  }
  if (!apart) return;
  const [a, b] = [clientFilter.state.a, clientFilter.state.b].map((r) => clientFilter.data().retrievers[r]), plot = apart.querySelector(".plot");
  const caption = apart.querySelector("figcaption"), changed = !clientFilter.plain() || apart.dataset.pair !== `${a} ${b}`;
  ownPlot ??= plot.firstElementChild.cloneNode(true);
  if (changed) drawApart(); else plot.replaceChildren(ownPlot.cloneNode(true));
  caption.textContent = changed ? `${a} \u2212 ${b}, query by query` : apart.dataset.title;
  if (!clientFilter.plain()) caption.append(make("small", "note", ` ${clientFilter.note()}`));
});
for (const plot of document.querySelectorAll("figure.chart .plot")) {
  plot.addEventListener("pointerover", ({ target }) => {
    const node = target.closest("[data-at]");
    if (!node || !clientFilter.data() || node.querySelector("title")) return;
    const facts = Object.entries(scoresAt(node)).map(([key, value]) => `${key}: ${typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : value}`);
    node.append(drawn("title", {}, facts.join("\n")));
  });
  plot.addEventListener("click", ({ target }) => {
    const choice = meant(target);
    if (choice) clientFilter.change(choice);
    if (choice?.q) $("queries").scrollIntoView();
  });
}
