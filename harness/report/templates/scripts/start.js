// What every other script uses. All text goes in as text.
const root = document.documentElement;
root.classList.add("js");
const $ = (id) => document.getElementById(id);
const make = (tag, className, ...inside) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...inside);
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
const put = (node, attributes) => { for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); return node; };
const drawn = (tag, attributes = {}, ...inside) => {
  const node = put(document.createElementNS(SVG, tag), attributes);
  node.append(...inside);
  return node;
};
const button = (text, act) => {
  const node = put(make("button", "look", text), { type: "button" });
  node.addEventListener("click", act);
  return node;
};
const minus = (text) => text.replace("-", "\u2212");
const count = (number) => number.toLocaleString("en");
const round = (value) => (Number.isNaN(value) ? "–" : minus(value.toFixed(3)));
const signed = (value) => (Number(value.toFixed(3)) > 0 ? "+" : "") + round(Number(value.toFixed(3)) === 0 ? 0 : value);
const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();

// What scrolls is reached by the keyboard; what fits is no stop on the way.
const fits = (node) => node.scrollWidth <= node.clientWidth + 1 && node.scrollHeight <= node.clientHeight + 1;
const sizes = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const node = target.closest(".scroll, .columns, .full, pre");
    if (fits(node)) node.removeAttribute("tabindex"); else node.tabIndex = 0;
  }
});
const watchSize = (node) => [node, node.firstElementChild].forEach((one) => one && sizes.observe(one));
document.querySelectorAll(".scroll, pre").forEach(watchSize);
