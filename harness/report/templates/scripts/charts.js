// Charts come alive when they are looked at: the still picture gives way to the same chart with tooltips, links and the
// choice of the clientFilter.
const specs = new WeakMap();
const given = (figure) => JSON.parse(figure.querySelector("script").textContent);
const specOf = (figure) => specs.get(figure) ?? given(figure);
const place = (name) => clientFilter.data().retrievers.indexOf(name);
const alone = (value) => ({ low: value, high: value });

const pairOf = (figure, spec) => {
  if (figure.dataset.first !== undefined) return [clientFilter.state.a, clientFilter.state.b];
  return spec.layer[0].encoding.color.scale.domain.slice(0, 2).map(place);
};
// Each kind of chart as the clientFilter sees it: its rows anew, from the scores of the chosen queries.
const kinds = {
  means: (spec) => {
    const data = spec.datasets;
    data.rows = data.rows.map((row) => ({ ...row, mean: clientFilter.mean(place(row.retriever)) })).filter((row) => !Number.isNaN(row.mean))
      .map((row) => ({ ...row, ...alone(row.mean) }));
    let best = -Infinity;
    data.edge = data.rows.toSorted((x, y) => x.price - y.price || y.mean - x.mean)
      .filter((row) => row.mean > best && ((best = row.mean), true)).map(({ price, mean }) => ({ price, mean }));
  },
  measures: (spec) => {
    const names = clientFilter.data().measures;
    spec.datasets.rows = spec.datasets.rows.filter((row) => names.includes(row.measure)).map((row) => {
      const mean = clientFilter.mean(place(row.retriever), names.indexOf(row.measure));
      return { ...row, mean, ...alone(mean) };
    }).filter((row) => !Number.isNaN(row.mean));
    // A measure that no chosen query defines has no column.
    const left = new Set(spec.datasets.rows.map((row) => row.measure));
    spec.concat = spec.concat.filter((column) => left.has(column.title));
  },
  lines: (spec) => {
    const inside = new Set(clientFilter.chosen());
    spec.datasets.rows = spec.datasets.rows.filter((row) => inside.has(row.at))
      .map((row) => ({ ...row, value: clientFilter.values(place(row.retriever))[row.at] })).filter((row) => row.value !== null);
  },
  differences: (spec, figure) => {
    const [a, b] = pairOf(figure, spec);
    const { retrievers, ids } = clientFilter.data();
    const texts = new Map(evidence().queries.map((query) => [query.id, query.text]));
    const pair = clientFilter.apart(a, b);
    let order = [...pair.places.keys()].sort((x, y) => pair.differences[y] - pair.differences[x]);
    const most = spec.width > 0 ? 306 : order.length;
    if (order.length > most) order = Array.from({ length: most }, (_, i) => order[Math.round((i * (order.length - 1)) / (most - 1))]);
    const better = (d) => (d > 0 ? retrievers[a] : d < 0 ? retrievers[b] : "neither");
    spec.datasets.rows = order.map((at, i) => {
      const where = pair.places[at], d = pair.differences[at];
      return { place: i, at: where, query: ids[where], text: texts.get(ids[where]) ?? "", difference: d, better: better(d) };
    });
    spec.datasets.mean = [{ difference: pair.mean }];
    const limit = Math.max(...pair.differences.map(Math.abs)) || 1;
    const colors = [a, b].map((r) => evidence().retrievers[r].color);
    const scale = spec.layer[0].encoding.color.scale;
    scale.domain = [retrievers[a], retrievers[b], "neither"];
    scale.range = [...colors, scale.range[2]];
    for (const layer of spec.layer) if (layer.encoding.y?.scale) layer.encoding.y.scale.domain = [-limit, limit];
    spec.width = order.length * Math.max(1, Math.floor(306 / Math.max(1, order.length)));
    figure.querySelector("figcaption").textContent = `${retrievers[a]} \u2212 ${retrievers[b]}`;
  },
  leader: (spec) => {
    const { retrievers } = clientFilter.data(), a = clientFilter.state.a;
    spec.datasets.rows = retrievers.map((name, r) => [name, clientFilter.apart(a, r)]).filter(([name]) => name !== retrievers[a])
      .map(([name, pair]) => ({ label: name, slice: name, retriever: name, difference: pair.mean, ...alone(pair.mean), queries: pair.places.length,
        record: `${pair.better} / ${pair.equal} / ${pair.worse}`, whole: false, beside: "" }));
    forestTitle(spec, `right of 0 ${retrievers[a]} is higher`);
  },
  slices: (spec, figure) => {
    const { retrievers, slices, all } = clientFilter.data();
    const [a, b] = figure.dataset.first !== undefined ? [clientFilter.state.a, clientFilter.state.b] : figure.dataset.pair.split(" ").map(place);
    spec.datasets.rows = spec.datasets.rows.filter((row) => row.slice === all || slices.has(row.slice)).map((row) => {
      const pair = clientFilter.apart(a, b, clientFilter.state.measure, slices.get(row.slice) ?? clientFilter.data().ids.map((_, i) => i));
      return { ...row, difference: pair.mean, ...alone(pair.mean), record: `${pair.better} / ${pair.equal} / ${pair.worse}` };
    });
    forestTitle(spec, `right of 0 ${retrievers[a]} is higher than ${retrievers[b]}`);
  },
};
// What a chart is called while it shows another choice than the page's own.
const titles = {
  means: (figure) => figure.dataset.title.replace(clientFilter.data().measures[0], clientFilter.data().measures[clientFilter.state.measure]),
  measures: () => "Means of every measure",
  lines: () => `${clientFilter.data().measures[clientFilter.state.measure]} of each query`,
  leader: () => `${clientFilter.data().retrievers[clientFilter.state.a]} \u2212 each other in ${clientFilter.data().measures[clientFilter.state.measure]}`,
  slices: (figure) => {
    const [a, b] = figure.dataset.first !== undefined ? [clientFilter.state.a, clientFilter.state.b].map((r) => clientFilter.data().retrievers[r]) : figure.dataset.pair.split(" ");
    return `${a} \u2212 ${b} in ${clientFilter.data().measures[clientFilter.state.measure]}, by slice`;
  },
};
const forestTitle = (spec, title) => {
  const labels = spec.datasets.rows.map((row) => row.label);
  for (const layer of spec.layer) {
    if (layer.encoding.x?.title) layer.encoding.x.title = `${clientFilter.data().measures[clientFilter.state.measure]}: ${title}`;
    if (layer.encoding.y?.sort) layer.encoding.y.sort = labels;
  }
  // The declared margin is one of the primary measure.
  if (clientFilter.state.measure) spec.datasets.margin &&= [];
};
// Charts of a pair follow A and B; all follow slice and measure. What is the page's own choice keeps its intervals.
const PAIRED = { differences: true, leader: true, slices: true };
const ownChoice = (figure) => {
  const { a, b } = clientFilter.state, [first, second] = clientFilter.data().pair;
  const kind = figure.dataset.follows;
  if (!clientFilter.plain()) return false;
  if (kind === "leader") return clientFilter.data().retrievers[a] === figure.dataset.pair;
  if (PAIRED[kind] && figure.dataset.first !== undefined) return figure.dataset.pair === `${clientFilter.data().retrievers[a]} ${clientFilter.data().retrievers[b]}`;
  return a === first && b === second ? true : !PAIRED[kind] || figure.dataset.first === undefined;
};
const relensed = (figure) => {
  const spec = given(figure), follows = kinds[figure.dataset.follows], caption = figure.querySelector("figcaption");
  caption.textContent = figure.dataset.title;
  const changed = Boolean(follows && clientFilter.data() && !ownChoice(figure));
  if (changed) follows(spec, figure);
  const kind = figure.dataset.follows;
  if (changed && titles[kind]) caption.textContent = titles[kind](figure);
  const bare = changed && kind !== "differences" && kind !== "lines";
  const notes = [...(changed && !clientFilter.plain() ? [kind === "slices" ? "exploratory" : clientFilter.note()] : []), ...(bare ? ["without intervals"] : [])];
  if (notes.length) caption.append(make("small", "note", ` ${notes.join(", ")}`));
  specs.set(figure, spec);
  figure.dataset.shows = changed ? JSON.stringify([clientFilter.state.a, clientFilter.state.b, clientFilter.state.slice, clientFilter.state.measure]) : "";
  return spec;
};

// What a mark stands for: a query, a slice or a retriever.
const meant = (datum) => {
  if (!datum || !clientFilter.data()) return null;
  const { ids, slices, all, retrievers } = clientFilter.data();
  if (Number.isInteger(datum.at)) return { q: ids[datum.at], group: "" };
  if (datum.slice === all || slices.has(datum.slice)) return { slice: datum.slice === all ? "" : datum.slice };
  const r = retrievers.indexOf(datum.retriever);
  if (r < 0 || r === clientFilter.state.a) return null;
  return { b: r };
};
const datumOf = (node) => (node.__data__ && !Array.isArray(node.__data__) ? node.__data__.datum : null);
const dim = (figure) => {
  if (!clientFilter.data()) return;
  const { retrievers, pair } = clientFilter.data(), { a, b } = clientFilter.state;
  const own = a === pair[0] && b === pair[1];
  for (const node of figure.querySelectorAll(".plot svg path, .plot svg line, .plot svg text")) {
    const name = datumOf(node)?.retriever;
    if (name !== undefined) node.classList.toggle("dim", !own && name !== retrievers[a] && name !== retrievers[b]);
    if (meant(datumOf(node))) node.classList.add("link");
  }
};
// On a narrow screen a chart gives up the width of its plot, or stands in more lines, before it has to be scrolled.
const LEAST = 90, COLUMN = 118;
const wide = (node) => node.querySelector("svg")?.viewBox.baseVal.width ?? 0;
const folded = (spec, by) => {
  const columns = Math.max(1, spec.columns - Math.ceil(by / COLUMN));
  if (columns === spec.columns) return false;
  const axes = spec.concat[0].layer.map((layer) => layer.encoding.y.axis);
  spec.concat.forEach((column, i) => column.layer.forEach((layer, l) => (layer.encoding.y.axis = i % columns ? null : axes[l])));
  spec.columns = columns;
  return true;
};
const narrowed = (spec, by) => {
  if (spec.concat) return by > 0 && folded(spec, by);
  const left = spec.width - by;
  if (by <= 0 || left < LEAST || !spec.layer || spec.layer.some((layer) => layer.encoding.x?.axis === null)) return false;
  for (const { encoding } of spec.layer) if (encoding.x?.value !== undefined) encoding.x.value -= by;
  spec.width = left;
  spec.config.axisX.titleAnchor = "end"; // a title longer than the plot goes on below its labels
  return true;
};
// The words of a title in lines little wider than the plot: a longer line would make the chart wider than the page.
const LETTER = 6.2;
const lined = (title, width) => [title].flat().flatMap((line) => line.split(" ").reduce((lines, word) => {
  const longer = `${lines.at(-1)} ${word}`;
  return lines.length && longer.length * LETTER <= width ? [...lines.slice(0, -1), longer] : [...lines, word];
}, []));
const wrapped = (spec) => {
  for (const { encoding } of spec.layer ?? []) if (encoding.x?.title) encoding.x.title = lined(encoding.x.title, spec.width + 60);
};
// The latest drawing of each chart that was looked at: an earlier one that ends later is dropped.
const latest = new Map();
const draw = (figure) => {
  const turn = (latest.get(figure) ?? 0) + 1;
  latest.set(figure, turn);
  figure.setAttribute("aria-busy", "true");
  const plot = figure.querySelector(".plot");
  const stage = make("div");
  const tooltip = { disableDefaultStyle: true, theme: "custom" };
  const spec = relensed(figure);
  wrapped(spec);
  const look = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip };
  const room = figure.querySelector(".scroll").clientWidth - 18;
  // Twice at most: what a narrower plot does not make narrower, such as a long title, is scrolled.
  const fitted = (times) => window.vegaEmbed(stage, spec, look)
    .then((made) => (times && narrowed(spec, Math.ceil(wide(stage) - room)) ? fitted(times - 1) : made));
  fitted(2).then(() => {
    if (latest.get(figure) !== turn) return;
    // The figure's label speaks for the whole chart.
    stage.querySelector("svg").setAttribute("aria-hidden", "true");
    plot.replaceChildren(...stage.childNodes);
    figure.classList.add("live");
    dim(figure);
  }).finally(() => {
    if (latest.get(figure) === turn) figure.removeAttribute("aria-busy");
  });
};
const figures = [...document.querySelectorAll("figure.chart")];
if (window.vegaEmbed && "IntersectionObserver" in window) {
  const watch = new IntersectionObserver((seen) => {
    for (const entry of seen) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "100px" });
  figures.forEach((figure) => watch.observe(figure));
  clientFilter.follow(() => {
    for (const figure of latest.keys()) {
      const before = figure.dataset.shows ?? "";
      const now = kinds[figure.dataset.follows] && !ownChoice(figure) ? JSON.stringify([clientFilter.state.a, clientFilter.state.b, clientFilter.state.slice, clientFilter.state.measure]) : "";
      if (before !== now) draw(figure); else dim(figure);
    }
  });
}
for (const figure of figures) {
  figure.querySelector(".plot").addEventListener("click", (event) => {
    const choice = meant(datumOf(event.target));
    if (!choice) return;
    clientFilter.change(choice);
    if (choice.q) $("forensics").scrollIntoView();
  });
}
