"use strict";
// Marks the words of the question in a text; of a long one, in its beginning.
const markWords = (() => {
  const STOP = new Set("the and for are was were with what which who whom how why when where does did can could should would will has have had not from that this into about there their our your you its".split(" "));
  const segments = window.Intl?.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;
  const wordsOf = (text) => segments
    ? [...segments.segment(text)].filter((part) => part.isWordLike).map((part) => [part.index, part.segment])
    : [...text.matchAll(/[\p{L}\p{N}]+/gu)].map((match) => [match.index, match[0]]);
  const folded = (word) => word.toLowerCase().normalize("NFKC");
  const isTelling = (word) => !STOP.has(word) && (word.length > 2 || /[^\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Hiragana}]/u.test(word));
  const isSame = (a, b) => {
    if (a === b) return true;
    const length = Math.max(a.length, b.length);
    let common = 0;
    while (common < Math.min(a.length, b.length) && a[common] === b[common]) common += 1;
    return common >= Math.max(4, length - 3);
  };
  return (node, query) => {
    const asked = wordsOf(query).map(([, word]) => folded(word)).filter(isTelling);
    const texts = [], walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let length = 0; length < 200_000 && walk.nextNode(); length += walk.currentNode.length) texts.push(walk.currentNode);
    for (const text of texts) {
      const hits = wordsOf(text.data).filter(([, word]) => asked.some((one) => isSame(one, folded(word))));
      for (const [index, word] of hits.reverse()) {
        const part = text.splitText(index), marked = document.createElement("mark");
        part.splitText(word.length);
        part.replaceWith(marked);
        marked.append(part);
      }
    }
  };
})();
