const UNITS = { ms: 0.001, s: 1, min: 60, h: 3600, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
// Tables: a button in a head sorts by its column; what is good comes first.
for (const head of found("th[data-sort]")) {
  const table = head.closest("table"), [body] = table.tBodies, { sort } = head.dataset;
  const press = make("button", "", ...head.childNodes);
  press.type = "button";
  head.append(press);
  const key = (row) => {
    const cell = row.cells[head.cellIndex];
    if (sort === "text") return cell.textContent;
    const text = cell?.dataset.value ?? (cell?.textContent ?? "").replace("\u2212", "-").replace(/[,<$]/g, "");
    const parts = [...text.matchAll(/([\d.]+) (\w+)/g)].filter(([, , unit]) => unit in UNITS);
    // "1 min 15 s" is 75 s; "60–25–53" sorts by its first number, "<.001" by its limit.
    return parts.length ? parts.reduce((sum, [, number, unit]) => sum + number * UNITS[unit], 0) : parseFloat(text);
  };
  const compare = sort === "text" ? new Intl.Collator(undefined, { numeric: true }).compare : (x, y) => x - y;
  on(press, "click", () => {
    const before = head.ariaSort, first = sort === "high" ? "descending" : "ascending";
    const next = before === first ? (first === "ascending" ? "descending" : "ascending") : first;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const keyed = [...body.rows].map((row) => [key(row), row]);
    // Values that are not numbers come last in both directions.
    keyed.sort(([x], [y]) => Number.isNaN(x) - Number.isNaN(y) || sign * compare(x, y));
    body.append(...keyed.map(([, row]) => row));
  });
}
