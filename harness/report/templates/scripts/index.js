const filter = $("wanted");
filter.addEventListener("input", () => {
  const words = fold(filter.value).split(/\s+/), rows = [...first("table.runs").tBodies[0].rows];
  for (const row of rows) {
    const text = fold([...row.cells].slice(0, 9).map((cell) => cell.textContent).join(" ")); // not the run it is compared with
    row.hidden = !words.every((word) => text.includes(word));
  }
  $("listed").textContent = `${count(rows.filter(({ hidden }) => !hidden).length)} of ${count(rows.length)}`;
});
