// The filter changes rows of tables and the leaderboard's second column, not the charts.
const drawCharts = () => {
  for (const [r, row] of found("[data-r]").entries()) {
    row.classList.toggle("looked", Boolean(selects.a) && pair().includes(r));
    first(".chosen", row).textContent = round(mean(r));
  }
  for (const row of found("[data-slice]")) row.classList.toggle("looked", row.dataset.slice === state.slice);
};
// A mark belongs to a slice.
for (const plot of found("figure.chart .plot")) {
  on(plot, "click", ({ target }) => {
    const { slice } = target.closest("[data-slice]")?.dataset ?? {};
    if (known.slice.includes(slice)) change({ slice });
    if (slice === data.all) change({ slice: "" });
  });
}
// Quality is drawn against one cost at a time.
const plots = found(".plots figure");
const against = (name) => { for (const figure of plots) figure.hidden = figure.dataset.figure !== name; };
for (const radio of found(".plots input")) on(radio, "change", () => against(radio.value));
if (plots.length > 1) against(plots[0].dataset.figure);
