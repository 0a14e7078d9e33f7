"use strict";
// Written for this report: sorting, filtering, live charts, and the browser of queries. All text goes in as text.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const $ = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const number = (cell) => {
    const raw = cell.dataset.value;
    return raw !== undefined ? parseFloat(raw) : parseFloat(cell.textContent.replace("\u2212", "-").replace(/[$,]/g, ""));
  };

  // What scrolls is reached by the keyboard; what fits is no stop on the way.
  const fits = (node) => node.scrollWidth <= node.clientWidth + 1 && node.scrollHeight <= node.clientHeight + 1;
  const reach = (node) => { if (fits(node)) node.removeAttribute("tabindex"); else node.tabIndex = 0; };
  const sizes = "ResizeObserver" in window ? new ResizeObserver((seen) => {
    for (const entry of seen) reach(entry.target.matches(".scroll, .columns") ? entry.target : entry.target.parentElement);
  }) : null;
  const watchSize = (node) => { sizes?.observe(node); if (node.firstElementChild) sizes?.observe(node.firstElementChild); };
  document.querySelectorAll(".scroll").forEach(watchSize);

  // Tables: a button in each header sorts by its column; a third press gives the first order back.
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const first = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const steps = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
        const now = head.getAttribute("aria-sort");
        const next = steps[(steps.indexOf(now) + 1) % 3];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        let rows = first;
        if (next) {
          head.setAttribute("aria-sort", next);
          const sign = next === "ascending" ? 1 : -1;
          const keyed = first.map((row) => [numeric ? number(row.cells[column]) : row.cells[column].textContent, row]);
          const compare = new Intl.Collator(undefined, { numeric: true }).compare;
          keyed.sort(([x], [y]) => {
            if (!numeric) return sign * compare(x, y);
            if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
            return sign * (x - y);
          });
          rows = keyed.map(([, row]) => row);
        }
        body.append(...rows);
      });
    });
  }

  // The filter of the table of every query; tags come from the evidence.
  const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();
  let kept = null;
  const evidence = () => (kept ??= JSON.parse($("evidence").textContent));
  for (const input of document.querySelectorAll("input.filter")) {
    const section = input.closest("section");
    const output = section.querySelector("output");
    let tags = null;
    input.addEventListener("input", () => {
      tags ??= new Map(evidence().queries.map((query) => [query.id, fold(query.fields.join("\n"))]));
      const wanted = fold(input.value.trim());
      let shown = 0;
      section.querySelectorAll("table.queries").forEach((table, i) => {
        for (const row of table.tBodies[0].rows) {
          const id = row.cells[0].textContent;
          row.hidden = !(fold(id).includes(wanted) || fold(row.cells[1].textContent).includes(wanted) || (tags.get(id) ?? "").includes(wanted));
          if (i === 0 && !row.hidden) shown += 1;
        }
      });
      output.textContent = wanted ? `${shown} found` : "";
    });
  }

  // Charts come alive when they are looked at: the still picture gives way to the same chart with tooltips.
  const enliven = (figure) => {
    const plot = figure.querySelector(".plot");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const stage = make("div");
    const tooltip = { disableDefaultStyle: true, theme: "custom" };
    window.vegaEmbed(stage, spec, { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip })
      .then(() => {
        // The figure's label speaks for the whole chart.
        stage.querySelector("svg").setAttribute("aria-hidden", "true");
        plot.replaceChildren(...stage.childNodes);
        figure.classList.add("live");
      });
  };
  if (window.vegaEmbed && "IntersectionObserver" in window) {
    const watch = new IntersectionObserver((seen) => {
      for (const entry of seen) {
        if (!entry.isIntersecting) continue;
        watch.unobserve(entry.target);
        enliven(entry.target);
      }
    }, { rootMargin: "100px" });
    document.querySelectorAll("figure.chart").forEach((figure) => watch.observe(figure));
  }

  // The browser of queries.
  const browser = document.querySelector(".browser");
  const MOST = 200;
  const SVG = "http://www.w3.org/2000/svg";
  const round = (value) => value.toFixed(3).replace("-", "\u2212");
  const start = () => {
    const all = evidence();
    const one = all.retrievers.length < 2;
    const field = $("look-field");
    const group = $("look-group");
    const a = $("look-a"), b = $("look-b"), order = $("look-order");
    if (!one) { a.selectedIndex = all.pair[0]; b.selectedIndex = all.pair[1]; }
    const chosen = () => (one ? [0, 0] : [a.selectedIndex, b.selectedIndex]);
    let current = null;

    const spoken = (node) => { if (all.lang) node.lang = all.lang; };
    const mark = (retriever) => {
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("class", "mark");
      svg.setAttribute("viewBox", "-1.2 -1.2 2.4 2.4");
      svg.setAttribute("aria-hidden", "true");
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", retriever.outline);
      path.setAttribute("fill", retriever.color);
      svg.append(path);
      return svg;
    };
    const named = (retriever) => {
      const span = make("span", "name");
      span.append(mark(retriever), retriever.name);
      return span;
    };
    const grade = (value, most) => {
      const chip = make("span", "grade" + (value > 0 ? (value === most ? " hit best" : " hit") : ""), value === undefined ? "–" : String(value));
      chip.title = value === undefined ? "not judged" : `grade ${value}`;
      return chip;
    };
    const title = (document) => {
      const node = make("span", "", document[1] || document[0]);
      node.dir = "auto"; spoken(node);
      node.title = document[0];
      return node;
    };

    const show = (query) => {
      current = query;
      const detail = $("look-detail");
      const graded = new Map(query.judged.map(([document, value]) => [document, value]));
      const most = Math.max(0, ...graded.values());
      const [x, y] = chosen();
      const columns = [...new Set([x, y, ...all.retrievers.keys()])];
      const head = make("h3", "", query.text);
      head.dir = "auto"; spoken(head);
      const fields = make("p", "note");
      query.fields.forEach((value) => { const pair = make("bdi", "pair", value); fields.append(pair); });
      const lists = make("div", "columns");
      lists.setAttribute("role", "group");
      lists.setAttribute("aria-label", "Rankings side by side");
      for (const r of columns) {
        const column = make("div");
        const top = make("h4", "head");
        top.append(named(all.retrievers[r]), make("b", "", round(query.scores[r])));
        const list = make("ol");
        query.lists[r].forEach((number, i) => {
          const item = make("li");
          const document = all.documents[number];
          item.append(make("span", "r", String(i + 1)), grade(graded.get(number), most), title(document));
          if (document[2]) { const text = make("small", "", document[2]); text.dir = "auto"; spoken(text); item.append(text); }
          list.append(item);
        });
        if (!query.lists[r].length) list.append(make("li", "none", "nothing"));
        column.append(top, list);
        lists.append(column);
      }
      const gold = query.judged.filter(([, value]) => value > 0);
      const frame = make("div", "scroll");
      frame.setAttribute("role", "group");
      frame.setAttribute("aria-label", "Relevant documents and where they stood");
      const table = make("table");
      table.append(make("caption", "", "Relevant documents and where they stood"));
      const heads = table.createTHead().insertRow();
      const column = (node, className) => { const th = make("th", className); th.scope = "col"; th.append(node); heads.append(th); };
      column("Grade", "n"); column("Document", "");
      columns.forEach((r) => column(named(all.retrievers[r]), "n"));
      const body = table.createTBody();
      for (const [number, value, ranks] of gold) {
        const row = body.insertRow();
        const chip = make("td", "n");
        chip.append(grade(value, most));
        const name = make("th");
        name.scope = "row";
        name.append(title(all.documents[number]));
        row.append(chip, name);
        columns.forEach((r) => row.append(make("td", "n", ranks[r] ? String(ranks[r]) : "missed")));
      }
      frame.append(table);
      watchSize(lists); watchSize(frame);
      detail.replaceChildren(head, fields, lists, frame, make("p", "note", `“missed”: not among the first ${all.depth} hits.`));
    };

    const list = () => {
      const wanted = fold($("look-text").value.trim());
      const [x, y] = chosen();
      const apart = (query) => query.scores[x] - query.scores[y];
      let matching = all.queries.filter((query) =>
        (!wanted || fold(query.text).includes(wanted) || fold(query.id).includes(wanted)) &&
        (!group?.value || query.groups.includes(group.value)) &&
        (!field || !field.value || query.fields.includes(field.value)));
      const by = order ? order.value : "file";
      if (by === "flip") matching = matching.toSorted((p, q) => Math.abs(apart(q)) - Math.abs(apart(p)));
      if (by === "hard") matching = matching.toSorted((p, q) => Math.max(...p.scores) - Math.max(...q.scores));
      const shown = matching.slice(0, MOST);
      $("look-count").textContent = `${matching.length} of ${all.queries.length} queries` + (matching.length > MOST ? `, the first ${MOST} are listed` : "") + (one ? "" : `; ${all.measure} of ${all.retrievers[x].name} \u2212 ${all.retrievers[y].name}`);
      $("look-list").replaceChildren(...shown.map((query) => {
        const label = make("label");
        const radio = make("input");
        radio.type = "radio";
        radio.name = "look-query";
        radio.checked = query === current;
        radio.addEventListener("change", () => { show(query); remember(); });
        const id = make("bdi", "i", query.id);
        const text = make("span", "q", query.text);
        text.dir = "auto"; spoken(text);
        const d = apart(query);
        label.append(radio, id, make("span", "d", one ? round(query.scores[0]) : (d > 0 ? "+" : "") + round(d)), text);
        return label;
      }));
      if (shown.length && !shown.includes(current)) {
        $("look-list").querySelector("input").checked = true;
        show(shown[0]);
      } else if (current && shown.length) show(current);
      if (!shown.length) { current = null; $("look-detail").replaceChildren(); }
    };
    browser.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    // What is looked at stands in the address: a link to it restores it.
    const remember = () => {
      const state = new URLSearchParams();
      if (!one) { state.set("a", all.retrievers[a.selectedIndex].name); state.set("b", all.retrievers[b.selectedIndex].name); }
      if (group?.value) state.set("group", group.value);
      if (field?.value) state.set("slice", field.value);
      if (current) state.set("q", current.id);
      history.replaceState(null, "", `#${state}`);
    };
    for (const control of [$("look-text"), field, group, a, b, order]) control?.addEventListener("input", () => { list(); remember(); });
    list();
    // From elsewhere on the page to one query, or to the queries of a group.
    return {
      query: (id, rival) => {
        $("look-text").value = "";
        for (const select of [field, group]) if (select) select.value = "";
        if (!one && rival && rival !== a.selectedIndex) b.selectedIndex = rival;
        current = all.queries.find((query) => query.id === id) ?? current;
        list();
        remember();
      },
      group: (key) => { group.value = key; list(); remember(); },
      restore: (state) => {
        const place = (name) => all.retrievers.findIndex((retriever) => retriever.name === name);
        for (const [select, name] of [[a, state.get("a")], [b, state.get("b")]]) {
          if (!one && place(name) >= 0) select.selectedIndex = place(name);
        }
        if (group) group.value = state.get("group") ?? "";
        if (field) field.value = state.get("slice") ?? "";
        // A value that the page does not have leaves the choice empty.
        for (const select of [group, field]) if (select && select.selectedIndex < 0) select.value = "";
        current = all.queries.find((query) => query.id === state.get("q")) ?? current;
        list();
      },
    };
  };
  let looking = null;
  const look = () => (looking ??= start());
  for (const button of document.querySelectorAll("button.look")) {
    button.addEventListener("click", () => {
      look().group(button.dataset.group);
      $("forensics").scrollIntoView();
      $("look-group").focus({ preventScroll: true });
    });
  }
  for (const row of document.querySelectorAll(".atlas > svg")) {
    const at = (event) => {
      const { left, width } = row.getBoundingClientRect();
      const order = evidence().order;
      return order[Math.min(order.length - 1, Math.max(0, Math.floor((event.clientX - left) / width * order.length)))];
    };
    row.addEventListener("click", (event) => { look().query(at(event), Number(row.dataset.row)); $("forensics").scrollIntoView(); });
  }
  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    if (!["a", "b", "group", "slice", "q"].some((key) => state.has(key))) return;
    look().restore(state);
    $("forensics").scrollIntoView();
  };
  if (browser) {
    addEventListener("hashchange", restore);
    browser.hidden = false;
    restore();
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      look();
    }, { rootMargin: "600px" });
    seen.observe(browser);
  }
})();
