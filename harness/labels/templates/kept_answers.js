"use strict";
// What a page of answers has: its data, what the browser keeps of it, the exported file, the keys.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const complain = (text) => { $("message").textContent = text; $("message").hidden = !text; };

// One entry an answer: a page that a busy browser shows an old or empty store overwrites nothing that is in it.
// null if the browser stores nothing.
const readEntries = (store) => {
  try {
    const stored = window.localStorage, entries = { judge: "", kept: {} };
    for (const [name, text] of Object.entries({ ...stored })) {
      if (name === store) entries.judge = JSON.parse(text).judge || "";
      else if (name.startsWith(`${store}:`)) entries.kept[name.slice(store.length + 1)] = JSON.parse(text);
    }
    stored.setItem(`probe:${store}`, "1");
    stored.removeItem(`probe:${store}`);
    return entries;
  } catch {
    return null;
  }
};

// Returns whether the browser had room.
const writeEntries = (store, earlier, kept, judge) => {
  try {
    for (const key of Object.keys(earlier)) if (!(key in kept)) window.localStorage.removeItem(`${store}:${key}`);
    for (const [key, answer] of Object.entries(kept)) window.localStorage.setItem(`${store}:${key}`, JSON.stringify(answer));
    window.localStorage.setItem(store, JSON.stringify({ judge }));
    return true;
  } catch {
    return false;
  }
};

const downloadLines = (name, lines) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// Where a key writes no Latin letter or digit (Russian, Arabic, the digits of a French keyboard), its place counts.
// "" for a shortcut of the browser, a text field, and a key that is held down.
const pressedKey = (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.target.matches("input")) return "";
  const placed = event.key.length === 1 ? /^(?:Key|Digit)(.)$/.exec(event.code)?.[1] : "";
  if (event.key.startsWith("Arrow")) return event.key;
  return (/^[a-z\d]$/i.test(event.key) ? event.key : placed || "").toLowerCase();
};

const onName = (begin) => $("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("judge").value.trim();
  if (name) begin(name);
});
