// What follows the lens beside the charts: the leaderboard, the table of every query, the picture of failures.
const markRows = () => {
  const { a, b } = lens.state, chosenSlice = lens.state.slice || lens.data().all;
  for (const row of document.querySelectorAll("[data-r]")) row.classList.toggle("looked", row.dataset.r === String(a) || row.dataset.r === String(b));
  for (const row of document.querySelectorAll("[data-slice]")) row.classList.toggle("looked", row.dataset.slice === chosenSlice);
};
const leaderboard = () => {
  const board = document.querySelector("table.board");
  for (const one of board.querySelectorAll(".chosen")) {
    one.hidden = lens.plain();
    if (one.dataset.of !== undefined) one.textContent = round(lens.mean(Number(one.dataset.of)));
  }
  const caption = $("board-note");
  caption.hidden = lens.plain();
  caption.textContent = `Column “chosen”: ${lens.note()}.`;
};
const LEVELS = 4;
const pictureOfFailures = () => {
  const { data, chosen, values } = { data: lens.data(), chosen: lens.chosen, values: lens.values };
  const inside = new Set(chosen());
  const order = evidence().order.map((id) => lens.place(id)).filter((i) => inside.has(i));
  for (const row of document.querySelectorAll(".atlas > svg")) {
    const scores = values(Number(row.dataset.row));
    const top = Math.max(1, ...scores.filter((value) => value !== null));
    row.replaceChildren();
    row.setAttribute("viewBox", `0 0 ${Math.max(1, order.length)} 1`);
    let from = 0;
    const level = (i) => Math.ceil((LEVELS * (scores[i] ?? 0)) / top - 1e-9);
    for (let at = 1; at <= order.length; at += 1) {
      if (at < order.length && level(order[at]) === level(order[from])) continue;
      if (level(order[from])) row.append(drawn("rect", { x: from, y: 0, width: at - from, height: 1, class: `l${level(order[from])}` }));
      from = at;
    }
    row.places = order;
  }
};
for (const row of document.querySelectorAll(".atlas > svg")) {
  row.addEventListener("click", (event) => {
    const { left, width } = row.getBoundingClientRect();
    const order = row.places ?? evidence().order.map((id) => lens.place(id));
    const at = order[Math.min(order.length - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * order.length)))];
    const rival = Number(row.dataset.row);
    lens.change({ q: lens.data().ids[at], group: "", ...(rival === lens.state.a ? {} : { b: rival }) });
    $("forensics").scrollIntoView();
  });
}
lens.follow(markRows);
lens.follow(leaderboard);
lens.follow(filterTables);
let redrawn = false;
lens.follow(() => {
  if (lens.plain() && !redrawn) return; // The picture is the page's own.
  redrawn = true;
  pictureOfFailures();
});
let measureOpened = 0;
lens.follow(() => {
  if (lens.state.measure === measureOpened || !queryTables[lens.state.measure]) return;
  measureOpened = lens.state.measure;
  queryTables[measureOpened].closest("details").open = true;
});
for (const press of document.querySelectorAll("button.look[data-group]")) {
  press.addEventListener("click", () => {
    lens.change({ group: press.dataset.group, q: "", slice: "" });
    $("forensics").scrollIntoView();
    $("look-group").focus({ preventScroll: true });
  });
}
