// Tables: sorting, and the table of every query, which follows the clientFilter and says its own means.
// Tables: a button in each header sorts by its column; a third press gives the first order back.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const first = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const press = make("button");
    press.type = "button";
    press.append(...head.childNodes);
    head.append(press);
    press.addEventListener("click", () => {
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

// A filtered list says its own means: over the rows that are left.
const filterInput = document.querySelector("input.filter");
const queryTables = [...document.querySelectorAll("table.queries")];
for (const table of queryTables) {
  const foot = table.createTFoot().insertRow();
  const head = make("th", "", "Mean of these rows");
  head.scope = "row";
  foot.append(head, make("td"));
  for (let i = 2; i < table.tHead.rows[0].cells.length; i += 1) foot.append(make("td", "n"));
  table.tFoot.hidden = true;
}
let tags = null;
const filterTables = () => {
  if (!filterInput || !evidence()) return;
  tags ??= new Map(evidence().queries.map((query) => [query.id, fold(query.fields.join("\n"))]));
  const wanted = fold(filterInput.value.trim());
  const members = clientFilter.members();
  queryTables.forEach((table, i) => {
    const sums = [], counts = [];
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const id = row.cells[0].textContent;
      const matches = !wanted || fold(id).includes(wanted) || fold(row.cells[1].textContent).includes(wanted) || (tags.get(id) ?? "").includes(wanted);
      row.hidden = !matches || (members !== null && !members.has(id));
      if (row.hidden) continue;
      shown += 1;
      for (let column = 2; column < row.cells.length; column += 1) {
        const value = clientFilter.score(id, column - 2, i) ?? number(row.cells[column]);
        if (Number.isNaN(value)) continue;
        sums[column] = (sums[column] ?? 0) + clientFilter.weight(id) * value;
        counts[column] = (counts[column] ?? 0) + clientFilter.weight(id);
      }
    }
    table.tFoot.hidden = !(wanted || members !== null);
    [...table.tFoot.rows[0].cells].forEach((one, column) => { if (column > 1) one.textContent = counts[column] ? round(sums[column] / counts[column]) : "–"; });
    if (i === 0) filterInput.closest("section").querySelector("output").textContent = wanted || members !== null ? `${shown} ${shown === 1 ? "query" : "queries"}` : "";
  });
};
filterInput?.addEventListener("input", filterTables);
