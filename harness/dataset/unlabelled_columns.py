"""Unused columns that may hold labels."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.columns import declaration, not_labels_remedy
from harness.dataset.label_lists import cell_leaves, holds_grades, read_label_list
from harness.dataset.labels import Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.usual_names import (
    CLICKS_COLUMN,
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
    LABEL_KINDS,
    LOCATION_COLUMNS,
    NORMALISED_COLUMN_NAMES,
    normalised_name,
)
from harness.dataset.written_values import parse_grade

MIN_SURE_SHARE, MIN_POSSIBLE_SHARE = 0.9, 0.5
"""Share of a column's parts that name documents, from which on it holds labels, or may hold them."""
LABEL_COLUMN_PATTERN = re.compile(
    r"gold|expect|relev|correct|truth|target|answer|support|evidence|cit|positiv|label|match|ideal|doc|"
    r"file|source|page|passage|chunk|context|article|url|ref"
)
"""In the name of a column of labels, or of documents."""
OTHER_COLUMN_PATTERN = re.compile(
    r"neg|wrong|distract|irrelev|retriev|predict|return|hits?$|result|exclude|current|actual|rank"
)
"""In the name of a column of documents that are no labels: those of some search, or wrong ones."""
MAX_GUESSED_GRADE = 10
"""Whole numbers from 0 to this one, at most, may be grades."""


class LabelColumnCandidate(NamedTuple):
    """A column whose parts name documents."""

    file: str
    column: str
    kind: str
    """As what it would be declared."""
    named_parts: int
    all_parts: int
    is_sure: bool


def refuse_unused_columns(seen: ReadProblems, declared: Mapping[str, str]) -> None:
    """Complain of columns that could hold labels or grades, by their names or as whole numbers, and are not used."""
    kept = {
        *declared.values(),
        *(name.strip() for name in declared.get(FIELDS_KIND, "").split(",")),
    }
    for file, cells in seen.unused_columns.items():
        columns, here = (
            seen.columns_used.get(file, {}),
            file not in seen.files_without_labels,
        )
        named, graded = (
            not {*kinds}.isdisjoint(columns.values())
            for kinds in (DOCUMENT_NAMING_KINDS, ("grade",))
        )
        for name in (
            name
            for name, taken in columns.items()
            if taken in ("", FIELDS_KIND) and name not in kept
        ):
            word, found = normalised_name(name), ""
            kind = next(
                (
                    kind
                    for kind in LABEL_KINDS
                    if word in NORMALISED_COLUMN_NAMES[kind]
                    and word not in LOCATION_COLUMNS
                ),
                "",
            )
            if here and named and not graded:
                grades = sorted(
                    {
                        -1 if (grade := parse_grade(cell)) is None else grade
                        for cell in cells.get(name, ())
                    }
                )
                numbers = (
                    len(grades) > 1
                    and grades[0] == 0
                    and grades[-1] <= MAX_GUESSED_GRADE
                )
                found = f" ({', '.join(map(str, grades))})" if numbers else ""
                kind = "grade" if found or word == CLICKS_COLUMN else kind
            elif word == "contexts" and not named:
                kind = "contexts"
            declared_too = here and not declared.keys().isdisjoint(
                ["grade"] if kind == "grade" else DOCUMENT_NAMING_KINDS
            )
            if kind and not (kind == "contexts" and named) and not declared_too:
                what = f"grades{found}" if kind == "grade" else "the relevant documents"
                say = (
                    f"say so: {declaration(kind, name)}"
                    if here
                    else "the labels are in another table: remove it"
                )
                seen.add(
                    file,
                    f"{name!r} could hold {what}, and is not used",
                    f"{say}; {not_labels_remedy(name)}",
                )


def guess_label_column(
    seen: ReadProblems, documents: CheckedDocuments, declared: Mapping[str, str]
) -> dict[str, str]:
    """The column of labels of queries of which no column is known to hold them, as it would be declared; {} if none.

    Several candidates, and weak ones, become a problem that shows what to declare.
    """
    if any(kind in declared for kind in DOCUMENT_NAMING_KINDS):
        return {}
    kept = [name.strip() for name in declared.get(FIELDS_KIND, "").split(",")]
    found = [one for one in _candidates(seen, documents) if one.column not in kept]
    strong = [one for one in found if one.is_sure]
    if len({(one.column, one.kind) for one in strong}) == 1:
        return {strong[0].kind: strong[0].column}
    if not found and not seen:
        _ask_for_keys(seen, documents)
    if found and not seen:
        told = ", ".join(
            f"{one.column!r} ({one.named_parts:,} of {one.all_parts:,} parts)"
            for one in found
        )
        first = found[0]
        which = " or ".join(
            dict.fromkeys(declaration(one.kind, one.column) for one in found)
        )
        verb = "names" if len(found) == 1 else "name"
        seen.add(
            first.file,
            f"{told} {verb} documents, and no column is known to hold labels",
            f"say which: {which}; {not_labels_remedy(first.column)}",
        )
    return {}


def _ask_for_keys(seen: ReadProblems, documents: CheckedDocuments) -> None:
    """Ask about columns of objects that name documents by several of their fields."""
    for file, columns in seen.unused_columns.items():
        for column, cells in columns.items():
            first = next(
                (
                    one
                    for cell in cells
                    for one in (cell if isinstance(cell, list) else [cell])
                ),
                None,
            )
            if (
                isinstance(first, dict)
                and first
                and first.keys() <= documents.field_names
            ):
                paths = ", ".join(f'"{column}.{key}"' for key in first)
                fields = ", ".join(f'"{key}"' for key in first)
                what = f"{column!r} names documents by their fields {fields}, and is not used"
                say = f"say so: columns = {{ label_document = [{paths}] }}, match = [{fields}]"
                together = ",".join(f"{column}.{key}" for key in first)
                say += (
                    f" (--columns label_document={together} --match {','.join(first)})"
                )
                seen.add(file, what, f"{say}; {not_labels_remedy(column)}")


def _candidates(
    seen: ReadProblems, documents: CheckedDocuments
) -> Iterator[LabelColumnCandidate]:
    for file, columns in seen.unused_columns.items():
        leaves = [
            one
            for column, cells in columns.items()
            for cell in cells
            for one in cell_leaves(cell, column)
        ]
        for column in dict.fromkeys(path for path, _ in leaves):
            cells = [leaf for path, leaf in leaves if path == column]
            whole = (
                cell if isinstance(cell, str | list) or holds_grades(cell) else [cell]
                for cell in cells
            )
            labels = [read_label_list(cell, seen.names_document) for cell in whole]
            parts = [one.documents if isinstance(one, Labels) else () for one in labels]
            names = [name for some in parts for name in some]
            matches = documents.match(names)
            named = sum(name in matches for name in names)
            if not named or named < MIN_POSSIBLE_SHARE * len(names):
                continue
            # A list with an order is one query's; of single ids each row is one label.
            lists = any(
                len(some) > 1 or isinstance(cell, list | dict)
                for some, cell in zip(parts, cells, strict=True)
            )
            lists = lists or column not in columns
            word = normalised_name(column)
            by_id = (
                sum(
                    matches[name].matched_by != "title"
                    for name in names
                    if name in matches
                )
                >= MIN_SURE_SHARE * named
            )
            numbers = all(
                name.isdigit() for name in names
            ) and not LABEL_COLUMN_PATTERN.search(word)
            strong = (
                named >= MIN_SURE_SHARE * len(names)
                and by_id
                and not numbers
                and not OTHER_COLUMN_PATTERN.search(word)
            )
            yield LabelColumnCandidate(
                file,
                column,
                "relevant" if lists else "label_document",
                named,
                len(names),
                strong,
            )
