// The list of queries; the address has the query and the pair.
const ROW = 27, FEWEST_ROWS = 4, MOST_ROWS = 8;
const listedQueries = () => evidence.groups[state.group]?.[2] ?? [];
// What is searched for may be outside the group: an id of a warning is, as a rule.
const matching = () => {
  const words = fold($("find").value.trim());
  if (!words) return listedQueries();
  return [...evidence.queries.keys()].filter((number) => {
    const { id, text } = queryOf(number);
    return fold(`${id} ${text}`).includes(words);
  });
};
const listButton = (text, amount, act) => {
  const press = make("button", "", make("span", "", text), make("span", "", amount));
  press.type = "button";
  press.firstChild.dir = "auto";
  on(press, "click", act);
  return press;
};
const drawList = () => {
  const list = $("found"), numbers = matching(), words = $("find").value;
  const room = state.all || words ? numbers.length : Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, Math.floor(list.clientHeight / ROW) - 1));
  const rows = numbers.slice(0, room).map((number) => {
    const { id, text, amount } = queryOf(number), press = listButton(text, amount, () => openQuery(number));
    press.title = `${id}: ${text}`;
    press.firstChild.lang = $("asked").lang;
    press.ariaPressed = String(number === state.query);
    press.dataset.query = number;
    return make("li", "", press);
  });
  const rest = numbers.length - rows.length;
  if (rest > 0) rows.push(make("li", "", listButton(`${rest} more`, "", () => { state.all = true; drawList(); })));
  if (!numbers.length) rows.push(make("li", "", "No query found."));
  list.replaceChildren(...rows);
  sizes.unobserve(list);
  sizes.observe(list);
  for (const press of found("[data-group]")) press.ariaPressed = String(Number(press.dataset.group) === state.group);
};
const draw = () => {
  const numbers = listedQueries(), place = numbers.indexOf(state.query);
  drawCard();
  drawList();
  $("place").textContent = place < 0 ? "" : `${place + 1} of ${numbers.length}`;
  $("said").textContent = "";
};
const saveAddress = () => {
  const { id } = queryOf(state.query), names = evidence.retrievers;
  const address = new URLSearchParams({ query: id, a: names[state.a], b: names[state.b] });
  if (evidence.set) address.set("set", evidence.set);
  history.replaceState(null, "", `#${address}`);
};
const openQuery = (number) => {
  state.query = number;
  [state.a, state.b] = queryOf(number).pair;
  draw();
  saveAddress();
};
const readAddress = () => {
  const address = new URLSearchParams(location.hash.slice(1)), number = evidence.queries.findIndex(([id]) => id === address.get("query"));
  if (number < 0) return false;
  state.query = number;
  [state.a, state.b] = queryOf(number).pair;
  for (const key of ["a", "b"]) {
    const place = evidence.retrievers.indexOf(address.get(key));
    if (place >= 0) state[key] = place;
  }
  if (!listedQueries().includes(number)) state.group = evidence.groups.findLastIndex(([, , numbers]) => numbers.includes(number));
  return true;
};
const start = () => {
  const group = evidence.groups.findIndex(([, , numbers]) => numbers.length);
  Object.assign(state, { group, all: false, query: evidence.groups[group][2][0] });
  [state.a, state.b] = queryOf(state.query).pair;
  readAddress();
  draw();
};
const openGroup = (group) => {
  Object.assign(state, { group, all: false });
  $("find").value = "";
  openQuery(listedQueries()[0]);
};
if (evidence) {
  for (const press of found("[data-group]")) on(press, "click", () => openGroup(Number(press.dataset.group)));
  for (const press of found("[data-by]")) {
    on(press, "click", () => {
      const numbers = listedQueries(), { length } = numbers;
      openQuery(numbers[(numbers.indexOf(state.query) + Number(press.dataset.by) + length) % length]);
    });
  }
  for (const choice of found("[data-side]")) {
    on(choice, "change", () => {
      state[choice.dataset.side] = Number(choice.value);
      draw();
      saveAddress();
    });
  }
  on($("find"), "input", drawList);
  on(window, "hashchange", () => {
    const set = sets?.findIndex((one) => one.set === new URLSearchParams(location.hash.slice(1)).get("set")) ?? -1;
    if (set >= 0 && sets[set] !== evidence) useSet(set);
    else if (readAddress()) draw();
  });
  start();
}
document.documentElement.classList.add("ready");
