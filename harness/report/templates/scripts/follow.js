// What follows the clientFilter beside the charts: the leaderboard and the picture of all queries.
const markRows = () => {
  const { a, b } = clientFilter.state, chosenSlice = clientFilter.state.slice || clientFilter.data().all;
  for (const row of document.querySelectorAll("[data-r]")) row.classList.toggle("looked", row.dataset.r === String(a) || row.dataset.r === String(b));
  for (const row of document.querySelectorAll("[data-slice]")) row.classList.toggle("looked", row.dataset.slice === chosenSlice);
};
const leaderboard = () => {
  const board = document.querySelector("table.board");
  for (const one of board.querySelectorAll(".chosen")) {
    one.hidden = clientFilter.plain();
    if (one.dataset.of !== undefined) one.textContent = round(clientFilter.mean(Number(one.dataset.of)));
  }
  const caption = $("board-note");
  caption.hidden = clientFilter.plain();
  caption.textContent = `Column “chosen”: ${clientFilter.note()}.`;
};
const LEVELS = 4;
const pictureOfFailures = () => {
  const inside = new Set(clientFilter.chosen());
  const order = evidence().order.map((id) => clientFilter.place(id)).filter((i) => inside.has(i));
  for (const row of document.querySelectorAll(".failure_map > svg")) {
    const scores = clientFilter.values(Number(row.dataset.row));
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
for (const row of document.querySelectorAll(".failure_map > svg")) {
  row.addEventListener("click", (event) => {
    const { left, width } = row.getBoundingClientRect();
    const order = row.places ?? evidence().order.map((id) => clientFilter.place(id));
    const at = order[Math.min(order.length - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * order.length)))];
    const rival = Number(row.dataset.row);
    clientFilter.change({ q: clientFilter.data().ids[at], group: "", ...(rival === clientFilter.state.a ? {} : { b: rival }) });
    $("queries").scrollIntoView();
  });
}
clientFilter.follow(markRows);
clientFilter.follow(leaderboard);
let redrawn = false;
clientFilter.follow(() => {
  if (clientFilter.plain() && !redrawn) return; // The picture is the page's own.
  redrawn = true;
  pictureOfFailures();
});
