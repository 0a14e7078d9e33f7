// Figures and tables as others take them: tab-separated values, SVG, PNG.
// No spreadsheet runs a text as a formula; numbers stay numbers.
const cell = (value) => {
  const line = String(value ?? "").replace(/[\t\r\n]+/g, " "), plain = line.replace("\u2212", "-");
  if (plain !== "" && !Number.isNaN(Number(plain))) return plain;
  return /^[\s\0]*[=+\-@|%]|^[\t\r\n]/.test(line) ? `'${line}` : line;
};
const asTsv = (rows) => rows.map((row) => row.map(cell).join("\t") + "\n").join("");
const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("spoken").textContent = "Copied.";
};
const save = (figure, kind, blob) => {
  const link = put(make("a"), { href: URL.createObjectURL(blob), download: `${figure.dataset.figure}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

const tableRows = (table) => [...table.rows].filter((row) => !row.hidden).map((row) =>
  [...row.cells].filter((one) => !one.hidden).map((one) => one.dataset.value ?? one.textContent.replace(/ [↕↑↓]$/, "").replace(/\s+/g, " ").trim()));
for (const table of document.querySelectorAll(".scroll > table:not(.board)")) {
  table.parentElement.after(make("p", "copies", button("Copy table", () => copied(asTsv(tableRows(table))))));
}

// The picture as a file that stands alone, on white paper.
const picture = (figure) => {
  const shown = shownOf(figure), { width, height } = shown.getBoundingClientRect(), copy = shown.cloneNode(true);
  put(copy, { xmlns: SVG, width, height, "font-family": getComputedStyle(shown).fontFamily });
  copy.removeAttribute("aria-hidden");
  copy.removeAttribute("class");
  copy.prepend(drawn("title", {}, figure.querySelector("figcaption").textContent), drawn("rect", { width: "100%", height: "100%", fill: "white" }));
  return { code: new XMLSerializer().serializeToString(copy), width, height };
};
const savePng = async (figure) => {
  const { code, width, height } = picture(figure), image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(code)}`;
  await image.decode();
  const canvas = put(make("canvas"), { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(figure, "png", blob));
};
for (const figure of document.querySelectorAll("figure.chart")) {
  figure.append(make("details", "copies",
    make("summary", "", "Copy or save"),
    button("Data as TSV", () => {
      const rows = rowsOf(figure);
      copied(asTsv([Object.keys(rows[0] ?? {}), ...rows.map(Object.values)]));
    }),
    button("SVG", () => save(figure, "svg", new Blob([picture(figure).code], { type: "image/svg+xml" }))),
    button("PNG", () => savePng(figure)),
  ));
}
