// The index: a button in a head sorts the experiments, a field finds them, a button opens their runs.
const table = $("results"), bodies = () => [...table.tBodies];
for (const head of found("[data-order]")) {
  const press = make("button", "", ...head.childNodes);
  press.type = "button";
  head.append(press);
  const key = (body) => {
    const cell = body.rows[0].cells[head.cellIndex];
    return head.dataset.order === "text" ? cell.textContent : Number(cell.dataset.value || -1);
  };
  const compare = head.dataset.order === "text" ? new Intl.Collator(undefined, { numeric: true }).compare : (x, y) => x - y;
  on(press, "click", () => {
    const first = head.dataset.order === "text" ? 1 : -1, before = { ascending: 1, descending: -1 }[head.ariaSort];
    const sign = before ? -before : first;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    table.append(...bodies().sort((x, y) => sign * compare(key(x), key(y))));
  });
}
for (const open of found("[data-runs]")) {
  const row = open.closest("tbody").rows[1];
  row.hidden = true;
  on(open, "click", () => {
    row.hidden = !row.hidden;
    open.ariaExpanded = String(!row.hidden);
  });
}
on($("find"), "input", () => {
  const words = fold($("find").value.trim());
  for (const body of bodies()) body.hidden = !fold(body.dataset.text).includes(words);
});
