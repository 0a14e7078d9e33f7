// The card of one query, drawn from the evidence as the page was.
const MAX_LATER = 5, LONG_QUERY = 110;
let evidence = await content("evidence");
// A page of several data sets has the evidence of each.
const sets = evidence?.sets;
// Queries are packed as columns.
for (const part of sets ?? (evidence ? [evidence] : [])) {
  part.queries = (part.columns[0] ?? []).map((_, i) => part.columns.map((column) => column[i]));
}
if (sets) {
  const named = new URLSearchParams(location.hash.slice(1)).get("set");
  evidence = sets.find(({ set }) => set === named) ?? sets[0];
}
const state = { query: 0, a: 0, b: 0, group: 0, all: false };
const queryOf = (number) => {
  const [id, text, scores, hits, labelled, pair, properties, amount, agents] = evidence.queries[number];
  return { id, text, scores, hits, labelled, pair, properties, amount, agents };
};
// One side of the card: the first hits, then labelled documents further down.
const sideOf = (query, retriever) => {
  const known = new Map(query.labelled.map(([document, grade, ranks]) => [document, { document, grade, rank: ranks[retriever] }]));
  const first = query.hits[retriever].slice(0, evidence.cutoff);
  const hits = first.map((document, i) => ({ document, grade: known.get(document)?.grade ?? 0, rank: i + 1, title: evidence.documents[document] }));
  if (!evidence.is_labelled) return hits;
  const later = [...known.values()].filter(({ document }) => !first.includes(document));
  later.sort((x, y) => (x.rank || Infinity) - (y.rank || Infinity) || 0);
  return [...hits, ...later.slice(0, MAX_LATER).map((hit, i) => ({ ...hit, title: evidence.documents[hit.document], later: true, cut: i === 0 }))];
};
const linksOf = (left, right) => left.flatMap(({ document, grade }, i) => {
  const j = grade ? right.findIndex((hit) => hit.document === document) : -1;
  return j < 0 ? [] : [{ left: i, right: j, lost: evidence.is_labelled && j < i }];
});
const discount = (rank) => (rank ? 1 / Math.log2(rank + 1) : 0);
const rankWords = (rank) => (rank ? `rank ${rank}` : "missing");
const findingOf = (query) => {
  const { a, b } = state, names = evidence.retrievers;
  if (!evidence.is_labelled && names.length === 1) return "";
  if (!evidence.is_labelled) {
    const common = query.hits[a].filter((document) => query.hits[b].includes(document)).length;
    return `${names[a]} and ${names[b]} have ${common} of their first ${evidence.cutoff} documents in common.`;
  }
  if (!query.labelled.length) return "";
  const title = ([document, grade]) => `“${evidence.documents[document]}” (grade ${grade})`;
  if (names.length === 1) return `${title(query.labelled[0])}: ${rankWords(query.labelled[0][2][0])}.`;
  const cost = ([, grade, ranks]) => grade * Math.abs(discount(ranks[a]) - discount(ranks[b]));
  const label = query.labelled.reduce((most, one) => (cost(one) > cost(most) ? one : most));
  if (!cost(label)) return "Both rank the labelled documents alike.";
  return `${title(label)}: ${rankWords(label[2][a])} in ${names[a]}, ${rankWords(label[2][b])} in ${names[b]}.`;
};
const cardOf = () => {
  const query = queryOf(state.query), left = sideOf(query, state.a), single = evidence.retrievers.length === 1;
  const right = single ? [] : sideOf(query, state.b);
  return { query, left, right, single, links: linksOf(left, right), finding: findingOf(query) };
};
const hitLine = ({ rank, title, grade, later, cut }, isRight) => {
  const box = make("i", grade ? "" : "none", grade ? String(grade) : "");
  const name = make("span", "title", title);
  name.title = title;
  name.dir = "auto";
  name.lang = $("asked").lang;
  const parts = [make("span", "rank", rank ? String(rank) : "–"), name];
  const classes = [grade && "labelled", later && "below", cut && "cut"].filter(Boolean).join(" ");
  return make("li", classes, ...(isRight ? [box, ...parts] : [...parts, box]));
};
const hitList = (hits, isRight) => make("ol", isRight ? "hits b" : "hits", ...hits.map((hit) => hitLine(hit, isRight)));
const drawCard = () => {
  const { query, left, right, single, links, finding } = cardOf(), pair = $("pair");
  const asked = $("asked");
  asked.textContent = `“${query.text}”`;
  asked.classList.toggle("long", query.text.length > LONG_QUERY);
  $("finding").replaceChildren(make("bdi", "", finding));
  $("properties").replaceChildren(make("bdi", "", query.properties));
  const sides = single ? [state.a] : [state.a, state.b];
  const did = sides.filter((number) => query.agents[number]).map((number) => `${evidence.retrievers[number]}: ${query.agents[number]}`);
  $("agents").replaceChildren(make("bdi", "", did.join(" · ")));
  for (const key of ["a", "b"]) {
    const head = pair.querySelector(`.side.${key}`);
    if (!head) continue;
    head.querySelector("select").value = state[key];
    head.querySelector(".name").textContent = evidence.retrievers[state[key]];
    head.querySelector("b").textContent = evidence.is_labelled ? round(query.scores[state[key]]) : "";
  }
  found(".hits", pair).forEach((list) => list.remove());
  if (single) return pair.append(hitList(left, false));
  const lines = pair.querySelector(".links svg"), height = Math.max(left.length, right.length, 1);
  lines.setAttribute("viewBox", `0 0 10 ${height}`);
  lines.replaceChildren(...links.map(({ left: i, right: j, lost }) => drawn("line", { x1: 0, x2: 10, y1: i + 0.5, y2: j + 0.5, "vector-effect": "non-scaling-stroke", class: lost ? "lost" : "" })));
  pair.querySelector(".links").before(hitList(left, false));
  pair.append(hitList(right, true));
};
