"""Labels that name documents by what they say: a title, a text, or a passage of it, white space and case aside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from retrievers.types import Document

ANCHOR = 5
"""Words of a passage by whose place a document that may hold it is found."""


class Match(NamedTuple):
    """The document that a label names."""

    document: str
    by: str
    """What of it the label is: "title" or "text"."""


def documents_saying(
    labels: Collection[str], passages: Collection[str], documents: Iterable[Document]
) -> dict[str, Match]:
    """Find the documents that labels name by their title or text, in one pass; a title that several have names none.

    Args:
        labels: what names no document by its id.
        passages: those of them that may be a part of a document's text.
        documents: the corpus.
    """
    titles = dict[str, set[str]]()
    keys = {label: _key(label) for label in labels}
    wanted = {key for key in keys.values() if key}

    def noted() -> Iterator[Document]:
        for document in documents:
            if document.title and (key := _key(document.title)) in wanted:
                titles.setdefault(key, set()).add(document.id)
            yield document

    texts = holders_of(wanted, noted(), whole=wanted - {_key(one) for one in passages})
    found = {key: Match(document, "text") for key, document in texts.items()}
    found |= {key: Match(min(ids), "title") for key, ids in titles.items() if len(ids) == 1}
    return {label: found[key] for label, key in keys.items() if key in found}


def holders_of(wanted: Iterable[str], documents: Iterable[Document], whole: Collection[str] = ()) -> dict[str, str]:
    """Return for each text, white space and case put aside, the document that is it, or else the first that holds it.

    One pass over the documents; a text that none holds is left out.

    Args:
        wanted: the texts.
        documents: the corpus.
        whole: those of the texts that a document must be, and not only hold.
    """
    wanted = set(wanted)
    same, holds = dict[str, str](), dict[str, str]()
    anchors: dict[tuple[str, ...], list[str]] = {}
    for key in wanted.difference(whole):
        anchors.setdefault(tuple(key.split(" ")[:ANCHOR]), []).append(key)
    short = [anchor for anchor in anchors if len(anchor) < ANCHOR]
    for document in documents:
        for text in (document.text, document.content):
            if (key := _key(text)) in wanted:
                same.setdefault(key, document.id)
        if not anchors:
            continue
        text = _key(document.content)
        words = text.split(" ")
        near = {tuple(words[i : i + ANCHOR]) for i in range(len(words) - ANCHOR + 1)} & anchors.keys()
        for anchor in (*near, *short):
            for key in anchors[anchor]:
                if key not in holds and key in text:
                    holds[key] = document.id
    return {**holds, **same}


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
