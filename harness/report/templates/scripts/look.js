// The grid of queries, sorted and filtered; the rankings of the selected one side by side, with moves and texts.
const MOST = 50;
const browser = first(".browser"), listed = $("look-list"), box = $("look-text"), detail = $("look-detail");
const sorts = found(".queries thead th"), rankings = found(".ranking", detail), heads = found("thead .n", detail).slice(1);
const gap = first(".gap", detail), { lang } = first("h3", detail);
// A column of the grid and a direction; at first the largest differences.
let order = { column: null, down: true };
let current = null, most = MOST;

const spoken = (tag, className, ...inside) => {
  const node = put(make(tag, className, ...inside), { dir: "auto" });
  if (lang) node.lang = lang;
  return node;
};
const gradeOf = (value, best) => {
  const title = value > 0 ? `grade ${value} of ${best}` : value === undefined ? "no label" : "irrelevant";
  const kind = value > 0 ? (value === best ? " hit best" : " hit") : "";
  return put(make("span", `grade${kind}`, make("span", "", value ?? "–")), { title, role: "img", "aria-label": title });
};
const titled = (number, ...words) => {
  const [id, title] = evidence.documents[number];
  return put(spoken("span", "title", ...(words.length ? words : [title || id])), { title: id });
};
const hit = (number, rank, { graded, best, wanted, given }) => {
  const [id, title] = evidence.documents[number], text = beside.texts[number];
  let inside = titled(number, ...(title || !text ? marked(title || id, wanted) : snippet(text, wanted)));
  if (text) {
    const full = spoken("div", "full");
    inside = make("details", "", make("summary", "", inside), full);
    on(inside, "toggle", () => { full.append(...marked(text, wanted)); watchSize(full); }, { once: true });
  }
  const score = given === undefined ? "" : make("span", "s", minus(String(given)));
  return make("li", "", make("span", "r", rank + 1), gradeOf(graded.get(number), best), inside, score);
};
// Lines between a document's positions in two rankings.
const drawShifts = () => {
  if (!gap || !current) return;
  const [x, y] = pair(), [left, right] = [x, y].map((r) => found("li", rankings[r]));
  const lines = current.lists[x].flatMap((number, i) => {
    const [one, other] = [left[i], right[current.lists[y].indexOf(number)]];
    if (!one.offsetHeight || !other?.offsetHeight) return [];
    const relevant = first(".hit", one) ? " relevant" : "";
    return [drawn("line", { class: `shift${relevant}`, x2: gap.offsetWidth, y1: one.offsetTop + 16, y2: other.offsetTop + 16 })];
  });
  gap.replaceChildren(drawn("svg", {}, ...lines));
};
const show = (query) => {
  current = query ?? null;
  detail.hidden = !query;
  for (const line of listed.children) line.classList.toggle("looked", Boolean(first("input:checked", line)));
  if (!query) return;
  const graded = new Map(query.judged), best = Math.max(0, ...graded.values()), [x, y] = pair();
  const columns = [...new Set([x, y, ...rankings.keys()])], given = beside.scores[evidence.queries.indexOf(query)];
  const textOf = (number) => `${evidence.documents[number][1]} ${beside.texts[number] ?? ""}`;
  const wanted = wantedWords(query.text, [...new Set(query.lists.flat())].map(textOf));
  const fill = (selector, inside) => first(selector, detail).replaceChildren(...inside);
  fill("h3", [query.text]);
  fill(".note", [...query.fields, ...query.properties].map((value) => make("bdi", "pair", value)));
  const relevant = query.judged.filter(([, value]) => value > 0).map(([number, value, ranks]) => make("tr", "",
    make("td", "n", gradeOf(value, best)),
    put(make("th", "", titled(number)), { scope: "row" }),
    ...columns.map((r) => make("td", "n", ranks[r] || "missed"))));
  fill("tbody", relevant);
  first(".scroll", detail).hidden = !relevant.length; // With claims only, no document is relevant.
  first("thead tr", detail).append(...columns.map((r) => heads[r]));
  first(".columns", detail).append(...columns.map((r) => rankings[r]));
  for (const r of columns) {
    const hits = query.lists[r].map((number, i) => hit(number, i, { graded, best, wanted, given: given?.[r]?.[i] }));
    const ceiling = first(".ceiling", rankings[r]);
    if (ceiling) ceiling.textContent = placeOf("measure") ? "" : `, at most ${round(query.ceilings[r])} with these candidates`;
    first("b", rankings[r]).textContent = round(scoreOf(query, r));
    first(".why", rankings[r]).textContent = query.why?.find(([place]) => place === r)?.[1] ?? "";
    first(".did", rankings[r]).textContent = query.did?.find(([place]) => place === r)?.[1] ?? "";
    first("ol", rankings[r]).replaceChildren(...(hits.length ? hits : [make("li", "none", "nothing")]));
  }
  if (gap) rankings[x].after(gap);
  drawShifts();
};

// The colour of a score: its share of the highest score in the row.
const shaded = (value, most) => {
  const cell = make("td", "n", round(value));
  cell.style.setProperty("--share", `${Math.round(100 * Math.max(0, value / most) || 0)}%`);
  return cell;
};
const row = ({ id, place, query, gap: ahead }, most) => {
  const head = put(make("th"), { scope: "row" });
  if (query) {
    const radio = put(make("input"), { type: "radio", name: "look-query", value: id });
    radio.checked = query === current;
    on(radio, "change", () => change({ q: id }, () => show(query)));
    head.append(make("label", "", radio, make("bdi", "i", id), " ", spoken("span", "q", query.text)));
  } else { // Its rankings are on the page beside this one.
    const words = new URLSearchParams({ a: state.a ?? "", b: state.b ?? "", q: id });
    head.append(put(make("a", "i", id), { href: `${browser.dataset.elsewhere}#${words}` }));
  }
  const cells = data.retrievers.map((_, r) => shaded(values(r)[place] ?? NaN, most));
  const line = make("tr", query && query === current ? "looked" : "", head, ...cells, ...(selects.a ? [make("td", "n d", signed(ahead))] : []));
  on(line, "click", ({ target }) => { if (query && !target.closest("label, a")) first("input", line).click(); });
  return line;
};
const sorted = (rows) => {
  const { column, down } = order, last = data.retrievers.length + 1;
  const keyed = (by) => rows.sort((x, y) => (by(y) || 0) - (by(x) || 0));
  if (column === null) keyed(({ gap: ahead, place }) => (selects.a ? Math.abs(ahead) : -place));
  else if (column === last) keyed(({ gap: ahead }) => ahead);
  else if (column) keyed(({ place }) => values(column - 1)[place] ?? -Infinity);
  return down ? rows : rows.reverse();
};
const list = () => {
  const asked = fold(box.value.trim()), [x, y] = pair(), { group, q } = state;
  const matching = sorted([...inside].sort((one, other) => one - other).map((place) => {
    const id = data.ids[place], query = evidenceOf.get(id), [mine, theirs] = [x, y].map((r) => values(r)[place] ?? NaN);
    const ahead = selects.a ? mine - theirs : mine, kind = { 1: "won", [-1]: "lost", 0: "tied" }[Math.sign(ahead)];
    return { id, place, query, gap: ahead, groups: [...(query?.groups ?? []), selects.a && kind] };
  }).filter(({ id, query, groups }) => (!group || groups.includes(group))
    && [query?.text ?? "", id].some((text) => id === q || fold(text).includes(asked))));
  const elsewhere = q && !evidenceOf.has(q);
  $("look-count").textContent = `${count(matching.length)} of ${queries(data.ids.length)}${elsewhere ? `; ${q} is not on this page` : ""}`;
  // A query in the address is listed, however far down; another stays if it is visible.
  const at = matching.findIndex(({ id }) => id === q), shown = matching.slice(0, at < most ? most : Infinity);
  show(elsewhere ? null : (matching[at]?.query ?? shown.find(({ query }) => query && query === current)?.query ?? shown.find(({ query }) => query)?.query));
  const highest = Math.max(...data.retrievers.flatMap((_, r) => matching.map(({ place }) => values(r)[place] ?? 0)));
  listed.replaceChildren(...shown.map((one) => row(one, highest)));
  if (at >= 0) listed.closest(".scroll").scrollTop = listed.children[at].offsetTop - 60;
  const left = matching.length - shown.length;
  $("look-more").replaceChildren(...(left ? [button(`${count(left)} more`, () => {
    most = Infinity;
    list();
    first("input, a", listed.children[shown.length]).focus();
  })] : []));
};
const drawQueries = () => {
  const [a, b] = pair().map((r) => data.retrievers[r]);
  const words = { won: `${a} beats ${b}`, lost: `${a} loses to ${b}`, tied: `${a} ties with ${b}` };
  for (const option of selects.group.options) option.textContent = words[option.value] ?? option.textContent;
  if ($("look-gap")) $("look-gap").title = `${a} − ${b}`;
  list();
};
on(box, "input", () => { state.q = ""; list(); });
// A press sorts down, a second up, a third restores the order.
sorts.forEach((head, column) => on(first("button", head), "click", () => {
  const again = order.column === column;
  order = again && !order.down ? { column: null, down: true } : { column, down: !again };
  for (const one of sorts) one.removeAttribute("aria-sort");
  if (order.column !== null) head.setAttribute("aria-sort", order.down === Boolean(column) ? "descending" : "ascending");
  list();
}));
// An opened text moves the rows below it.
const moved = new ResizeObserver(drawShifts);
found("ol", detail).forEach((one) => moved.observe(one));
// If unpacking fails, the page stays as without scripts.
setTimeout(() => start().catch((error) => { root.classList.remove("js"); throw error; }));
