// Texts of documents with the words of a query marked, in any script.
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
const UNSPACED = /[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]/u;
const WINDOW = 170;
// Words; of scripts without spaces every two letters that stand together.
const wordsOf = (text) => {
  const words = [];
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!UNSPACED.test(word)) { words.push({ word: fold(word), from: index, to: index + word.length }); continue; }
    const letters = [...word];
    let from = index;
    for (let i = 0; i < Math.max(1, letters.length - 1); i += 1) {
      const pair = letters.slice(i, i + 2).join("");
      words.push({ word: fold(pair), from, to: from + pair.length });
      from += letters[i].length;
    }
  }
  return words;
};
// Two words are alike where one is the other or its beginning of four letters or more.
const alike = (x, y) => x === y || (Math.min(x.length, y.length) >= 4 && !UNSPACED.test(x) && (x.startsWith(y) || y.startsWith(x)) && Math.abs(x.length - y.length) <= 3);
// The query's words, without those that more than a quarter of the shown documents have, unless none is left.
const wantedWords = (query, texts) => {
  const words = [...new Set(wordsOf(query).map((one) => one.word))];
  const bags = texts.map((text) => new Set(wordsOf(text.slice(0, 4000)).map((one) => one.word)));
  const rare = words.filter((word) => bags.filter((bag) => bag.has(word)).length <= Math.max(1, bags.length / 4));
  return rare.length ? rare : words;
};
const hitsIn = (text, wanted) => wordsOf(text).flatMap((one) => {
  const word = wanted.find((other) => alike(one.word, other));
  return word === undefined ? [] : [{ ...one, word }];
});
// The part of a text that has the most different words of the query, the earliest of equals.
const windowOf = (text, hits) => {
  if (text.length <= WINDOW || !hits.length) return [0, Math.min(text.length, WINDOW)];
  let best = hits[0].from, most = 0;
  hits.forEach(({ from }, i) => {
    const inside = new Set();
    for (let at = i; at < hits.length && hits[at].to <= from + WINDOW - 40; at += 1) inside.add(hits[at].word);
    if (inside.size > most) { most = inside.size; best = from; }
  });
  let start = Math.max(0, Math.min(best - 24, text.length - WINDOW));
  while (start > 0 && start < best && /[\p{L}\p{N}\p{M}]/u.test(text[start - 1])) start += 1;
  return [start, Math.min(text.length, start + WINDOW)];
};
const markedText = (text, hits, from, to) => {
  const node = document.createDocumentFragment();
  let at = from;
  for (const hit of hits) {
    if (hit.to <= at || hit.from >= to) continue;
    const begin = Math.max(hit.from, at);
    node.append(text.slice(at, begin), make("mark", "", text.slice(begin, Math.min(hit.to, to))));
    at = Math.min(hit.to, to);
  }
  node.append(text.slice(at, to));
  return node;
};
const snippet = (text, wanted) => {
  const hits = hitsIn(text, wanted);
  const [from, to] = windowOf(text, hits);
  const node = document.createDocumentFragment();
  if (from > 0) node.append("… ");
  node.append(markedText(text, hits, from, to));
  if (to < text.length) node.append(" …");
  return node;
};
