"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const store = `prefer:${data.page}`;
  const SNIPPET = 200;
  const keyOf = (step) => `${data.queries[step.query].id}\t${step.round}`;
  let judge = "";
  let kept = {};
  let lasting = true;
  let at = 0;
  let shownAt = 0;

  const complain = (text) => { $("message").textContent = text; $("message").hidden = !text; };

  // One entry an answer, read again before every write: two tabs lose nothing of each other.
  const load = () => {
    try {
      const stored = window.localStorage, found = { judge: "", kept: {} };
      for (const [name, text] of Object.entries({ ...stored })) {
        if (name === store) found.judge = JSON.parse(text).judge;
        else if (name.startsWith(`${store}:`)) found.kept[name.slice(store.length + 1)] = JSON.parse(text);
      }
      stored.setItem(`probe:${store}`, "1");
      stored.removeItem(`probe:${store}`);
      return found;
    } catch {
      lasting = false;
      return { judge: "", kept: {} };
    }
  };
  const change = (edit) => {
    const there = load().kept;
    kept = { ...kept, ...there };
    edit();
    if (!lasting) return;
    try {
      for (const key of Object.keys(there)) if (!(key in kept)) window.localStorage.removeItem(`${store}:${key}`);
      for (const [key, said] of Object.entries(kept)) window.localStorage.setItem(`${store}:${key}`, JSON.stringify(said));
      window.localStorage.setItem(store, JSON.stringify({ judge }));
    } catch {
      lasting = false;
      complain("This browser's storage is full: export your answers now, before you close the page.");
    }
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
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines(), { type: "application/jsonl" }));
    link.download = "preferences.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
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
  $("start").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = $("judge").value.trim();
    if (!name) return;
    change(() => { judge = name; });
    begin(name);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !judge || event.target.matches("input") || event.repeat) return;
    // Where a key writes no Latin letter or digit, its place counts.
    const placed = event.key.length === 1 ? /^(?:Key|Digit)(.)$/.exec(event.code)?.[1] : "";
    const key = (/^[a-z\d]$/i.test(event.key) ? event.key : placed || "").toLowerCase();
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
