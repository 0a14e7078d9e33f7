// Figures and tables for other programs: tab-separated values, SVG, PNG.
// No spreadsheet runs a text as a formula; numbers stay numbers.
const cell = (value) => {
  const line = value.replace(/\s+/g, " "), plain = line.replace("\u2212", "-");
  if (plain !== "" && !Number.isNaN(Number(plain))) return plain;
  return /^[\s\0]*[=+\-@|%]/.test(line) ? `'${line}` : line;
};
const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // Not over plain HTTP.
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("spoken").textContent = "Copied.";
};
for (const quoted of found(".quoted")) quoted.before(button("Copy", () => copied(quoted.textContent)));
on($("quote"), "toggle", () => { $("address").textContent = location.href; });
const copiedRows = (rows) => copied(rows.map((row) => `${row.map(cell).join("\t")}\n`).join(""));
// A head of several rows is repeated in each.
const tableRows = (table) => {
  let group = "";
  return [...table.rows].map(({ cells }) => {
    const words = [...cells].map((one) => one.dataset.value ?? one.innerText.trim());
    if (cells[0].rowSpan > 1) [group] = words;
    return cells.length < table.rows[0].cells.length ? [group, ...words] : words;
  });
};
for (const table of found(".scroll > table:not(.board, .gold, .queries)")) {
  table.parentElement.after(make("p", "copies", button("Copy table", () => copiedRows(tableRows(table)))));
}

const shownOf = (figure) => found(".plot svg", figure).find((svg) => svg.clientWidth) ?? first("svg", figure);
// A mark's title has one line per fact.
const factsOf = ({ textContent }) => textContent.split("\n").map((line) => line.split(/: (.*)/s, 2));
const copyFigure = (figure) => {
  const facts = found("title", shownOf(figure)).map(factsOf), heads = facts.map((row) => row.map(([key]) => key));
  // A cell of a heat map has one fact, named by its position.
  const alike = heads.every((head) => head[0] === heads[0][0]);
  copiedRows(alike ? [...heads.slice(0, 1), ...facts.map((row) => row.map(([, value]) => value))] : facts.flat());
};
// The picture as a self-contained file on white.
const save = async (figure, kind) => {
  const shown = shownOf(figure), { width, height } = shown.getBoundingClientRect(), copy = shown.cloneNode(true);
  put(copy, { xmlns: SVG, width, height, "font-family": getComputedStyle(shown).fontFamily });
  const title = drawn("title", {}, first("figcaption", figure).textContent);
  copy.prepend(title, drawn("rect", { width: "100%", height: "100%", fill: "white" }));
  const code = new XMLSerializer().serializeToString(copy);
  let blob = new Blob([code], { type: "image/svg+xml" });
  if (kind === "png") {
    const image = new Image(), canvas = new OffscreenCanvas(2 * width, 2 * height);
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(code)}`;
    await image.decode();
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    blob = await canvas.convertToBlob();
  }
  const link = put(make("a"), { href: URL.createObjectURL(blob), download: `${figure.dataset.figure}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
for (const figure of found("figure.chart")) {
  const [tsv, svg, png] = found(".copies button", figure);
  on(tsv, "click", () => copyFigure(figure));
  on(svg, "click", () => save(figure, "svg"));
  on(png, "click", () => save(figure, "png"));
}
