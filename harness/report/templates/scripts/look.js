// The browser of queries: a list that follows the filter, rankings side by side, what moved between them, and texts.
const MOST = 12;
const browser = first(".browser"), listed = $("look-list"), box = $("look-text"), detail = $("look-detail");
const order = $("look-order"), rankings = found(".ranking", detail), heads = found("thead .n", detail).slice(1);
const gap = first(".gap", detail), { lang } = first("h3", detail);
let current = null, most = MOST;

const spoken = (tag, className, ...inside) => {
  const node = put(make(tag, className, ...inside), { dir: "auto" });
  if (lang) node.lang = lang;
  return node;
};
const gradeOf = (value, best) => {
  const title = value > 0 ? `grade ${value} of ${best}` : value === undefined ? "nobody judged it" : "judged irrelevant";
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
// Lines from where a document stands in the one ranking to where it stands in the other.
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
  current = query;
  detail.hidden = !query;
  if (!query) return;
  const graded = new Map(query.judged), best = Math.max(0, ...graded.values()), [x, y] = pair();
  const columns = [...new Set([x, y, ...rankings.keys()])], given = beside.scores[evidence.queries.indexOf(query)];
  const textOf = (number) => `${evidence.documents[number][1]} ${beside.texts[number] ?? ""}`;
  const wanted = wantedWords(query.text, [...new Set(query.lists.flat())].map(textOf));
  const fill = (selector, inside) => first(selector, detail).replaceChildren(...inside);
  fill("h3", [query.text]);
  fill(".note", query.fields.map((value) => make("bdi", "pair", value)));
  const relevant = query.judged.filter(([, value]) => value > 0).map(([number, value, ranks]) => make("tr", "",
    make("td", "n", gradeOf(value, best)),
    put(make("th", "", titled(number)), { scope: "row" }),
    ...columns.map((r) => make("td", "n", ranks[r] || "missed"))));
  fill("tbody", relevant);
  first(".scroll", detail).hidden = !relevant.length; // Where claims alone are judged, no document is relevant.
  first("thead tr", detail).append(...columns.map((r) => heads[r]));
  first(".columns", detail).append(...columns.map((r) => rankings[r]));
  for (const r of columns) {
    const hits = query.lists[r].map((number, i) => hit(number, i, { graded, best, wanted, given: given?.[r]?.[i] }));
    const ceiling = first(".ceiling", rankings[r]);
    if (ceiling) ceiling.textContent = placeOf("measure") ? "" : `, at most ${round(query.ceilings[r])} with these candidates`;
    first("b", rankings[r]).textContent = round(scoreOf(query, r));
    first(".why", rankings[r]).textContent = query.why?.find(([place]) => place === r)?.[1] ?? "";
    first("ol", rankings[r]).replaceChildren(...(hits.length ? hits : [make("li", "none", "nothing")]));
  }
  if (gap) rankings[x].after(gap);
  drawShifts();
};

const label = (query, ahead) => {
  const radio = put(make("input"), { type: "radio", name: "look-query", value: query.id });
  radio.checked = query === current;
  on(radio, "change", () => change({ q: query.id }, () => show(query)));
  const score = selects.a ? signed(ahead) : round(ahead);
  return make("label", "", radio, make("bdi", "i", query.id), make("span", "d", score), spoken("span", "q", query.text));
};
const list = () => {
  const asked = fold(box.value.trim()), [x, y] = pair(), { group, q } = state;
  const matching = evidence.queries.map((query) => {
    const ahead = scoreOf(query, x) - (selects.a ? scoreOf(query, y) : 0);
    return { query, ahead, groups: [...query.groups, ahead < 0 && "lost", ahead > 0 && "won"] };
  }).filter(({ query, groups }) => inside.has(places.get(query.id)) && (!group || groups.includes(group))
    && [query.text, query.id].some((text) => query.id === q || fold(text).includes(asked)));
  if (order?.value === "flip") matching.sort((one, other) => (Math.abs(other.ahead) || 0) - (Math.abs(one.ahead) || 0));
  const means = [...new Set([x, y])].map((r) => `${data.retrievers[r]} ${round(mean(r, matching.map(({ query }) => places.get(query.id))))}`);
  const elsewhere = q && evidence.queries.every(({ id }) => id !== q);
  $("look-count").textContent = `${count(matching.length)} of ${queries(evidence.queries.length)}${matching.length ? `; mean ${state.measure}: ${means.join(", ")}` : ""}${elsewhere ? `; ${q} is not on this page` : ""}`;
  // A query that was asked for is listed, however far down it stands; another stays where it is in sight.
  const at = matching.findIndex(({ query }) => query.id === q), shown = matching.slice(0, at < most ? most : Infinity);
  show(elsewhere ? null : (matching[at] ?? shown.find(({ query }) => query === current) ?? shown[0])?.query);
  listed.replaceChildren(...shown.map(({ query, ahead }) => label(query, ahead)));
  if (at >= 0) listed.scrollTop = listed.children[at].offsetTop - listed.offsetTop;
  if (matching.length > shown.length) {
    listed.append(button(`${count(matching.length - shown.length)} more`, () => {
      most = Infinity;
      list();
      first("input", listed.children[shown.length]).focus();
    }));
  }
};
const drawQueries = () => {
  const [a, b] = pair().map((r) => data.retrievers[r]), words = { lost: `${a} loses to ${b}`, won: `${a} beats ${b}` };
  for (const option of selects.group.options) option.textContent = words[option.value] ?? option.textContent;
  list();
};
on(box, "input", () => { state.q = ""; list(); });
order?.addEventListener("input", list);
// An opened text moves what stands below it.
const moved = new ResizeObserver(drawShifts);
found("ol", detail).forEach((one) => moved.observe(one));
// What cannot be unpacked leaves the page as it is without scripts.
setTimeout(() => start().catch((error) => { root.classList.remove("js"); throw error; }));
