// Several data sets: a select shows the queries of another set.
const useSet = (number) => {
  evidence = sets[number];
  $("set").value = number;
  $("fails-title").nextElementSibling.textContent = evidence.sentence;
  for (const choice of found("[data-side]")) choice.replaceChildren(...evidence.retrievers.map((name, i) => new Option(name, i)));
  const groups = evidence.groups.map(([title, count, numbers], i) => {
    const press = listButton(title, count.toLocaleString("en"), () => openGroup(i));
    press.dataset.group = i;
    press.title = title;
    press.disabled = !numbers.length;
    return make("li", "", press);
  });
  found(".groups")[0].replaceChildren(...groups);
  start();
};
if (sets) on($("set"), "change", () => { useSet(Number($("set").value)); saveAddress(); });
if (sets && evidence !== sets[0]) useSet(sets.indexOf(evidence));
