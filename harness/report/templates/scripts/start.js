// Helpers of all scripts. Texts are inserted as text.
const root = document.documentElement;
root.classList.add("js");
const $ = (id) => document.getElementById(id);
const first = (selector, within = document) => within.querySelector(selector);
const found = (selector, within = document) => [...within.querySelectorAll(selector)];
const on = (node, event, act) => node.addEventListener(event, act);
const put = (node, attributes) => {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const make = (tag, className, ...inside) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...inside);
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
const drawn = (tag, attributes, ...inside) => {
  const node = put(document.createElementNS(SVG, tag), attributes);
  node.append(...inside);
  return node;
};
const button = (text, act) => {
  const node = put(make("button", "look", text), { type: "button" });
  on(node, "click", act);
  return node;
};
const minus = (text) => text.replace("-", "\u2212");
const count = (number) => number.toLocaleString("en");
const queries = (number) => `${count(number)} ${number === 1 ? "query" : "queries"}`;
// Rounded as in Python.
const decimals = (signDisplay) => {
  const digits = { minimumFractionDigits: 3, maximumFractionDigits: 3, roundingMode: "halfEven", signDisplay };
  const { format } = new Intl.NumberFormat("en", digits);
  return (value) => (Number.isNaN(value) ? "–" : minus(format(value)));
};
const round = decimals("negative"), signed = decimals("exceptZero");
const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();

// An element that scrolls gets a tab stop; others get none.
const SCROLLS = ".scroll, .columns, .full, pre";
const fits = (node) => node.scrollWidth <= node.clientWidth + 1 && node.scrollHeight <= node.clientHeight + 1;
const sizes = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const node = target.closest(SCROLLS);
    if (fits(node)) node.removeAttribute("tabindex"); else node.tabIndex = 0;
  }
});
const watchSize = (node) => [node, ...node.children].forEach((one) => sizes.observe(one));
found(SCROLLS).forEach(watchSize);
