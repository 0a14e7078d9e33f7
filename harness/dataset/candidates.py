"""Columns that hold labels though their names do not say so: their parts name documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.dataset.columns import FIELDS, NAMING, declaring, folded, keeping
from harness.dataset.corpus import CheckedDocuments
from harness.dataset.label_rows import parts_of
from harness.dataset.source import Findings

STRONG, WEAK = 0.9, 0.5
"""Share of a column's parts that name documents, from which on it holds labels, or may hold them."""
LABELS = re.compile(r"gold|expect|relev|correct|truth|target|answer|support|evidence|cit|positiv|label|match|ideal|doc|"
                    r"file|source|page|passage|chunk|context|article|url|ref")  # fmt: skip
"""In the name of a column of labels, or of documents."""
OTHERS = re.compile(r"neg|wrong|distract|irrelev|retriev|predict|return|hits?$|result|exclude|current|actual|rank")
"""In the name of a column of documents that are no labels: those of some search, or wrong ones."""


class Candidate(NamedTuple):
    """A column whose parts name documents."""

    file: str
    column: str
    kind: str
    """As what it would be declared."""
    named: int
    parts: int
    strong: bool


def label_column(seen: Findings, documents: CheckedDocuments, declared: Mapping[str, str]) -> dict[str, str]:
    """The column of labels of queries of which no column is known to hold them, as it would be declared; {} if none.

    Several candidates, and weak ones, become a problem that shows what to declare.
    """
    if any(kind in declared for kind in NAMING):
        return {}
    kept = [name.strip() for name in declared.get(FIELDS, "").split(",")]
    found = [one for one in _candidates(seen, documents) if one.column not in kept]
    strong = [one for one in found if one.strong]
    if len({(one.column, one.kind) for one in strong}) == 1:
        return {strong[0].kind: strong[0].column}
    if not found and not seen:
        _ask_for_keys(seen, documents)
    if found and not seen:
        told = ", ".join(f"{one.column!r} ({one.named:,} of {one.parts:,} parts)" for one in found)
        first = found[0]
        which = " or ".join(dict.fromkeys(declaring(one.kind, one.column) for one in found))
        verb = "names" if len(found) == 1 else "name"
        seen.wrong(first.file, f"{told} {verb} documents, and no column is known to hold labels",
                   f"say which: {which}; {keeping(first.column)}")  # fmt: skip
    return {}


def _ask_for_keys(seen: Findings, documents: CheckedDocuments) -> None:
    """Ask about columns of objects that name documents by several of their fields."""
    for file, columns in seen.unused.items():
        for column, cells in columns.items():
            first = next((one for cell in cells for one in (cell if isinstance(cell, list) else [cell])), None)
            if isinstance(first, dict) and first and first.keys() <= documents.field_names:
                paths = ", ".join(f'"{column}.{key}"' for key in first)
                fields = ", ".join(f'"{key}"' for key in first)
                what = f"{column!r} names documents by their fields {fields}, and is not used"
                say = f"say so: columns = {{ label_document = [{paths}] }}, match = [{fields}]"
                seen.wrong(file, what, f"{say}; {keeping(column)}")


def _candidates(seen: Findings, documents: CheckedDocuments) -> Iterator[Candidate]:
    for file, columns in seen.unused.items():
        for column, cells in columns.items():
            parts = [[*parts_of(cell, lambda whole: bool(documents.match([whole])))] for cell in cells]
            names = [name for some in parts for name in some]
            matches = documents.match(names)
            named = sum(name in matches for name in names)
            if not named or named < WEAK * len(names):
                continue
            # A list with an order is one query's; of single ids each row is one label.
            lists = any(len(some) > 1 or isinstance(cell, list | dict) for some, cell in zip(parts, cells, strict=True))
            word = folded(column)
            by_id = sum(matches[name].by != "title" for name in names if name in matches) >= STRONG * named
            numbers = all(name.isdigit() for name in names) and not LABELS.search(word)
            strong = named >= STRONG * len(names) and by_id and not numbers and not OTHERS.search(word)
            yield Candidate(file, column, "relevant" if lists else "label_document", named, len(names), strong)
