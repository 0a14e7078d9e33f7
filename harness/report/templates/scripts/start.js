// Helpers of all scripts. Texts are inserted as text.
document.documentElement.classList.add("js");
const $ = (id) => document.getElementById(id);
const found = (selector, within = document) => [...within.querySelectorAll(selector)];
const on = (node, event, act) => node?.addEventListener(event, act);
// Packed JSON, or null if the page has none.
const content = async (id) => {
  if (!$(id)) return null;
  const bytes = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(unpacked).json();
};
const make = (tag, className, ...inside) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...inside);
  return node;
};
const drawn = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const minus = (text) => text.replace("-", "\u2212");
// Rounded as in Python.
const decimals = (signDisplay) => {
  const digits = { minimumFractionDigits: 3, maximumFractionDigits: 3, roundingMode: "halfEven", signDisplay };
  const { format } = new Intl.NumberFormat("en", digits);
  return (value) => minus(format(value));
};
const round = decimals("negative"), signed = decimals("exceptZero");
const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();
// An element that scrolls gets a tab stop; others get none.
const sizes = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    if (target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
found(".scroll, .found").forEach((node) => sizes.observe(node));
