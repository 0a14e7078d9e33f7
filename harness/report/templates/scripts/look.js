// The browser of queries: a list that follows the filter, rankings side by side, what moved between them, and texts.
const MOST = 12;
const browser = document.querySelector(".browser"), listed = $("look-list"), box = $("look-text"), detail = $("look-detail");
const order = $("look-order"), rankings = found(".ranking", detail), heads = found("thead .n", detail).slice(1);
const gap = detail.querySelector(".gap"), { lang } = detail.querySelector("h3");
let current = null, most = MOST, before = "";

const spoken = (tag, className, ...inside) => {
  const node = put(make(tag, className, ...inside), { dir: "auto" });
  if (lang) node.lang = lang;
  return node;
};
const gradeOf = (value, best) => {
  const title = value === undefined ? "nobody judged it" : value > 0 ? `grade ${value} of ${best}` : "judged irrelevant";
  const shown = put(make("span", "", value ?? "–"), { "aria-hidden": "true" });
  const kind = value > 0 ? (value === best ? " hit best" : " hit") : "";
  return put(make("span", `grade${kind}`, shown, make("span", "hidden", title)), { title });
};
const titled = ([id, title]) => title || id;
const hit = (number, rank, { graded, best, wanted, both, given }) => {
  const document = evidence.documents[number], [id, title] = document, text = beside.texts[number];
  const words = title || !text ? marked(titled(document), wanted) : snippet(text, wanted);
  let inside = put(spoken("span", "title", ...words), { title: id });
  if (text) {
    const full = spoken("div", "full");
    inside = make("details", "", make("summary", "", inside), full);
    inside.addEventListener("toggle", () => { full.append(...marked(text, wanted)); watchSize(full); }, { once: true });
  }
  const score = given === undefined ? "" : make("span", "s", minus(String(given)));
  return make("li", both.has(number) ? "both" : "", make("span", "r", rank + 1), gradeOf(graded.get(number), best), inside, score);
};
// Lines from where a document stands in the one ranking to where it stands in the other.
const drawShifts = () => {
  if (!gap || !current) return;
  const [left, right] = pair().map((r) => [...rankings[r].querySelector("ol").children]), [x, y] = pair().map((r) => current.lists[r]);
  const lines = x.flatMap((number, i) => {
    const [one, other] = [left[i], right[y.indexOf(number)]];
    if (!one?.offsetHeight || !other?.offsetHeight) return [];
    const relevant = one.querySelector(".hit") ? " relevant" : "";
    return [drawn("line", { class: `shift${relevant}`, x2: gap.offsetWidth, y1: one.offsetTop + 16, y2: other.offsetTop + 16 })];
  });
  gap.replaceChildren(drawn("svg", { "aria-hidden": "true" }, ...lines));
};
const rerun = (query) => {
  const r = pair().find((place) => evidence.retrievers[place].before !== undefined);
  if (r === undefined) return "";
  const { name, before, depth } = evidence.retrievers[r], ceiling = query.ceilings?.[r];
  const highest = ceiling === undefined ? "" : `, at most ${round(ceiling)} with these candidates`;
  return `${name} reads the first ${depth} of ${evidence.retrievers[before].name} again: before ${round(query.scores[before])}, after ${round(query.scores[r])}${highest}.`;
};
const show = (query) => {
  current = query;
  detail.hidden = !query;
  if (!query) return;
  const graded = new Map(query.judged), best = Math.max(0, ...graded.values()), [x, y] = pair();
  const columns = [...new Set([x, y, ...rankings.keys()])], given = beside.scores[evidence.queries.indexOf(query)];
  const textOf = (number) => `${evidence.documents[number][1]} ${beside.texts[number] ?? ""}`;
  const wanted = wantedWords(query.text, [...new Set(query.lists.flat())].map(textOf));
  const common = new Set(x === y ? [] : query.lists[x].filter((number) => query.lists[y].includes(number)));
  detail.querySelector("h3").textContent = query.text;
  detail.querySelector(".note").replaceChildren(...query.fields.map((value) => make("bdi", "pair", value)));
  detail.querySelector(".rerun").textContent = rerun(query);
  const relevant = query.judged.filter(([, value]) => value > 0).map(([number, value, ranks]) => make("tr", "",
    make("td", "n", gradeOf(value, best)),
    put(make("th", "", put(spoken("span", "", titled(evidence.documents[number])), { title: evidence.documents[number][0] })), { scope: "row" }),
    ...columns.map((r) => make("td", "n", ranks[r] || "missed"))));
  detail.querySelector("tbody").replaceChildren(...relevant);
  detail.querySelector(".scroll").hidden = !relevant.length; // Where claims alone are judged, no document is relevant.
  detail.querySelector("thead tr").append(...columns.map((r) => heads[r]));
  detail.querySelector(".columns").append(...columns.map((r) => rankings[r]));
  for (const r of columns) {
    const both = r === x || r === y ? common : new Set();
    const hits = query.lists[r].map((number, i) => hit(number, i, { graded, best, wanted, both, given: given?.[r]?.[i] }));
    rankings[r].querySelector("b").textContent = round(query.scores[r]);
    rankings[r].querySelector(".why").textContent = query.why?.find(([place]) => place === r)?.[1] ?? "";
    rankings[r].querySelector("ol").replaceChildren(...(hits.length ? hits : [make("li", "none", "nothing")]));
  }
  if (gap) rankings[x].after(gap);
  drawShifts();
};

const label = (query, ahead) => {
  const radio = put(make("input"), { type: "radio", name: "look-query", value: query.id });
  radio.checked = query === current;
  radio.addEventListener("change", () => change({ q: query.id }));
  const score = known.a ? signed(ahead) : round(ahead);
  return make("label", "", radio, make("bdi", "i", query.id), make("span", "d", score), spoken("span", "q", query.text));
};
const list = () => {
  const asked = fold(box.value.trim()), [x, y] = pair(), { group, q } = state;
  const score = (place, r) => values(r)[place] ?? NaN;
  const matching = evidence.queries.map((query) => {
    const place = places.get(query.id), ahead = score(place, x) - (known.a ? score(place, y) : 0);
    return { query, place, ahead, groups: [...query.groups, ahead < 0 && "lost", ahead > 0 && "won"] };
  }).filter(({ query, place, groups }) => inside.has(place) && (!group || groups.includes(group))
    && [query.text, query.id].some((text) => fold(text).includes(asked)));
  if (order?.value === "flip") matching.sort((one, other) => (Math.abs(other.ahead) || 0) - (Math.abs(one.ahead) || 0));
  if (order?.value === "hard") matching.sort((one, other) => Math.max(...one.query.scores) - Math.max(...other.query.scores));
  const means = [...new Set([x, y])].map((r) => `${data.retrievers[r]} ${round(mean(r, matching.map(({ place }) => place)))}`);
  $("look-count").textContent = `${count(matching.length)} of ${count(evidence.queries.length)} queries${matching.length ? `; mean ${state.measure}: ${means.join(", ")}` : ""}`;
  // A query that was asked for is listed, however far down it stands; another stays where it is in sight.
  const at = matching.findIndex(({ query }) => query.id === q), shown = matching.slice(0, at < most ? most : Infinity);
  show((matching[at] ?? shown.find(({ query }) => query === current) ?? shown[0])?.query);
  listed.replaceChildren(...shown.map(({ query, ahead }) => label(query, ahead)));
  if (matching.length > shown.length) {
    listed.append(button(`${count(matching.length - shown.length)} more`, () => {
      most = Infinity;
      list();
      listed.children[shown.length].querySelector("input").focus();
    }));
  }
};
const drawQueries = () => {
  const [a, b] = pair().map((r) => data.retrievers[r]), words = { lost: `${a} loses to ${b}`, won: `${a} beats ${b}` };
  for (const option of selectOf("group").options) option.textContent = words[option.value] ?? option.textContent;
  const { q, ...rest } = state, now = JSON.stringify(rest), chosen = evidence.queries.find(({ id }) => id === q);
  const radio = chosen && found("input", listed).find(({ value }) => value === q);
  // A choice within the list leaves the list where it is.
  if (now === before && radio) {
    radio.checked = true;
    show(chosen);
    return;
  }
  // A link to a query that the filter hides takes the filter away.
  if (chosen && !fold(chosen.text).includes(fold(box.value.trim()))) box.value = "";
  before = now;
  list();
};
box.addEventListener("input", () => { state.q = ""; list(); });
order?.addEventListener("input", list);
// An opened text moves what stands below it.
const moved = new ResizeObserver(drawShifts);
found("ol", detail).forEach((one) => moved.observe(one));
// What cannot be unpacked leaves the page as it is without scripts.
setTimeout(() => start().catch((error) => { root.classList.remove("js"); throw error; }));
