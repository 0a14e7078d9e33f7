"use strict";
(() => {
  const store = `prefer:${data.page}`;
  const SNIPPET = 200;
  const keyOf = (step) => `${data.queries[step.query].id}\t${step.round}`;
  let judge = "";
  let kept = {};
  let lasting = true;
  let at = 0;
  let shownAt = 0;

  const load = () => {
    const entries = readEntries(store);
    if (!entries) lasting = false;
    return entries ?? { judge: "", kept: {} };
  };
  // Two tabs lose nothing of each other: entries are read again before every write.
  const change = (edit) => {
    const there = load().kept;
    kept = { ...kept, ...there };
    edit();
    if (!lasting) return;
    if (writeEntries(store, there, kept, judge)) return;
    lasting = false;
    complain("This browser's storage is full: export your answers now, before you close the page.");
  };

  const answers = () => data.steps.filter((step) => keyOf(step) in kept);
  const showProgress = () => {
    const done = answers().length;
    $("bar").max = data.steps.length;
    $("bar").value = done;
    $("count").textContent = `${done} of ${data.steps.length}`;
    $("labels").textContent = `${done} ${done === 1 ? "answer" : "answers"}`;
    $("undo").disabled = !done;
  };

  const shownDocument = (number, query) => {
    const { title, text } = data.documents[number], row = document.createElement("li");
    const details = document.createElement("details"), summary = document.createElement("summary");
    const whole = document.createElement("p"), snippet = document.createElement("p");
    summary.textContent = title || text.slice(0, 80);
    whole.className = "whole";
    whole.textContent = text;
    snippet.className = "snippet";
    const beginning = text.replace(/^#+ .*\n+/, ""); // the heading is the title
    snippet.textContent = beginning.length > SNIPPET ? `${beginning.slice(0, SNIPPET)}…` : beginning;
    for (const node of [summary, whole, snippet]) { node.dir = "auto"; markWords(node, query); }
    details.append(summary);
    row.append(details);
    if (text) { details.append(whole); row.append(snippet); }
    return row;
  };

  const show = () => {
    at = data.steps.findIndex((step) => !(keyOf(step) in kept));
    showProgress();
    $("pair").hidden = at < 0 || !judge;
    $("done").hidden = at >= 0 || !judge;
    (at < 0 ? $("done") : document.querySelector(".others")).append($("undo"));
    if (!judge) return;
    if (at < 0) { $("done").querySelector("h2").focus(); return; }
    const step = data.steps[at], query = data.queries[step.query];
    const sides = step.round === 2 ? [query.right, query.left] : [query.left, query.right];
    $("query").textContent = query.text;
    $("place").textContent = ` ${at + 1} of ${data.steps.length}`;
    $("left").replaceChildren(...sides[0].map((number) => shownDocument(number, query.text)));
    $("right").replaceChildren(...sides[1].map((number) => shownDocument(number, query.text)));
    window.scrollTo(0, 0);
    $("live").textContent = `${at + 1} of ${data.steps.length}: ${query.text}`;
    shownAt = performance.now();
  };

  const give = (choice) => {
    if (at < 0 || !judge) return;
    const key = keyOf(data.steps[at]);
    const seconds = Math.round((performance.now() - shownAt) / 100) / 10;
    complain("");
    change(() => { kept[key] = { choice, seconds, at: new Date().toISOString() }; });
    show();
  };
  const undo = () => {
    const shown = new Set(data.steps.map(keyOf));
    const last = Object.keys(kept).filter((key) => shown.has(key)).sort((x, y) => kept[x].at.localeCompare(kept[y].at)).at(-1);
    if (last === undefined) return;
    change(() => { delete kept[last]; });
    show();
  };

  const lines = () => answers().map((step) => {
    const said = kept[keyOf(step)];
    const row = {
      query_id: data.queries[step.query].id, choice: said.choice, round: step.round, judge, page: data.page,
      depth: data.depth, seed: data.seed, seconds: said.seconds, at: said.at,
    };
    return `${JSON.stringify(row)}\n`;
  });
  const download = () => downloadLines("preferences.jsonl", lines());
  const begin = (name) => {
    judge = name;
    $("start").hidden = true;
    show();
  };

  for (const button of document.querySelectorAll("#buttons button")) {
    button.addEventListener("click", () => give(button.dataset.choice));
  }
  $("undo").addEventListener("click", undo);
  $("export").addEventListener("click", download);
  onName((name) => {
    change(() => { judge = name; });
    begin(name);
  });
  document.addEventListener("keydown", (event) => {
    const key = judge ? pressedKey(event) : "";
    if (key === "1") give("left");
    else if (key === "2") give("right");
    else if (key === "0") give("same");
    else if (key === "u") undo();
  });
  window.addEventListener("beforeunload", (event) => { if (!lasting && answers().length) event.preventDefault(); });
  window.addEventListener("storage", (event) => {
    if (!event.key?.startsWith(store)) return;
    const stored = load(), before = at;
    kept = stored.kept;
    if (!judge && stored.judge) begin(stored.judge);
    else if (data.steps.findIndex((step) => !(keyOf(step) in kept)) === before) showProgress();
    else show();
  });

  const before = load();
  kept = before.kept;
  if (!lasting) complain("This browser stores nothing for this file: export your answers before you close the page.");
  if (before.judge) begin(before.judge);
  else show();
})();
