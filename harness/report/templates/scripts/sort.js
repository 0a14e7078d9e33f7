const number = (one) => {
  const raw = one.dataset.value;
  return raw !== undefined ? parseFloat(raw) : parseFloat(one.textContent.replace("\u2212", "-").replace(/[$,]/g, ""));
};
// Tables: a button in each header sorts by its column; a third press gives the first order back.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const first = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const press = document.createElement("button");
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
