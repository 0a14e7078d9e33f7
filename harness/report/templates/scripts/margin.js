// What loss would you accept? The retrievers move between the sets as their intervals lie below, across or above it.
const slider = $("loss");
if (slider) {
  const { retrievers, prices, declared, step, level, measure } = JSON.parse($("losses").textContent);
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  const setOf = ({ low, high }, loss) => (high !== null && high <= loss + 1e-12 ? "good" : low !== null && low > loss ? "worse" : "open");
  const best = (acceptable) => prices.flatMap(({ word, unit, of }) => {
    const known = acceptable.map(({ name }) => [of[name], name]).filter(([price]) => price);
    const cheapest = Math.min(...known.map(([[value]]) => value));
    const names = known.filter(([[value]]) => value === cheapest);
    return known.length === acceptable.length && names.length < known.length ? [`${word} acceptable: ${names.map(([, name]) => name).join(", ")}, ${names[0][0][1]} ${unit}.`] : [];
  });
  const move = () => {
    const loss = Number(slider.value) * step;
    const sets = { good: [], open: [], worse: [] };
    retrievers.forEach((one) => sets[setOf(one, loss)].push(one));
    for (const [key, list] of Object.entries(sets)) {
      $(`loss-${key}`).replaceChildren(...(list.length ? list.map(({ name }) => make("li", "", name)) : [make("li", "none", "none")]));
    }
    $("loss-value").textContent = `${loss.toFixed(digits)} in ${measure}`;
    slider.setAttribute("aria-valuetext", `${loss.toFixed(digits)} in ${measure}`);
    const apart = declared !== null && Math.abs(declared - loss) < step / 2 ? "This is the declared margin. " : "";
    const choice = sets.good.length > 1 ? best(sets.good) : [`Only ${sets.good[0].name} is acceptable.`];
    $("loss-choice").textContent = `${apart}${choice.length ? choice.join(" ") : "What is acceptable costs the same, or its cost is not known."}`;
  };
  slider.addEventListener("input", move);
  move();
}
