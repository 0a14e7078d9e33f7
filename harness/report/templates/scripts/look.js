// The browser of queries: a list that follows the clientFilter, two rankings side by side, what moved between them, and texts.
const MOST = 12, HITS = 5;
const browser = document.querySelector(".browser");
const startLooking = async () => {
  const all = evidence();
  const { texts, scores } = await unpacked("texts");
  const one = all.retrievers.length < 2;
  const group = $("look-group"), order = $("look-order");
  let current = null, most = MOST, hits = HITS;
  const pair = () => (one ? [0, 0] : [clientFilter.state.a, clientFilter.state.b]);

  const spoken = (node) => { if (all.lang) node.lang = all.lang; node.dir = "auto"; return node; };
  const named = (retriever) => {
    const span = make("span", "name");
    const svg = drawn("svg", { class: "mark", viewBox: "-1.2 -1.2 2.4 2.4", "aria-hidden": "true" });
    svg.append(drawn("path", { d: retriever.outline, fill: retriever.color }));
    span.append(svg, retriever.name);
    return span;
  };
  const gradeWords = (value, most) => (value === undefined ? "nobody judged it" : value > 0 ? `grade ${value} of ${most}` : "judged irrelevant");
  const grade = (value, most) => {
    const kind = value > 0 ? (value === most ? " hit best" : " hit") : "";
    const chip = make("span", `grade${kind}`);
    chip.title = gradeWords(value, most);
    const figure = make("span", "", value === undefined ? "–" : String(value));
    figure.setAttribute("aria-hidden", "true");
    chip.append(figure, make("span", "hidden", chip.title));
    return chip;
  };
  const item = (rank, number, graded, most, { both, wanted, score }) => {
    const node = make("li", both ? "both" : "");
    node.dataset.document = number;
    const [id, title] = all.documents[number], text = texts[number] ?? "";
    const inside = make("div");
    const name = spoken(make("span", "title"));
    name.append(markedText(title || id, hitsIn(title || id, wanted), 0, (title || id).length));
    name.title = id;
    if (text) {
      const details = make("details");
      const summary = make("summary");
      summary.append(name);
      const full = spoken(make("div", "full"));
      details.append(summary, full);
      details.addEventListener("toggle", () => {
        if (details.open && !full.hasChildNodes()) full.append(markedText(text, hitsIn(text, wanted), 0, text.length));
      });
      inside.append(details);
      if (!title) { name.replaceChildren(snippet(text, wanted)); }
    } else inside.append(name);
    node.append(make("span", "r", String(rank)), grade(graded.get(number), most), inside);
    if (score !== undefined) node.append(make("span", "s", String(score).replace("-", "\u2212")));
    return node;
  };

  // Lines from where a document stands in the one ranking to where it stands in the other.
  const shifts = (gap, left, right, graded) => {
    const svg = gap.firstElementChild;
    const top = gap.getBoundingClientRect().top, width = gap.clientWidth;
    const middle = (node) => { const box = node.querySelector(".r").getBoundingClientRect(); return box.top + box.height / 2 - top; };
    const there = new Map([...right.children].map((node) => [node.dataset.document, node]));
    svg.setAttribute("height", Math.max(left.offsetHeight, right.offsetHeight) + 40);
    svg.setAttribute("width", width);
    svg.replaceChildren(...[...left.children].filter((node) => there.has(node.dataset.document)).map((node) => {
      const from = middle(node), to = middle(there.get(node.dataset.document));
      const relevant = graded.get(Number(node.dataset.document)) > 0;
      return drawn("path", { d: `M0,${from}C${width / 2},${from} ${width / 2},${to} ${width},${to}`, class: relevant ? "shift relevant" : "shift" });
    }));
  };

  const rerun = (query, [x, y]) => {
    const r = [x, y].find((place) => all.retrievers[place].before !== undefined);
    if (r === undefined) return null;
    const { name, before, depth } = all.retrievers[r];
    const ceiling = query.ceilings?.[r];
    const note = make("p", "rerun", `${name} reads the first ${depth} of ${all.retrievers[before].name} again: before ${round(query.scores[before])}, after ${round(query.scores[r])}${ceiling === undefined ? "" : `, at most ${round(ceiling)} with these candidates`}. `);
    if (![x, y].includes(before)) note.append(button("Before and after", () => clientFilter.change({ a: r, b: before })));
    return note;
  };

  const show = (query) => {
    current = query;
    const graded = new Map(query.judged.map(([number, value]) => [number, value]));
    const most = Math.max(0, ...graded.values());
    const [x, y] = pair(), given = scores[all.queries.indexOf(query)] ?? [];
    const columns = [...new Set([x, y, ...all.retrievers.keys()])];
    const head = spoken(make("h3", "", query.text));
    const fields = make("p", "note");
    query.fields.forEach((value) => fields.append(make("bdi", "pair", value)));
    const shown = [...new Set(columns.flatMap((r) => query.lists[r]))];
    const wanted = wantedWords(query.text, shown.map((number) => `${all.documents[number][1]} ${texts[number] ?? ""}`));
    const lists = make("div", `columns${one ? "" : " shifted"}`);
    lists.setAttribute("role", "group");
    lists.setAttribute("aria-label", "Rankings side by side");
    const common = new Set(one || x === y ? [] : query.lists[x].filter((number) => query.lists[y].includes(number)));
    const rankings = new Map();
    let gap = null;
    for (const r of columns) {
      const column = make("div");
      const top = make("h4", "head");
      top.append(named(all.retrievers[r]), make("b", "", round(query.scores[r])));
      const list = make("ol");
      query.lists[r].slice(0, hits).forEach((number, i) => list.append(item(i + 1, number, graded, most, { both: (r === x || r === y) && common.has(number), wanted, score: given[r]?.[i] })));
      if (!query.lists[r].length) list.append(make("li", "none", "nothing"));
      rankings.set(r, list);
      const why = (query.why ?? []).find(([place]) => place === r);
      column.append(top, ...(why ? [make("p", "why", why[1])] : []), list);
      lists.append(column);
      if (r === x && columns.length > 1 && x !== y) {
        gap = make("div", "gap");
        gap.append(drawn("svg", { "aria-hidden": "true" }));
        lists.append(gap);
      }
    }
    const frame = make("div", "scroll");
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Relevant documents and where they stood");
    frame.append(placesOf(query, columns, most));
    // Where claims alone are judged, no document is relevant.
    frame.hidden = !query.judged.some(([, grade]) => grade > 0);
    watchSize(lists); watchSize(frame);
    const legend = one ? "" : " Lines join a document’s two ranks, green where relevant.";
    const further = Math.max(...query.lists.map((of) => of.length)) > hits
      ? button("all hits that are kept", () => { hits = Infinity; show(query); }) : null;
    $("look-detail").replaceChildren(...[head, fields, rerun(query, [x, y]), frame, lists, further,
      make("p", "note", `“missed”: not in the first ${all.depth}; “–”: not judged; at the right: retrieval scores.${legend}`)].filter(Boolean));
    if (gap) {
      const redraw = () => shifts(gap, rankings.get(x), rankings.get(y), graded);
      redraw();
      // An opened text moves what stands below it.
      for (const list of [rankings.get(x), rankings.get(y)]) new ResizeObserver(redraw).observe(list);
    }
  };
  const placesOf = (query, columns, most) => {
    const table = make("table");
    table.append(make("caption", "", "Relevant documents and where they stood"));
    const heads = table.createTHead().insertRow();
    const column = (node, className) => { const th = make("th", className); th.scope = "col"; th.append(node); heads.append(th); };
    column("Grade", "n"); column("Document", "");
    columns.forEach((r) => column(named(all.retrievers[r]), "n"));
    const body = table.createTBody();
    for (const [number, value, ranks] of query.judged.filter(([, grade]) => grade > 0).slice(0, hits * 2)) {
      const row = body.insertRow();
      const chip = make("td", "n");
      chip.append(grade(value, most));
      const name = make("th");
      name.scope = "row";
      const [id, title] = all.documents[number];
      const text = spoken(make("span", "", title || id));
      text.title = id;
      name.append(text);
      row.append(chip, name);
      columns.forEach((r) => row.append(make("td", "n", ranks[r] ? String(ranks[r]) : "missed")));
    }
    return table;
  };

  const inGroup = (query) => {
    const { group: key } = clientFilter.state, [mine, other] = pair().map((r) => clientFilter.score(query.id, r));
    return !key || (key === "lost" ? mine < other : key === "won" ? mine > other : query.groups.includes(key));
  };
  const list = () => {
    const wanted = fold($("look-text").value.trim());
    const [x, y] = pair(), members = clientFilter.members(), { measure } = clientFilter.state;
    const apart = (query) => clientFilter.score(query.id, x) - clientFilter.score(query.id, y);
    let matching = all.queries.filter((query) =>
      (!wanted || fold(query.text).includes(wanted) || fold(query.id).includes(wanted)) &&
      inGroup(query) &&
      (members === null || members.has(query.id)));
    const by = order ? order.value : "file";
    if (by === "flip") matching = matching.toSorted((p, q) => (Math.abs(apart(q)) || 0) - (Math.abs(apart(p)) || 0));
    if (by === "hard") matching = matching.toSorted((p, q) => Math.max(...p.scores) - Math.max(...q.scores));
    const shown = matching.slice(0, most);
    const among = matching.map((query) => clientFilter.place(query.id));
    const means = `; mean ${clientFilter.data().measures[measure]}: ${[...new Set([x, y])].map((r) => `${all.retrievers[r].name} ${round(clientFilter.mean(r, measure, among))}`).join(", ")}`;
    $("look-count").textContent = `${count(matching.length)} of ${count(all.queries.length)} queries${matching.length ? means : ""}`;
    const wantedQuery = all.queries.find((query) => query.id === clientFilter.state.q) ?? current;
    current = matching.includes(wantedQuery) && (wantedQuery.id === clientFilter.state.q || shown.includes(wantedQuery)) ? wantedQuery : shown[0] ?? null;
    $("look-list").replaceChildren(...shown.map((query) => {
      const label = make("label");
      const radio = make("input");
      radio.type = "radio";
      radio.name = "look-query";
      radio.checked = query === current;
      radio.addEventListener("change", () => clientFilter.change({ q: query.id }));
      const text = spoken(make("span", "q", query.text));
      const d = apart(query);
      label.append(radio, make("bdi", "i", query.id), make("span", "d", one ? round(clientFilter.score(query.id, 0)) : Number.isNaN(d) ? "–" : signed(d)), text);
      return label;
    }));
    if (matching.length > most) {
      $("look-list").append(button(`${count(matching.length - most)} more`, () => {
        const at = most;
        most = Infinity;
        list();
        $("look-list").querySelectorAll("input")[at]?.focus();
      }));
    }
    if (current && !shown.includes(current)) { most = Infinity; list(); return; }
    if (current) show(current); else $("look-detail").replaceChildren();
  };
  const mark = () => {
    if (!one) {
      const [x, y] = pair().map((r) => all.retrievers[r].name);
      for (const [key, words] of [["lost", `${x} loses to ${y}`], ["won", `${x} beats ${y}`]]) group.querySelector(`[value=${key}]`).textContent = words;
    }
    // A choice within the list leaves the list where it is.
    if (group) { group.value = clientFilter.state.group; if (group.selectedIndex < 0) clientFilter.state.group = group.value = ""; }
  };
  browser.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  let before = "";
  const follow = () => {
    mark();
    const { q, ...rest } = clientFilter.state, now = JSON.stringify(rest);
    const chosen = all.queries.find((query) => query.id === q);
    const at = all.queries.length && [...$("look-list").querySelectorAll("label")].find((label) => label.querySelector(".i").textContent === q);
    if (now === before && chosen && at) { at.querySelector("input").checked = true; show(chosen); return; }
    if (now === before && q === "" && current) return;
    // A link to a query that the filter hides takes the filter away.
    if (chosen && !fold(chosen.text).includes(fold($("look-text").value.trim()))) $("look-text").value = "";
    before = now;
    list();
  };
  $("look-text").addEventListener("input", () => { clientFilter.state.q = ""; list(); });
  order?.addEventListener("input", list);
  group?.addEventListener("input", () => clientFilter.change({ group: group.value, q: "" }));
  clientFilter.follow(follow);
  follow();
};
let looking = null;
const look = () => (looking ??= startLooking());
$("look-text").addEventListener("input", look, { once: true });
// What cannot be unpacked leaves the page as it is without scripts.
later(() => clientFilter.start().then(() => {
  browser.hidden = false;
  if (clientFilter.state.q || clientFilter.state.group) { look(); return; }
  clientFilter.follow(() => { if (clientFilter.state.q || clientFilter.state.group) look(); });
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    look();
  }, { rootMargin: "600px" });
  seen.observe(browser);
}).catch((error) => { root.classList.remove("js"); throw error; }));
