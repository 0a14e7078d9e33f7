// What every other script uses. All text goes in as text.
const root = document.documentElement;
root.classList.add("js");
const $ = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
const put = (node, attributes) => { for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); };
const drawn = (tag, attributes = {}, text = "") => {
  const node = document.createElementNS(SVG, tag);
  put(node, attributes);
  if (text) node.textContent = text;
  return node;
};
const button = (text, act, className = "look") => {
  const node = make("button", className, text);
  node.type = "button";
  node.addEventListener("click", act);
  return node;
};
const count = (number) => number.toLocaleString("en");
const round = (value) => (Number.isNaN(value) ? "–" : value.toFixed(3).replace("-", "\u2212"));
const signed = (value) => (Number(value.toFixed(3)) > 0 ? "+" : "") + round(Number(value.toFixed(3)) === 0 ? 0 : value);
const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();
const later = window.requestIdleCallback ?? ((act) => setTimeout(act, 1));

let kept = null; // from clientFilter.start on
const evidence = () => kept;
// Packed JSON; rejected where the browser cannot unpack it.
const unpacked = async (id) => {
  const letters = atob($(id).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

// What scrolls is reached by the keyboard; what fits is no stop on the way.
const fits = (node) => node.scrollWidth <= node.clientWidth + 1 && node.scrollHeight <= node.clientHeight + 1;
const reach = (node) => { if (fits(node)) node.removeAttribute("tabindex"); else node.tabIndex = 0; };
const sizes = new ResizeObserver((seen) => {
  for (const entry of seen) reach(entry.target.closest(".scroll, .columns, pre"));
});
const watchSize = (node) => { sizes.observe(node); if (node.firstElementChild) sizes.observe(node.firstElementChild); };
document.querySelectorAll(".scroll, pre").forEach(watchSize);
