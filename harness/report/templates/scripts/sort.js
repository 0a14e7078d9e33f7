// Tables: a button in each header sorts by its column; a third press restores the order.
for (const table of found("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const numeric = head.classList.contains("n");
    const steps = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const order = numeric ? (x, y) => x - y : new Intl.Collator(undefined, { numeric: true }).compare;
    const key = ({ dataset: { value }, textContent }) => (numeric ? parseFloat(value ?? textContent.replace("\u2212", "-").replace(/[$,]/g, "")) : value ?? textContent);
    const press = put(make("button", "", ...head.childNodes), { type: "button" });
    head.append(press);
    on(press, "click", () => {
      const next = steps[(steps.indexOf(head.getAttribute("aria-sort")) + 1) % 3], sign = next === "ascending" ? 1 : -1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      const keyed = rows.map((row) => [key(row.cells[column]), row]);
      // Values that are not numbers come last in both directions.
      if (next) keyed.sort(([x], [y]) => Number.isNaN(x) - Number.isNaN(y) || sign * order(x, y));
      body.append(...keyed.map(([, row]) => row));
    });
  });
}
