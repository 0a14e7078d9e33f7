"""Documents that hold a quoted text."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from retrievers.ids import normalise_text
from retrievers.types import Document

ANCHOR_WORDS = 5
"""The first words of a passage, by which documents with it are found."""


def documents_with_text(
    texts: Iterable[str],
    documents: Iterable[Document],
    full_texts: Collection[str] = (),
) -> dict[str, str]:
    """Return for each text the document that equals it, else the first that has it.

    Texts that are in no document are missing. A text of five words or more is found in
    a document only if its first five words are whole there. This takes one pass over
    the documents.

    Args:
        texts: the texts, as `normalise_text` returns them: without differences of white
            space and case.
        documents: the corpus, as it is; documents are normalised here.
        full_texts: those of the texts that a document must equal.
    """
    texts = set(texts)
    passages_by_anchor = _group_by_anchor(texts.difference(full_texts))
    equal: dict[str, str] = {}
    containing: dict[str, str] = {}
    for document in documents:
        for text in (document.text, document.content):
            normal = normalise_text(text)
            if normal in texts:
                equal.setdefault(normal, document.id)
        if not passages_by_anchor:
            continue
        content = normalise_text(document.content)
        for passage in _possible_passages(content, passages_by_anchor):
            if passage not in containing and passage in content:
                containing[passage] = document.id
    return {**containing, **equal}


def _group_by_anchor(passages: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """Return passages by their first words."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for passage in passages:
        anchor = tuple(passage.split(" ")[:ANCHOR_WORDS])
        groups.setdefault(anchor, []).append(passage)
    return groups


def _possible_passages(
    content: str, passages_by_anchor: Mapping[tuple[str, ...], Sequence[str]]
) -> Iterator[str]:
    """Yield the passages whose first words are in a text, and all short passages."""
    words = content.split(" ")
    last = len(words) - ANCHOR_WORDS
    anchors = {tuple(words[i : i + ANCHOR_WORDS]) for i in range(last + 1)}
    for anchor in anchors & passages_by_anchor.keys():
        yield from passages_by_anchor[anchor]
    for anchor, passages in passages_by_anchor.items():
        if len(anchor) < ANCHOR_WORDS:
            yield from passages
