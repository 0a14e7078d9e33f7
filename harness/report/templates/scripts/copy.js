// Figures and tables as others take them: tab-separated values, SVG, PNG.
const FORMULA = /^[\s\0]*[=+\-@|%]|^[\t\r\n]/;
// No spreadsheet runs a text as a formula; numbers stay numbers.
const cell = (value) => {
  if (typeof value === "number" || value === null || value === undefined) return String(value ?? "");
  const line = String(value).replace(/[\t\r\n]+/g, " ");
  const plain = line.replace("\u2212", "-");
  if (plain !== "" && !Number.isNaN(Number(plain))) return plain;
  return FORMULA.test(line) ? `'${line}` : line;
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
  say("Copied.");
};
const say = (text) => { $("spoken").textContent = text; };
const save = (name, blob) => {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

const tableRows = (table) => [...table.rows].filter((row) => !row.hidden).map((row) =>
  [...row.cells].filter((one) => !one.hidden).map((one) => one.dataset.value ?? one.textContent.replace(/ [↕↑↓]$/, "").replace(/\s+/g, " ").trim()));
for (const table of document.querySelectorAll(".scroll > table:not(.board)")) {
  const place = make("p", "copies");
  place.append(button("Copy table", () => copied(asTsv(tableRows(table)))));
  table.parentElement.after(place);
}

// The picture as a file that stands alone, on white paper.
const picture = (figure) => {
  const shown = shownOf(figure);
  const { width, height } = shown.getBoundingClientRect();
  const copy = shown.cloneNode(true);
  put(copy, { xmlns: SVG, width, height, "font-family": getComputedStyle(shown).fontFamily });
  copy.removeAttribute("aria-hidden");
  copy.removeAttribute("class");
  copy.querySelectorAll("[class~='dim']").forEach((node) => node.classList.remove("dim"));
  copy.prepend(drawn("title", {}, figure.querySelector("figcaption").textContent), drawn("rect", { width: "100%", height: "100%", fill: "white" }));
  return { code: new XMLSerializer().serializeToString(copy), width, height };
};
const savePng = (figure) => {
  const { code, width, height } = picture(figure);
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = make("canvas");
    canvas.width = 2 * width;
    canvas.height = 2 * height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${figure.dataset.figure}.png`, blob));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(code)}`;
};
for (const figure of document.querySelectorAll("figure.chart")) {
  const box = make("details", "copies");
  box.append(
    make("summary", "", "Copy or save"),
    button("Data as TSV", () => {
      const rows = rowsOf(figure), columns = Object.keys(rows[0] ?? {});
      copied(asTsv([columns, ...rows.map((row) => columns.map((key) => row[key]))]));
    }),
    button("SVG", () => save(`${figure.dataset.figure}.svg`, new Blob([picture(figure).code], { type: "image/svg+xml" }))),
    button("PNG", () => savePng(figure)),
  );
  figure.append(box);
}
