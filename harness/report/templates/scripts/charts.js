// Charts follow the clientFilter: marks move, axes are scaled anew, and intervals, which no filter can reckon, go.
const place = (name) => clientFilter.data().retrievers.indexOf(name);
const put = (node, attributes) => { for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); };
const px = (value) => Number(value.toFixed(1));
const LETTER = 7.2, LINE = 16, BARS = 288;

// The same axes as those of axes.py: multiples of a round step, at least three of them.
const steps = (low, high, most) => {
  const wide = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(wide));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= wide * 0.999);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  const found = Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return found.length < 3 ? steps(low, high, most + 1) : found;
};
const ends = (values, bounded = true) => {
  const low = Math.min(...values), high = Math.max(...values), more = (high - low) * 0.06 || 0.05;
  return bounded ? [Math.max(low - more, Math.min(low, 0)), Math.min(high + more, high <= 1 ? 1 : Infinity)] : [low - more, high + more];
};
const scaled = (axis, low, high) => {
  const { side, signed: sign } = axis.dataset;
  const [start, end, from, to] = ["start", "end", "from", "to"].map((key) => Number(axis.dataset[key]));
  const at = (value) => px(start + ((end - start) * (value - low)) / (high - low || 1));
  const color = axis.querySelector("line").getAttribute("stroke");
  const ticks = steps(low, high, Math.max(2, Math.floor(Math.abs(end - start) / (side === "x" ? 60 : 44))));
  const finest = 1e-6 * Math.max(...ticks.map(Math.abs));
  const digits = [...Array(12).keys()].find((d) => ticks.every((value) => Math.abs(value - value.toFixed(d)) <= finest)) ?? 12;
  let free = -Infinity;
  axis.querySelector(".ticks").replaceChildren(...ticks.flatMap((value) => {
    const words = sign !== undefined && value === 0 ? "0" : (sign !== undefined && value > 0 ? "+" : "") + value.toFixed(digits).replace("-", "\u2212");
    const across = side === "x" ? { x1: at(value), x2: at(value), y1: from, y2: to } : { x1: from, x2: to, y1: at(value), y2: at(value) };
    const text = drawn("text", side === "x" ? { x: at(value), y: to + LINE, "text-anchor": "middle" } : { x: from - 6, y: at(value) + 4, "text-anchor": "end" });
    text.textContent = words;
    const half = (words.length * LETTER) / 2, hidden = side === "x" && at(value) - half < free;
    if (!hidden) free = at(value) + half + 6;
    return [drawn("line", { ...across, stroke: color }), ...(hidden ? [] : [text])];
  }));
  return at;
};
const spot = (dot) => dot.querySelector(".at").getAttribute("transform").match(/[-\d.]+/g).map(Number);
const told = (node, facts) => {
  node.querySelector("title")?.remove();
  const title = drawn("title", {});
  title.textContent = Object.entries(facts).map(([key, value]) => `${key}: ${typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : value}`).join("\n");
  node.append(title);
};
const moved = (dot, x, y, facts) => {
  put(dot.querySelector(".at"), { transform: `translate(${x} ${y})` });
  dot.querySelector(".span")?.remove();
  told(dot, facts);
};

const pairOf = (figure) => (figure.dataset.first !== undefined ? [clientFilter.state.a, clientFilter.state.b] : figure.dataset.pair.split(" ").map(place));
const everyone = () => clientFilter.data().ids.map((_, i) => i);
const of = (slice) => (slice === clientFilter.data().all ? everyone() : clientFilter.data().slices.get(slice));
const record = (pair) => ({ queries: pair.places.length, "better / equal / worse": `${pair.better} / ${pair.equal} / ${pair.worse}` });
const dotsOf = (node, value) => [...node.querySelectorAll(".dot")].map((dot) => ({ dot, value: value(dot.dataset) }))
  .filter(({ dot, value }) => { if (Number.isNaN(value)) dot.remove(); return !Number.isNaN(value); });
// Rows of differences, each the pair that it shows; one that there is not leaves its row empty.
const forest = (svg, rows, title) => {
  const axis = svg.querySelector(".axis"), margin = svg.querySelector(".margin"), zero = svg.querySelector(".zero");
  if (clientFilter.state.measure) margin?.remove(); // it is one of the primary measure
  const half = clientFilter.state.measure || !margin ? 0 : Number(margin.dataset.margin);
  const at = scaled(axis, ...ends([0, -half, half, ...rows.map(({ pair }) => pair.mean).filter((mean) => !Number.isNaN(mean))], false));
  put(zero, { x1: at(0), x2: at(0) });
  if (half) put(margin, { x: at(-half), width: px(at(half) - at(-half)) });
  for (const { dot, pair } of rows) {
    if (Number.isNaN(pair.mean)) dot.remove();
    else moved(dot, at(pair.mean), spot(dot)[1], { slice: dot.dataset.slice, difference: pair.mean, ...record(pair) });
  }
  for (const node of svg.querySelectorAll(":scope > .beside")) node.remove();
  const lines = axis.querySelector(".title"), [first] = lines.children, end = Number(axis.dataset.end);
  const words = `${clientFilter.data().measures[clientFilter.state.measure]}: ${title}`.split(" ").reduce((held, word) => {
    const longer = `${held.at(-1)} ${word}`;
    return held.length && longer.length * LETTER <= end ? [...held.slice(0, -1), longer] : [...held, word];
  }, []);
  lines.replaceChildren(...words.map((line, i) => {
    const text = first.cloneNode();
    put(text, { y: Number(first.getAttribute("y")) + LINE * i });
    text.textContent = line;
    return text;
  }));
};
// Each kind of chart as the clientFilter sees it, from the scores of the chosen queries.
const kinds = {
  means: (svg) => {
    const held = dotsOf(svg, ({ retriever }) => clientFilter.mean(place(retriever)));
    if (!held.length) return;
    const at = scaled(svg.querySelector(".axis[data-side=y]"), ...ends(held.map(({ value }) => value)));
    for (const { dot, value } of held) moved(dot, spot(dot)[0], at(value), { retriever: dot.dataset.retriever, mean: value });
    let best = -Infinity;
    const edge = held.toSorted((p, q) => p.dot.dataset.price - q.dot.dataset.price || q.value - p.value)
      .filter(({ value }) => value > best && ((best = value), true)).map(({ dot }) => spot(dot));
    put(svg.querySelector(".edge"), { d: edge.map(([x, y], i) => (i ? `H${x}V${y}` : `M${x},${y}`)).join("") });
  },
  measures: (svg) => {
    for (const panel of svg.querySelectorAll(".panel")) {
      const m = clientFilter.data().measures.indexOf(panel.dataset.measure);
      const held = m < 0 ? [] : dotsOf(panel, ({ retriever }) => clientFilter.mean(place(retriever), m));
      if (!held.length) { panel.remove(); continue; } // no chosen query defines it
      const at = scaled(panel.querySelector(".axis"), ...ends(held.map(({ value }) => value)));
      for (const { dot, value } of held) moved(dot, at(value), spot(dot)[1], { retriever: dot.dataset.retriever, measure: panel.dataset.measure, mean: value });
    }
  },
  lines: (svg) => {
    const inside = new Set(clientFilter.chosen()), columns = [...svg.querySelectorAll("[data-at]")];
    const middle = new Map(columns.map((node) => [Number(node.dataset.at), px(Number(node.getAttribute("x")) + Number(node.getAttribute("width")) / 2)]));
    for (const node of columns) if (!inside.has(Number(node.dataset.at))) node.remove();
    const lines = [...svg.querySelectorAll(".line")].map((line) => [line, clientFilter.values(place(line.dataset.retriever))]);
    const at = scaled(svg.querySelector(".axis"), 0, Math.max(1, ...lines.flatMap(([, values]) => values)));
    for (const [line, values] of lines) {
      put(line, { points: [...middle].filter(([i]) => inside.has(i) && values[i] !== null).map(([i, x]) => `${x},${at(values[i])}`).join(" ") });
    }
  },
  differences: (svg, figure) => {
    const [a, b] = pairOf(figure), pair = clientFilter.apart(a, b), axis = svg.querySelector(".axis");
    let order = [...pair.places.keys()].sort((x, y) => pair.differences[y] - pair.differences[x]);
    if (order.length > BARS) order = Array.from({ length: BARS }, (_, i) => order[Math.round((i * (order.length - 1)) / (BARS - 1))]);
    const wide = Math.max(1, Math.floor(BARS / Math.max(1, order.length))), left = Number(axis.dataset.from);
    axis.dataset.to = left + wide * order.length;
    const limit = Math.max(0, ...pair.differences.map(Math.abs)) || 1, at = scaled(axis, -limit, limit);
    const colors = [a, b].map((r) => evidence().retrievers[r].color);
    svg.querySelector(".bars").replaceChildren(...order.map((i, bar) => {
      const d = pair.differences[i], y = at(Math.max(0, d));
      return drawn("rect", { "data-at": pair.places[i], x: left + wide * bar, y, width: order.length <= 60 ? wide * 0.75 : wide, height: px(at(Math.min(0, d)) - y), fill: colors[d > 0 ? 0 : 1] });
    }));
    put(svg.querySelector(".zero"), { x2: axis.dataset.to, y1: at(0), y2: at(0) });
    put(svg.querySelector(".mean"), { x2: axis.dataset.to, y1: at(pair.mean || 0), y2: at(pair.mean || 0) });
  },
  leader: (svg) => {
    const { retrievers } = clientFilter.data(), { a } = clientFilter.state;
    const others = retrievers.map((_, r) => r).filter((r) => r !== a), names = svg.querySelectorAll(".name");
    const rows = [...svg.querySelectorAll(".dot")].map((dot, i) => {
      dot.dataset.slice = dot.dataset.retriever = names[i].textContent = retrievers[others[i]];
      return { dot, pair: clientFilter.apart(a, others[i]) };
    });
    forest(svg, rows, `right of 0 ${retrievers[a]} is higher`);
  },
  slices: (svg, figure) => {
    const [a, b] = pairOf(figure), { retrievers } = clientFilter.data();
    const rows = [...svg.querySelectorAll(".dot")].map((dot) => ({ dot, pair: clientFilter.apart(a, b, clientFilter.state.measure, of(dot.dataset.slice) ?? []) }));
    forest(svg, rows, `right of 0 ${retrievers[a]} is higher than ${retrievers[b]}`);
  },
};
// What a chart is called while it shows another choice than the page's own.
const measured = () => clientFilter.data().measures[clientFilter.state.measure];
const names = (figure) => pairOf(figure).map((r) => clientFilter.data().retrievers[r]);
const titles = {
  means: (figure) => figure.dataset.title.replace(clientFilter.data().measures[0], measured()),
  measures: () => "Means of every measure",
  lines: () => `${measured()} of each query`,
  differences: (figure) => names(figure).join(" \u2212 "),
  leader: () => `${clientFilter.data().retrievers[clientFilter.state.a]} \u2212 each other in ${measured()}`,
  slices: (figure) => `${names(figure).join(" \u2212 ")} in ${measured()}, by slice`,
};
// Charts of a pair follow A and B; all follow slice and measure. What is the page's own choice keeps its intervals.
const PAIRED = { differences: true, leader: true, slices: true };
const ownChoice = (figure) => {
  const { a, b } = clientFilter.state, { retrievers } = clientFilter.data(), kind = figure.dataset.follows;
  if (!kind) return true;
  if (!clientFilter.plain()) return false;
  if (kind === "leader") return retrievers[a] === figure.dataset.pair;
  return !PAIRED[kind] || figure.dataset.first === undefined || figure.dataset.pair === `${retrievers[a]} ${retrievers[b]}`;
};
const own = new Map();
const draw = (figure) => {
  const plot = figure.querySelector(".plot"), kind = figure.dataset.follows, caption = figure.querySelector("figcaption");
  if (!own.has(figure)) own.set(figure, [...plot.children]);
  const changed = !ownChoice(figure);
  plot.replaceChildren(...own.get(figure).map((svg) => {
    if (!changed) return svg;
    const copy = svg.cloneNode(true);
    kinds[kind](copy, figure);
    return copy;
  }));
  caption.textContent = changed ? titles[kind](figure) : figure.dataset.title;
  const bare = changed && kind !== "differences" && kind !== "lines";
  const notes = [...(changed && !clientFilter.plain() ? [kind === "slices" ? "exploratory" : clientFilter.note()] : []), ...(bare ? ["without intervals"] : [])];
  if (notes.length) caption.append(make("small", "note", ` ${notes.join(", ")}`));
  figure.dataset.shows = changed ? JSON.stringify([clientFilter.state.a, clientFilter.state.b, clientFilter.state.slice, clientFilter.state.measure]) : "";
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
const marksOf = (figure) => figure.querySelectorAll(".plot [data-at], .plot [data-slice], .plot [data-retriever]");
const dim = (figure) => {
  const { retrievers, pair } = clientFilter.data(), { a, b } = clientFilter.state;
  const ours = a === pair[0] && b === pair[1];
  for (const node of marksOf(figure)) {
    const name = node.dataset.retriever;
    if (name !== undefined) node.classList.toggle("dim", !ours && name !== retrievers[a] && name !== retrievers[b]);
    node.classList.toggle("link", meant(node) !== null);
  }
};
// A query's scores, for who points at its mark, and for a spreadsheet.
const scoresAt = (figure, at) => {
  const { ids, retrievers } = clientFilter.data(), id = ids[at];
  const text = evidence().queries.find((query) => query.id === id)?.text ?? "";
  const value = (r) => clientFilter.values(r)[at];
  if (figure.dataset.follows === "lines") return { query: id, text, ...Object.fromEntries(retrievers.map((name, r) => [name, value(r)])) };
  const [a, b] = pairOf(figure);
  return { query: id, text, difference: value(a) - value(b), [retrievers[a]]: value(a), [retrievers[b]]: value(b) };
};
const figures = [...document.querySelectorAll("figure.chart")];
const shownOf = (figure) => [...figure.querySelectorAll(".plot svg")].find((svg) => svg.getBoundingClientRect().width > 0) ?? figure.querySelector(".plot svg");
const rowsOf = (figure) => {
  const at = [...shownOf(figure).querySelectorAll("[data-at]")];
  if (at.length) return at.map((node) => scoresAt(figure, Number(node.dataset.at)));
  return [...shownOf(figure).querySelectorAll(".dot > title")].map((title) => Object.fromEntries(title.textContent.split("\n").map((line) => {
    const [key, ...rest] = line.split(": ");
    return [key, rest.join(": ")];
  })));
};
clientFilter.follow(() => {
  for (const figure of figures) {
    const { a, b, slice, measure } = clientFilter.state;
    if ((figure.dataset.shows ?? "") !== (ownChoice(figure) ? "" : JSON.stringify([a, b, slice, measure]))) draw(figure);
    dim(figure);
  }
});
for (const figure of figures) {
  const plot = figure.querySelector(".plot");
  plot.addEventListener("pointerover", (event) => {
    const node = event.target.closest("[data-at]");
    if (node && clientFilter.data() && !node.querySelector("title")) told(node, scoresAt(figure, Number(node.dataset.at)));
  });
  plot.addEventListener("click", (event) => {
    const choice = meant(event.target);
    if (!choice) return;
    clientFilter.change(choice);
    if (choice.q) $("forensics").scrollIntoView();
  });
}
