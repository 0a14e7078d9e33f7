// The browser of queries: a list that follows the filter, rankings side by side, what moved between them, and texts.
const MOST = 12, HITS = 5;
const browser = document.querySelector(".browser");
const startLooking = async () => {
  const all = evidence(), { texts, scores } = await unpacked("texts"), one = all.retrievers.length < 2;
  const group = $("look-group"), order = $("look-order"), listed = $("look-list"), box = $("look-text");
  let current = null, most = MOST, hits = HITS;
  const pair = () => (one ? [0, 0] : [clientFilter.state.a, clientFilter.state.b]);
  const asked = () => fold(box.value.trim());

  const spoken = (tag, className, ...inside) => {
    const node = put(make(tag, className, ...inside), { dir: "auto" });
    if (all.lang) node.lang = all.lang;
    return node;
  };
  const named = ({ name, outline, color }) => make("span", "name",
    drawn("svg", { class: "mark", viewBox: "-1.2 -1.2 2.4 2.4", "aria-hidden": "true" }, drawn("path", { d: outline, fill: color })), name);
  const grade = (value, best) => {
    const title = value === undefined ? "nobody judged it" : value > 0 ? `grade ${value} of ${best}` : "judged irrelevant";
    const kind = value > 0 ? (value === best ? " hit best" : " hit") : "";
    return put(make("span", `grade${kind}`, put(make("span", "", value ?? "–"), { "aria-hidden": "true" }), make("span", "hidden", title)), { title });
  };
  const titled = (number) => all.documents[number][1] || all.documents[number][0];
  const item = (number, place, { graded, best, common, wanted, given }) => {
    const [id, title] = all.documents[number], text = texts[number];
    const name = put(spoken("span", "title", ...(title || !text ? marked(titled(number), wanted) : snippet(text, wanted))), { title: id });
    const inside = make("div", "", name);
    if (text) {
      const full = spoken("div", "full"), details = make("details", "", make("summary", "", name), full);
      details.addEventListener("toggle", () => { full.append(...marked(text, wanted)); watchSize(full); }, { once: true });
      inside.append(details);
    }
    const node = make("li", common.has(number) ? "both" : "", make("span", "r", place + 1), grade(graded.get(number), best), inside);
    if (given !== undefined) node.append(make("span", "s", minus(String(given))));
    return put(node, { "data-document": number });
  };

  // Lines from where a document stands in the one ranking to where it stands in the other.
  const shifts = (gap, left, right, graded) => {
    const { top, width } = gap.getBoundingClientRect();
    const middle = (node) => { const rank = node.querySelector(".r").getBoundingClientRect(); return rank.top + rank.height / 2 - top; };
    const there = new Map([...right.children].map((node) => [node.dataset.document, node]));
    gap.replaceChildren(drawn("svg", { "aria-hidden": "true", width, height: Math.max(left.offsetHeight, right.offsetHeight) + 40 }, ...[...left.children].flatMap((node) => {
      const number = node.dataset.document, other = there.get(number);
      if (!other) return [];
      const from = middle(node), to = middle(other);
      return drawn("path", { d: `M0,${from}C${width / 2},${from} ${width / 2},${to} ${width},${to}`, class: graded.get(Number(number)) > 0 ? "shift relevant" : "shift" });
    })));
  };

  const rerun = (query, [x, y]) => {
    const r = [x, y].find((place) => all.retrievers[place].before !== undefined);
    if (r === undefined) return "";
    const { name, before, depth } = all.retrievers[r], ceiling = query.ceilings?.[r];
    const most = ceiling === undefined ? "" : `, at most ${round(ceiling)} with these candidates`;
    const note = make("p", "rerun", `${name} reads the first ${depth} of ${all.retrievers[before].name} again: before ${round(query.scores[before])}, after ${round(query.scores[r])}${most}. `);
    if (![x, y].includes(before)) note.append(button("Before and after", () => clientFilter.change({ a: r, b: before })));
    return note;
  };
  const head = (className, inside, scope = "col") => put(make("th", className, inside), { scope });
  const placesOf = (judged, columns, best) => make("table", "",
    make("caption", "", "Relevant documents and where they stood"),
    make("thead", "", make("tr", "", head("n", "Grade"), head("", "Document"), ...columns.map((r) => head("n", named(all.retrievers[r]))))),
    make("tbody", "", ...judged.slice(0, hits * 2).map(([number, value, ranks]) => make("tr", "",
      make("td", "n", grade(value, best)),
      head("", put(spoken("span", "", titled(number)), { title: all.documents[number][0] }), "row"),
      ...columns.map((r) => make("td", "n", ranks[r] || "missed"))))));
  const scrolled = (className, label, ...inside) => {
    const node = put(make("div", className, ...inside), { role: "group", "aria-label": label });
    watchSize(node);
    return node;
  };

  const show = (query) => {
    current = query;
    const graded = new Map(query.judged), best = Math.max(0, ...graded.values()), judged = query.judged.filter(([, value]) => value > 0);
    const [x, y] = pair(), given = scores[all.queries.indexOf(query)] ?? [], columns = [...new Set([x, y, ...all.retrievers.keys()])];
    const shown = [...new Set(query.lists.flat())];
    const wanted = wantedWords(query.text, shown.map((number) => `${all.documents[number][1]} ${texts[number] ?? ""}`));
    const both = new Set(x === y ? [] : query.lists[x].filter((number) => query.lists[y].includes(number)));
    const rankings = columns.map((r) => make("ol", "", ...query.lists[r].slice(0, hits).map((number, i) =>
      item(number, i, { graded, best, common: r === x || r === y ? both : new Set(), wanted, given: given[r]?.[i] }))));
    const rows = columns.map((r, at) => {
      const why = (query.why ?? []).find(([place]) => place === r);
      if (!query.lists[r].length) rankings[at].append(make("li", "none", "nothing"));
      return make("div", "", make("h4", "head", named(all.retrievers[r]), make("b", "", round(query.scores[r]))), ...(why ? [make("p", "why", why[1])] : []), rankings[at]);
    });
    const gap = x === y ? null : make("div", "gap");
    if (gap) rows.splice(1, 0, gap);
    const places = scrolled("scroll", "Relevant documents and where they stood", placesOf(judged, columns, best));
    places.hidden = !judged.length; // Where claims alone are judged, no document is relevant.
    const further = Math.max(...query.lists.map((of) => of.length)) > hits ? button("all hits that are kept", () => { hits = Infinity; show(query); }) : "";
    const legend = one ? "" : " Lines join a document’s two ranks, green where relevant.";
    $("look-detail").replaceChildren(
      spoken("h3", "", query.text), make("p", "note", ...query.fields.map((value) => make("bdi", "pair", value))),
      rerun(query, [x, y]), places, scrolled(`columns${one ? "" : " shifted"}`, "Rankings side by side", ...rows), further,
      make("p", "note", `“missed”: not in the first ${all.depth}; “–”: not judged; at the right: retrieval scores.${legend}`),
    );
    if (!gap) return;
    // An opened text moves what stands below it.
    const moved = new ResizeObserver(() => shifts(gap, rankings[0], rankings[1], graded));
    rankings.slice(0, 2).forEach((ranking) => moved.observe(ranking));
  };

  const inGroup = (query) => {
    const { group: key } = clientFilter.state, [mine, other] = pair().map((r) => clientFilter.score(query.id, r));
    return !key || (key === "lost" ? mine < other : key === "won" ? mine > other : query.groups.includes(key));
  };
  const list = () => {
    const wanted = asked(), [x, y] = pair(), members = clientFilter.members(), { measure, q } = clientFilter.state;
    const apart = (query) => clientFilter.score(query.id, x) - clientFilter.score(query.id, y);
    const matching = all.queries.filter((query) =>
      (fold(query.text).includes(wanted) || fold(query.id).includes(wanted)) && inGroup(query) && (members === null || members.has(query.id)));
    if (order?.value === "flip") matching.sort((p, q) => (Math.abs(apart(q)) || 0) - (Math.abs(apart(p)) || 0));
    if (order?.value === "hard") matching.sort((p, q) => Math.max(...p.scores) - Math.max(...q.scores));
    const among = matching.map((query) => clientFilter.place(query.id));
    const means = [...new Set([x, y])].map((r) => `${all.retrievers[r].name} ${round(clientFilter.mean(r, measure, among))}`);
    $("look-count").textContent = `${count(matching.length)} of ${count(all.queries.length)} queries${matching.length ? `; mean ${clientFilter.data().measures[measure]}: ${means.join(", ")}` : ""}`;
    // A query that was asked for is listed, however far down it stands; another stays where it is in sight.
    const linked = matching.findIndex(({ id }) => id === q);
    if (linked >= most) most = Infinity;
    const shown = matching.slice(0, most);
    current = matching[linked] ?? (all.queries.some(({ id }) => id === q) || !shown.includes(current) ? shown[0] : current) ?? null;
    listed.replaceChildren(...shown.map((query) => {
      const radio = put(make("input"), { type: "radio", name: "look-query" }), d = apart(query);
      radio.checked = query === current;
      radio.addEventListener("change", () => clientFilter.change({ q: query.id }));
      return make("label", "", radio, make("bdi", "i", query.id),
        make("span", "d", one ? round(clientFilter.score(query.id, 0)) : Number.isNaN(d) ? "–" : signed(d)), spoken("span", "q", query.text));
    }));
    if (matching.length > most) {
      listed.append(button(`${count(matching.length - most)} more`, () => {
        const at = most;
        most = Infinity;
        list();
        listed.querySelectorAll("input")[at]?.focus();
      }));
    }
    if (current) show(current); else $("look-detail").replaceChildren();
  };
  let before = "";
  const follow = () => {
    if (!one) {
      const [x, y] = pair().map((r) => all.retrievers[r].name);
      for (const [key, words] of [["lost", `${x} loses to ${y}`], ["won", `${x} beats ${y}`]]) group.querySelector(`[value=${key}]`).textContent = words;
    }
    group.value = clientFilter.state.group;
    if (group.selectedIndex < 0) clientFilter.state.group = group.value = "";
    const { q, ...rest } = clientFilter.state, now = JSON.stringify(rest), chosen = all.queries.find((query) => query.id === q);
    // A choice within the list leaves the list where it is.
    const label = chosen && [...listed.querySelectorAll("label")].find((one) => one.querySelector(".i").textContent === q);
    if (now === before && label) { label.querySelector("input").checked = true; show(chosen); return; }
    if (now === before && q === "" && current) return;
    // A link to a query that the filter hides takes the filter away.
    if (chosen && !fold(chosen.text).includes(asked())) box.value = "";
    before = now;
    list();
  };
  browser.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", () => { clientFilter.state.q = ""; list(); });
  order?.addEventListener("input", list);
  group.addEventListener("input", () => clientFilter.change({ group: group.value, q: "" }));
  clientFilter.follow(follow);
  follow();
};
let looking = null;
const look = () => (looking ??= startLooking());
$("look-text").addEventListener("input", look, { once: true });
// What cannot be unpacked leaves the page as it is without scripts.
(window.requestIdleCallback ?? setTimeout)(() => clientFilter.start().then(() => {
  const linked = () => { if (clientFilter.state.q || clientFilter.state.group) look(); };
  browser.hidden = false;
  clientFilter.follow(linked);
  linked();
  new IntersectionObserver((entries, seen) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    look();
  }, { rootMargin: "600px" }).observe(browser);
}).catch((error) => { root.classList.remove("js"); throw error; }));
