// The card as an image: drawn on a canvas, which works from a file and in every browser.
const PICTURE = { width: 1200, edge: 56, row: 42, line: 46, ink: "#16191d", muted: "#59626d", lost: "#a8410a" };
const painter = (canvas) => {
  const context = canvas.getContext("2d");
  const write = (text, x, y, font, { fill = PICTURE.ink, room = 0, align = "left" } = {}) => {
    Object.assign(context, { font, fillStyle: fill, textAlign: align });
    let shown = String(text);
    while (room && context.measureText(shown).width > room) shown = `${shown.replace(/…$/, "").slice(0, -1)}…`;
    context.fillText(shown, x, y);
  };
  return { context, write };
};
// At most two lines; the second ends with an ellipsis if there is more.
const wrapQuery = (context, text, font) => {
  const lines = [""];
  context.font = font;
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.length > 1 || context.measureText(longer).width < PICTURE.width - 2 * PICTURE.edge) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
};
const paintSide = ({ context, write }, hits, top, isRight) => {
  const sans = getComputedStyle(document.body).fontFamily, filled = evidence.is_labelled;
  hits.forEach(({ title, rank, grade }, i) => {
    const y = top + i * PICTURE.row + PICTURE.row / 2, box = isRight ? 638 : 532;
    const font = `${grade ? 700 : 400} 20px ${sans}`, fill = grade ? PICTURE.ink : PICTURE.muted;
    write(rank || "–", isRight ? 706 : 84, y + 7, font, { fill, align: "right" });
    write(title, isRight ? 718 : 96, y + 7, font, { fill, room: 424 });
    if (!grade) return;
    Object.assign(context, { fillStyle: filled ? PICTURE.ink : "#fff", strokeStyle: PICTURE.ink, lineWidth: 2 });
    context.fillRect(box, y - 15, 30, 30);
    context.strokeRect(box + 1, y - 14, 28, 28);
    write(grade, box + 15, y + 7, `700 18px ${sans}`, { fill: filled ? "#fff" : PICTURE.ink, align: "center" });
  });
};
const paintCard = () => {
  const { query, left, right, single, links, finding } = cardOf(), canvas = make("canvas"), tools = painter(canvas), { context, write } = tools;
  const { width, edge, row, line, muted } = PICTURE, sans = getComputedStyle(document.body).fontFamily;
  const asked = `40px ${getComputedStyle($("asked")).fontFamily}`, lines = wrapQuery(context, `“${query.text}”`, asked);
  const top = 184 + line * lines.length, height = top + Math.max(left.length, right.length, 1) * row + 74;
  // Double resolution, white in both schemes.
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  context.scale(2, 2);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  write(`${evidence.title}: ${evidence.section}`, edge, 58, `600 20px ${sans}`, { fill: muted });
  lines.forEach((text, i) => write(text, edge, 110 + line * i, asked, { room: width - 2 * edge }));
  write(finding, edge, top - 82, `22px ${sans}`, { fill: muted, room: width - 2 * edge });
  const heading = (retriever, x, align, scoreX, scoreAlign) => {
    write(evidence.retrievers[retriever], x, top - 16, `700 26px ${sans}`, { align, room: 380 });
    if (evidence.is_labelled) write(round(query.scores[retriever]), scoreX, top - 16, `700 26px ${sans}`, { align: scoreAlign });
  };
  heading(state.a, edge, "left", 562, "right");
  if (!single) heading(state.b, width - edge, "right", 638, "left");
  for (const { left: i, right: j, lost } of links) {
    Object.assign(context, { strokeStyle: lost ? PICTURE.lost : muted, lineWidth: 3 });
    context.beginPath();
    context.moveTo(562, top + i * row + row / 2);
    context.lineTo(638, top + j * row + row / 2);
    context.stroke();
  }
  paintSide(tools, left, top, false);
  paintSide(tools, right, top, true);
  const shown = single ? [state.a] : [state.a, state.b];
  const means = shown.map((retriever) => `${evidence.retrievers[retriever]} ${round(evidence.means[retriever])}`).join(", ");
  const foot = evidence.is_labelled ? `${evidence.measure}, ${evidence.query_count} ${evidence.query_count === 1 ? "query" : "queries"}: ${means}. Boxed: grades.` : evidence.key;
  write(foot, edge, height - 30, `18px ${sans}`, { fill: muted, room: width - 300 });
  write("retriever-harness", width - edge, height - 30, `600 18px ${sans}`, { fill: muted, align: "right" });
  return canvas;
};
on($("copy"), "click", async () => {
  const png = new Promise((done) => paintCard().toBlob(done, "image/png"));
  const say = (words) => { $("said").textContent = words; };
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    say("Copied.");
  } catch {
    const link = Object.assign(make("a"), { href: URL.createObjectURL(await png), download: `${evidence.title}-${queryOf(state.query).id}.png` });
    link.click();
    URL.revokeObjectURL(link.href);
    say("Saved as PNG.");
  }
});
