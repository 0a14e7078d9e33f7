"use strict";
(() => {
  const store = `judge:${data.pool}`;
  const keyOf = (item) => `${item.query}\t${item.document}\t${item.round}`;
  let judge = "";
  let kept = {};
  let lasting = true;
  let at = 0;
  let chosen = false; // whether the judge went to this document, and did not come to it in order
  let shownAt = 0;

  const article = document.querySelector("article");

  const load = () => {
    const entries = readEntries(store);
    if (!entries) lasting = false;
    return entries ?? { judge: "", kept: {} };
  };

  // Labels that were taken in before; and, where the page continues an earlier one, what the browser keeps of the same
  // texts by the same policy: more documents or questions make another pool, and no label is lost.
  const answered = (owner) => {
    const places = {}, found = {};
    for (const item of data.items) {
      const { id, digest } = data.documents[item.text];
      places[`${data.queries[item.query].id}\t${id}\t${item.round}`] = places[`${digest}\t${item.round}`] = keyOf(item);
    }
    const keep = (key, said) => {
      if (key) found[key] = { ...said, seconds: said.seconds ?? null, note: said.note || "", at: said.at || "" };
    };
    for (const row of data.answered) {
      keep(places[`${row.query_id}\t${row.document_id}\t${row.round}`], { grade: row.grade, seconds: row.seconds, note: row.note, at: row.at });
    }
    for (const said of data.continues ? otherEntries() : []) if (said.by === owner) keep(places[`${said.text}\t${said.round}`], said);
    return found;
  };
  const otherEntries = () => {
    const entries = [];
    try {
      for (const [name, text] of Object.entries({ ...window.localStorage })) {
        if (!name.startsWith("judge:") || name.startsWith(store)) continue;
        const said = JSON.parse(text);
        if (said.prompt === data.prompt && said.text && said.by) entries.push(said);
      }
    } catch { /* nothing is kept, or by another program */ }
    return entries;
  };
  const judgeBefore = () => data.answered[0]?.judge ?? (data.continues ? otherEntries()[0]?.by ?? "" : "");

  // Two tabs, or a browser that forgets: what is kept is read again before every write, and opening writes nothing.
  const change = (edit) => {
    const there = load().kept;
    kept = { ...kept, ...there };
    edit();
    if (!lasting) return;
    if (writeEntries(store, there, kept, judge)) return;
    lasting = false;
    complain("This browser's storage is full: export your judgments now, before you close the page.");
  };

  const finished = () => data.items.filter((item) => keyOf(item) in kept).length;

  // By the judge's own pace: half of the answers took less than its median.
  const timeLeft = (left) => {
    const paces = Object.values(kept).map((one) => one.seconds).filter((seconds) => seconds > 0).sort((x, y) => x - y);
    if (paces.length < 3 || !left) return "";
    const minutes = Math.ceil((left * paces[Math.floor(paces.length / 2)]) / 60);
    return `, about ${minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`} left`;
  };
  // Markdown as it reads: headings, lists, bold and code; every word of it stays text.
  const inline = (line) => line.split(/((?<!\w)\*\*(?=\S)[^*]*[^*\s]\*\*(?!\w)|`[^`]+`)/).map((part, i) => {
    if (i % 2 === 0) return part;
    const marks = part.startsWith("`") ? 1 : 2, node = document.createElement(marks === 1 ? "code" : "strong");
    node.textContent = part.slice(marks, -marks);
    return node;
  });
  const rendered = (text) => text.split(/\r?\n/).flatMap((line, i) => {
    const heading = /^#{1,6}\s+(.*)$/.exec(line), item = /^(\s*)[-*+]\s+(.*)$/.exec(line);
    const feed = i ? ["\n"] : [];
    if (heading) {
      const node = document.createElement("strong");
      node.append(...inline(heading[1]));
      return [...feed, node];
    }
    return [...feed, ...(item ? [`${item[1]}• `, ...inline(item[2])] : inline(line))];
  });

  const open = () => data.items.findIndex((item) => !(keyOf(item) in kept));

  const showProgress = () => {
    const done = finished();
    $("bar").max = data.items.length;
    $("bar").value = done;
    $("count").textContent = `${done} of ${data.items.length}${timeLeft(data.items.length - done)}`;
    $("undo").disabled = !done;
    $("labels").textContent = `${done} ${done === 1 ? "label" : "labels"}`;
  };

  // The documents of the question on the screen; what is judged again has a group of its own.
  const group = () => data.items.map((item, i) => i)
    .filter((i) => data.items[i].query === data.items[at].query && data.items[i].round === data.items[at].round);
  const showGroup = () => {
    $("documents").replaceChildren(...(at < 0 ? [] : group()).map((i, number) => {
      const row = document.createElement("li"), button = document.createElement("button");
      const title = document.createElement("span"), grade = document.createElement("span");
      const shown = data.documents[data.items[i].text], said = kept[keyOf(data.items[i])];
      button.type = "button";
      title.className = "title";
      title.textContent = ` ${shown.title || shown.text.slice(0, 60)}`;
      grade.className = "grade";
      grade.textContent = said ? ` ✓${said.grade ?? "?"}` : "";
      button.append(`${number + 1}`, title, grade);
      if (i === at) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => show(i));
      row.append(button);
      return row;
    }));
  };
  const step = (by) => {
    if (at < 0) return;
    const numbers = group(), to = numbers[numbers.indexOf(at) + by];
    if (to !== undefined) show(to);
  };

  const show = (target) => {
    chosen = target !== undefined;
    at = chosen ? target : open();
    showProgress();
    showGroup();
    $("pair").hidden = at < 0 || !judge;
    $("done").hidden = at >= 0 || !judge;
    (at < 0 ? $("done") : $("skip").parentElement).append($("undo"));
    if (!judge) return;
    if (at < 0) { $("done").querySelector("h2").focus(); return; }
    const item = data.items[at];
    const query = data.queries[item.query];
    const shown = data.documents[item.text];
    $("query").textContent = query.text;
    $("place").textContent = ` ${item.query + 1} of ${data.queries.length}`;
    $("title").textContent = shown.title;
    // A Markdown page begins with its title.
    $("title").hidden = !shown.title || shown.text.replace(/^#*\s*/, "").startsWith(shown.title);
    const text = $("text");
    text.dir = ""; // or the direction is sought anew at each line
    text.replaceChildren();
    for (const part of rendered(shown.text)) text.append(part); // a megabyte is too much for arguments
    text.dir = "auto";
    for (const node of [$("title"), text]) markWords(node, query.text);
    $("note").value = kept[keyOf(item)]?.note ?? "";
    article.scrollTop = 0;
    article.focus({ preventScroll: true });
    if ($("policy").open) $("pair").scrollIntoView({ block: "start" });
    else window.scrollTo(0, 0);
    if (!inSight()) article.scrollIntoView({ block: "start" });
    $("live").textContent = `${finished() + 1} of ${data.items.length}: ${query.text}. ${shown.title}`;
    shownAt = performance.now();
  };

  // A policy, a long query or a small window may hide the document: nobody grades what is not visible.
  const inSight = () => {
    const { top, bottom, height } = article.getBoundingClientRect();
    const end = Math.min(bottom, window.innerHeight, document.querySelector(".answer").getBoundingClientRect().top);
    return end - Math.max(top, 0) >= Math.min(height, 48);
  };

  const give = (grade) => {
    if (at < 0 || !judge) return;
    if (!inSight()) {
      $("policy").open = false;
      complain("The text was not visible, so nothing was judged. Read it, then judge.");
      article.scrollIntoView({ block: "start" });
      return;
    }
    const item = data.items[at];
    const said = {
      grade,
      seconds: Math.round((performance.now() - shownAt) / 100) / 10,
      note: $("note").value.trim(),
      at: new Date().toISOString(),
    };
    const after = group().find((i) => i > at && !(keyOf(data.items[i]) in kept));
    complain("");
    change(() => { kept[keyOf(item)] = signed(item, said); });
    if (chosen && after !== undefined) show(after);
    else show();
  };
  // What an entry belongs to, so that a later page over other documents knows it.
  const signed = (item, said) => ({
    ...said, text: data.documents[item.text].digest, round: item.round, prompt: data.prompt, by: judge,
  });

  // All of the question's documents that have no label yet, by one key.
  const giveNone = () => {
    if (at < 0 || !judge || $("none").hidden) return;
    const numbers = group().filter((i) => !(keyOf(data.items[i]) in kept));
    const seconds = Math.round((performance.now() - shownAt) / 100 / Math.max(1, numbers.length)) / 10;
    const now = new Date().toISOString();
    complain("");
    change(() => {
      for (const i of numbers) kept[keyOf(data.items[i])] = signed(data.items[i], { grade: 0, seconds, note: "", at: now, batch: now });
    });
    show();
  };

  const undo = () => {
    const last = Object.keys(kept).sort((x, y) => kept[x].at.localeCompare(kept[y].at)).at(-1);
    if (last === undefined) return;
    const { note, batch } = kept[last];
    const undone = Object.keys(kept).filter((key) => key === last || (batch && kept[key].batch === batch));
    change(() => { for (const key of undone) delete kept[key]; });
    show();
    if (keyOf(data.items[at]) === last) $("note").value = note;
  };

  const lines = () => data.items.filter((item) => keyOf(item) in kept).map((item) => {
    const said = kept[keyOf(item)];
    const query = data.queries[item.query];
    const row = {
      query_id: query.id, document_id: data.documents[item.text].id, grade: said.grade, judge, kind: "human",
      pool: data.pool, text: data.documents[item.text].digest, prompt: data.prompt, design: data.design,
      inclusion: query.inclusion, population: data.population, asked: query.asked, round: item.round, seconds: said.seconds, note: said.note,
      at: said.at,
    };
    return `${JSON.stringify(row)}\n`;
  });

  const download = () => downloadLines("judgments.jsonl", lines());

  // A file is imported completely or not at all; the message shows the first line that does not fit.
  const taken = (text) => {
    const known = {};
    for (const item of data.items) {
      known[`${data.queries[item.query].id}\t${data.documents[item.text].id}\t${item.round}`] = keyOf(item);
    }
    const found = {};
    let who = judge;
    text.split("\n").forEach((line, number) => {
      if (!line.trim()) return;
      const wrong = (what) => { throw new Error(`line ${number + 1}: ${what}. Nothing was imported.`); };
      let row;
      try { row = JSON.parse(line); } catch { wrong("it is not JSON; it may be incomplete"); }
      if (row?.pool !== data.pool) wrong(`it belongs to pool ${row?.pool}; this page shows pool ${data.pool}`);
      const place = known[`${row.query_id}\t${row.document_id}\t${row.round || 1}`];
      if (!place) wrong("its query or document is not on this page");
      if (row.grade !== null && !data.choices.some((choice) => choice.value === row.grade)) {
        wrong(`grade ${JSON.stringify(row.grade)} is not on the scale`);
      }
      if (who && row.judge !== who) wrong(`it is by ${row.judge}; this page belongs to ${who}`);
      who = row.judge;
      const said = { grade: row.grade, seconds: row.seconds ?? null, note: row.note || "", at: row.at || "" };
      if ((place in kept && kept[place].grade !== said.grade) || (place in found && found[place].grade !== said.grade)) {
        wrong("it contradicts a judgment on this page");
      }
      found[place] = said;
    });
    return { who, found };
  };

  const begin = (name) => {
    judge = name;
    $("start").hidden = true;
    $("policy").open = false;
    show();
  };

  const bring = async (file) => {
    try {
      const { who, found } = taken(await file.text());
      complain("");
      change(() => { kept = { ...found, ...kept }; judge = who; });
      if (who) begin(who);
    } catch (error) {
      complain(error.message);
    }
    $("import").value = "";
  };

  for (const choice of data.choices) {
    const button = document.createElement("button");
    const key = document.createElement("kbd");
    button.type = "button";
    button.dataset.grade = choice.value;
    key.textContent = choice.value;
    button.append(key, ` ${choice.words}`);
    button.addEventListener("click", () => give(choice.value));
    $("buttons").append(button);
    const term = document.createElement("dt");
    const words = document.createElement("dd");
    term.textContent = choice.value;
    words.textContent = choice.words;
    $("grades").append(term, words);
  }
  $("policy-text").textContent = data.policy;
  $("none").addEventListener("click", giveNone);
  $("skip").addEventListener("click", () => give(null));
  $("undo").addEventListener("click", undo);
  $("export").addEventListener("click", download);
  $("import").addEventListener("change", (event) => { if (event.target.files.length) bring(event.target.files[0]); });
  $("rename").addEventListener("click", () => { $("start").hidden = false; $("judge").value = judge; $("judge").focus(); });
  onName((name) => {
    change(() => { judge = name; });
    begin(name);
  });
  $("note").addEventListener("keydown", (event) => {
    if (event.key === "Escape" || event.key === "Enter") { article.focus(); event.preventDefault(); }
    event.stopPropagation();
  });
  document.addEventListener("keydown", (event) => {
    const key = judge ? pressedKey(event) : "";
    const choice = data.choices.find((one) => String(one.value) === key);
    if (choice) give(choice.value);
    else if (key === "x") giveNone();
    else if (key === "ArrowLeft") step(-1);
    else if (key === "ArrowRight") step(1);
    else if (key === "s") give(null);
    else if (key === "u") undo();
    else if (key === "n") { $("note").focus(); event.preventDefault(); }
    else if (key === "p") $("policy").open = !$("policy").open;
  });
  window.addEventListener("beforeunload", (event) => { if (!lasting && finished()) event.preventDefault(); });

  // What another tab writes is shown here, too; a note that is being written stays where its pair does.
  window.addEventListener("storage", (event) => {
    if (!event.key?.startsWith(store)) return;
    const stored = load();
    kept = stored.kept;
    if (!judge && stored.judge) begin(stored.judge);
    else if (open() === at || (chosen && at >= 0 && !(keyOf(data.items[at]) in kept))) { showProgress(); showGroup(); }
    else show();
  });

  const before = load();
  const owner = before.judge || judgeBefore();
  kept = { ...answered(owner), ...before.kept };
  if (!lasting) complain("This browser stores nothing for this file: export your judgments before you close the page.");
  if (owner) begin(owner);
  else show();
})();
