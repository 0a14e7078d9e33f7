// Texts of documents with the words of a query marked, in any script.
const WINDOW = 170;
const UNSPACED = /[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]/u;
// The words of a text in any script; without spaces, every two adjacent letters.
const wordsOf = (text) => [...text.matchAll(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu)].flatMap(({ 0: word, index }) => {
  const part = (letters, from) => ({ word: fold(letters), from, to: from + letters.length });
  const letters = UNSPACED.test(word) ? [...word.matchAll(/.(?=(.))/gu)] : [];
  return letters.length ? letters.map(({ 0: one, 1: next, index: at }) => part(one + next, index + at)) : [part(word, index)];
});
// Two words match if they are equal, or one is a prefix of the other with four letters or more.
const begins = (x, y) => y.length >= 4 && x.startsWith(y) && x.length - y.length <= 3 && !UNSPACED.test(x);
const alike = (x, y) => x === y || begins(x, y) || begins(y, x);
// The query's words, without those in more than a quarter of the shown documents, unless none is left.
const wantedWords = (query, texts) => {
  const words = [...new Set(wordsOf(query).map(({ word }) => word))];
  const bags = texts.map((text) => new Set(wordsOf(text.slice(0, 4000)).map(({ word }) => word)));
  const rare = words.filter((word) => bags.filter((bag) => bag.has(word)).length <= Math.max(1, bags.length / 4));
  return rare.length ? rare : words;
};
const hitsIn = (text, wanted) => wordsOf(text).filter(({ word }) => wanted.some((other) => alike(word, other)));
const marked = (text, wanted) => {
  const parts = [];
  let at = 0;
  for (const { from, to } of hitsIn(text, wanted)) {
    const begin = Math.max(from, at); // Pairs of letters overlap.
    parts.push(text.slice(at, begin), make("mark", "", text.slice(begin, to)));
    at = to;
  }
  return [...parts, text.slice(at)];
};
// The part of a text around the first match.
const snippet = (text, wanted) => {
  const found = hitsIn(text, wanted)[0]?.from ?? 0;
  const near = Math.max(0, Math.min(found - 24, text.length - WINDOW)), space = text.indexOf(" ", near);
  const start = near && space > 0 && space < found ? space + 1 : near, end = start + WINDOW;
  return [start > 0 ? "… " : "", ...marked(text.slice(start, end), wanted), end < text.length ? " …" : ""];
};
