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
