// Slices: the last column shows the lead of any retriever over any other.
const leads = await content("slice-leads");
const drawLead = (cell, ends) => {
  const [difference, low, high] = ends, strip = cell.querySelector("svg");
  const at = (value) => `${leadAxis.at(value).toFixed(2)}%`;
  strip.querySelectorAll("circle, line:not([class])").forEach((mark) => mark.remove());
  if (low !== null) strip.append(drawn("line", { x1: at(low), x2: at(high), y1: "50%", y2: "50%" }));
  strip.append(drawn("circle", { cx: at(difference) }));
  const state = low === null || (low <= 0 && high >= 0) ? "undecided" : low > 0 ? "better" : "worse";
  cell.className = `plot is-${state}`;
  cell.title = low === null ? signed(difference) : `${signed(difference)} (${signed(low)} to ${signed(high)})`;
  cell.querySelector("span").textContent = signed(difference);
};
// The scale of the table, read from the labels of its axis.
const leadAxis = (() => {
  const labels = found("#leads .ruler text").slice(0, 2).map((text) => [Number(text.textContent.replace("\u2212", "-")), parseFloat(text.getAttribute("x"))]);
  const [[value, place], [nextValue, nextPlace]] = labels.length > 1 ? labels : [[0, 0], [1, 100]];
  return { at: (number) => Math.max(-2, Math.min(102, place + ((number - value) * (nextPlace - place)) / (nextValue - value))) };
})();
const showLeads = () => {
  const [a, b] = ["lead-a", "lead-b"].map((id) => Number($(id).value));
  const pair = leads.pairs.find(([x, y]) => (x === a && y === b) || (x === b && y === a));
  const heading = $("leads").tHead.rows[0].lastElementChild, rows = found("#slices tbody tr").filter((row) => !row.closest(".sortable"));
  heading.textContent = pair ? `${leads.retrievers[a]} over ${leads.retrievers[b]}` : "not compared";
  rows.forEach((row, i) => {
    const turned = pair && pair[0] !== a, ends = pair?.[2][i].map((end) => (end === null ? null : end / 1000));
    row.lastElementChild.querySelector("svg").style.visibility = pair ? "" : "hidden";
    if (!pair) return;
    const [difference, low, high] = ends;
    drawLead(row.lastElementChild, turned ? [-difference, high === null ? null : -high, low === null ? null : -low] : ends);
  });
};
if (leads) for (const id of ["lead-a", "lead-b"]) on($(id), "change", showLeads);
