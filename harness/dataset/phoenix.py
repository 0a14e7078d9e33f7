"""A data set of Phoenix as its client writes it: `examples` with `input`, `output`, `metadata`.

That is `Dataset.to_dict()` of arize-phoenix-client 3.5.0 as JSON.
The keys within input and output are the user's: they are found as for LangSmith.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from harness.dataset.columns import Columns
from harness.dataset.contexts import ContextSource, export_of, source_of
from harness.dataset.keyed import looks_like
from harness.dataset.langsmith import read_example
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import Row, read_json
from harness.dataset.source import Findings, Place
from retrievers.errors import InputError, Problem


def matches(reference: DatasetReference) -> bool:
    """Whether the reference is such a file."""
    return looks_like(reference, "version_id", "examples")


def read(reference: DatasetReference) -> ContextSource:
    """Open the examples; the documents lie where the reference says."""
    file = export_of(reference)

    def rows(problems: Findings) -> Iterator[tuple[Place, Row]]:
        try:
            whole = read_json(file)
        except InputError as error:
            problems.extend(error.problems)
            return
        examples = whole.get("examples") if isinstance(whole, dict) else None
        if not isinstance(examples, list):
            problems.append(Problem(str(file.path), "'examples' is no list", "write Dataset.to_dict() as JSON"))
            return
        for number, row in enumerate(examples):
            place = Place(Path(f"{file.path}: examples[{number}]"))
            if isinstance(row, dict):
                yield place, row
            else:
                problems.append(Problem(str(place), "is not an object", "every entry is one: {…}"))

    read_row = partial(read_example, parts=("input", "output"), columns=Columns(reference.columns))
    return source_of(reference, rows, read_row)
