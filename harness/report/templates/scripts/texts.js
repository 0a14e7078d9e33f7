// Texts of documents with the words of a query marked, in any script.
const WINDOW = 170;
const UNSPACED = /[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]/u;
// The words of a text in any script; where none has spaces, every two letters that stand together.
const wordsOf = (text) => [...text.matchAll(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu)].flatMap(({ 0: word, index }) => {
  if (!UNSPACED.test(word)) return [{ word: fold(word), from: index, to: index + word.length }];
  let from = index;
  const letters = [...word], last = Math.max(1, letters.length - 1);
  return letters.slice(0, last).map((letter, i) => {
    const pair = letters.slice(i, i + 2).join(""), at = from;
    from += letter.length;
    return { word: fold(pair), from: at, to: at + pair.length };
  });
});
// Two words are alike where one is the other or its beginning of four letters or more.
const alike = (x, y) => x === y || (Math.min(x.length, y.length) >= 4 && !UNSPACED.test(x) && (x.startsWith(y) || y.startsWith(x)) && Math.abs(x.length - y.length) <= 3);
// The query's words, without those that more than a quarter of the shown documents have, unless none is left.
const wantedWords = (query, texts) => {
  const words = [...new Set(wordsOf(query).map(({ word }) => word))];
  const bags = texts.map((text) => new Set(wordsOf(text.slice(0, 4000)).map(({ word }) => word)));
  const rare = words.filter((word) => bags.filter((bag) => bag.has(word)).length <= Math.max(1, bags.length / 4));
  return rare.length ? rare : words;
};
const hitsIn = (text, wanted) => wordsOf(text).flatMap((one) => {
  const word = wanted.find((other) => alike(one.word, other));
  return word === undefined ? [] : [{ ...one, word }];
});
const marked = (text, wanted, hits = hitsIn(text, wanted), from = 0, to = text.length) => {
  const parts = [];
  let at = from;
  for (const hit of hits.filter((one) => one.from < to)) {
    if (hit.to <= at) continue;
    const begin = Math.max(hit.from, at), end = Math.min(hit.to, to);
    parts.push(text.slice(at, begin), make("mark", "", text.slice(begin, end)));
    at = end;
  }
  return [...parts, text.slice(at, to)];
};
// The part of a text that has the most different words of the query, the earliest of equals.
const snippet = (text, wanted) => {
  const hits = hitsIn(text, wanted);
  let start = 0, most = 0;
  for (const [i, { from }] of (text.length > WINDOW ? hits : []).entries()) {
    const words = new Set();
    for (let at = i; hits[at]?.to <= from + WINDOW - 40; at += 1) words.add(hits[at].word);
    if (words.size <= most) continue;
    most = words.size;
    start = Math.max(0, Math.min(from - 24, text.length - WINDOW));
    while (start > 0 && start < from && /[\p{L}\p{N}\p{M}]/u.test(text[start - 1])) start += 1;
  }
  const end = Math.min(text.length, start + WINDOW);
  return [start > 0 ? "… " : "", ...marked(text, wanted, hits, start, end), end < text.length ? " …" : ""];
};
