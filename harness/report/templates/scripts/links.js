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
