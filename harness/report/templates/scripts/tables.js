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
// Menus: one at a time, away with Escape.
const menus = [...document.querySelectorAll("details.menu")];
const close = (kept) => menus.forEach((menu) => { if (menu !== kept) menu.open = false; });
for (const menu of menus) menu.addEventListener("toggle", () => { if (menu.open) close(menu); });
addEventListener("click", (event) => close(event.target.closest("details.menu")));
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = menus.find((menu) => menu.open);
  close(null);
  open?.querySelector("summary").focus();
});
$("print")?.addEventListener("click", () => print());
// A way within the page leaves the address, which holds the state; a fold that it leads to opens.
addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]'), target = link && $(decodeURIComponent(link.hash.slice(1)));
  if (!target) return;
  event.preventDefault();
  if (target.matches("details")) target.open = true;
  target.closest("details")?.setAttribute("open", "");
  target.scrollIntoView();
  if (!target.matches("input, summary, button")) target.tabIndex = -1;
  target.focus({ preventScroll: true });
});
