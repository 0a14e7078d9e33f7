const filter = $("wanted");
filter.addEventListener("input", () => {
  const words = fold(filter.value).split(/\s+/), rows = [...first("table.runs").tBodies[0].rows];
  for (const row of rows) {
    const text = fold([...row.cells].slice(0, 9).map((cell) => cell.textContent).join(" ")); // not the run it is compared with
    row.hidden = !words.every((word) => text.includes(word));
  }
  $("listed").textContent = `${count(rows.filter(({ hidden }) => !hidden).length)} of ${count(rows.length)}`;
});

(() => {
  const { folders, place } = JSON.parse($("entries").textContent);
  const [a, b] = ["a", "b"].map((id) => $(id));
  if (!a) return;
  const SHOWN = 12;
  const byName = new Map(folders.map((one) => [one.folder, one]));

  const score = (value = NaN) => round(value);
  const mean = (values, weights) =>
    values.reduce((sum, value, i) => sum + weights[i] * value, 0) / weights.reduce((sum, weight) => sum + weight, 0);

  const row = (table, cells, numbers) => {
    const line = $(table).tBodies[0].insertRow();
    cells.forEach((text, place) => {
      const cell = place ? line.insertCell() : line.appendChild(document.createElement("th"));
      if (!place) cell.scope = "row";
      if (text instanceof Node) cell.append(text);
      else cell.textContent = text;
      if (place >= numbers) cell.className = "n";
    });
  };

  // A folder whose run wrote no report has no page to lead to.
  const link = ({ folder, reported }, query) => {
    if (!reported) return query;
    const made = make("a", "", query);
    made.href = `${folder.split("/").map(encodeURIComponent).join("/")}/report.html#q=${encodeURIComponent(query)}`;
    return made;
  };

  // The places of the queries that both ask the same: [place in one, place in the other, id].
  const common = (one, other) => {
    const places = new Map(other.queries.map(([id, digest], place) => [JSON.stringify([id, digest]), place]));
    return one.queries
      .map((query, place) => [place, places.get(JSON.stringify(query)), query[0]])
      .filter(([, there]) => there !== undefined);
  };

  const pairs = (one, other) => {
    const left = [...other.retrievers], matched = new Map(one.retrievers.map((from) => [from, [undefined, "only in the first"]]));
    for (const [state, keys] of [["the same", ["key", "name"]], ["the same, renamed", ["key"]], ["another under this name", ["name"]]]) {
      for (const [from, [to]] of matched) {
        const at = to ? -1 : left.findIndex((one) => keys.every((key) => one[key] === from[key]));
        if (at >= 0) matched.set(from, [...left.splice(at, 1), state]);
      }
    }
    return [...[...matched].map(([from, of]) => [from, ...of]), ...left.map((to) => [undefined, to, "only in the second"])];
  };

  const ground = (one, other, shared) => {
    if (![one, other].every(({ retrievers }) => retrievers.length)) return "Nobody judged one of the two: there is nothing to compare.";
    if (one.primary !== other.primary) return `Decided by different measures, ${one.primary} and ${other.primary}: no means are compared.`;
    if (!one.queries.length || !other.queries.length)
      return one.digest === other.digest
        ? "The data are the same. The scores of one run are not in this page: means over all queries."
        : "The data are not the same, and the scores of one run are not in this page: the means are not over the same queries.";
    const all = new Set([...one.queries, ...other.queries].map(([id]) => id)).size;
    return `${one.primary} on ${shared.length} common ${shared.length === 1 ? "query" : "queries"} of ${all}.`;
  };

  const show = () => {
    const [one, other] = [byName.get(a.value), byName.get(b.value)];
    for (const id of ["means", "moved", "facts"]) $(id).tBodies[0].replaceChildren();
    const shared = common(one, other);
    $("command").textContent = `harness compare ${place}/${one.folder} ${place}/${other.folder}`;
    $("ground").textContent = ground(one, other, shared);
    const comparable = one.primary === other.primary;
    const moved = [];
    for (const [from, to, state] of pairs(one, other)) {
      const name = !from || !to || from.name === to.name ? (from || to).name : `${from.name}, ${to.name}`;
      const [left, right] = [from?.values, to?.values];
      if (comparable && left?.length && right?.length) {
        const both = shared.map(([i, j, id]) => [left[i], right[j], id, one.weights?.[i] ?? 1]).filter(([x, y]) => x !== null && y !== null);
        const changes = both.map(([x, y]) => y - x);
        const counts = [changes.filter((x) => x > 1e-9), changes.filter((x) => Math.abs(x) <= 1e-9), changes.filter((x) => x < -1e-9)];
        const weights = both.map(([, , , weight]) => weight); // those of the first, as in harness compare
        const means = both.length ? [0, 1].map((side) => mean(both.map((of) => of[side]), weights)) : [NaN, NaN];
        row("means", [name, state, score(means[0]), score(means[1]), both.length ? signed(means[1] - means[0]) : "–",
          counts.map((some) => some.length).join(" / ")], 2);
        both.forEach(([x, y, id]) => { if (Math.abs(y - x) > 1e-9) moved.push([id, name, x, y]); });
      } else {
        const change = comparable && from && to && one.digest === other.digest ? signed(to.mean - from.mean) : "–";
        row("means", [name, state, score(from && from.mean), score(to && to.mean), change, "–"], 2);
      }
    }
    moved.sort((x, y) => Math.abs(y[3] - y[2]) - Math.abs(x[3] - x[2]));
    moved.slice(0, SHOWN).forEach(([id, name, x, y]) => row("moved", [link(other, id), name, score(x), score(y), signed(y - x)], 2));
    $("moved").hidden = !moved.length;
    for (const key of new Set([...Object.keys(one.facts), ...Object.keys(other.facts)])) {
      const [x, y] = [one.facts[key] || "", other.facts[key] || ""];
      if (x !== y) row("facts", [key, x || "–", y || "–"], 3);
    }
    $("facts").hidden = !$("facts").tBodies[0].rows.length;
  };

  const wanted = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    const [newest, ...others] = folders;
    const before = others.find((one) => one.facts.experiment === newest.facts.experiment)
      ?? others.find((one) => one.digest === newest.digest || common(one, newest).length);
    // Else the first two of the table that are of the same data.
    const suggested = new URLSearchParams(before ? "" : first("table.runs a[href^='#a=']")?.hash.slice(1));
    const chosen = (key, otherwise) => [asked.get(key), suggested.get(key)].find((name) => byName.has(name)) ?? otherwise.folder;
    a.value = chosen("a", before ?? others[0]);
    b.value = chosen("b", newest);
    show();
  };

  for (const select of [a, b]) {
    folders.forEach((one) => select.add(new Option(`${one.folder}, ${one.facts.started.slice(0, 10)}`, one.folder)));
    select.addEventListener("change", () => {
      history.pushState(null, "", `#a=${encodeURIComponent(a.value)}&b=${encodeURIComponent(b.value)}`);
      show();
    });
  }
  addEventListener("hashchange", () => { wanted(); if (/[#&]b=/.test(location.hash)) $("difference").scrollIntoView(); });
  addEventListener("popstate", wanted);
  wanted();
})();
