"""One table of a retriever that stands for several: what `derive` gives, written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from harness.experiment.model import Derive
from harness.experiment.options import checked
from retrievers.errors import InputError

DENSE = "dense"
"""The kind whose vectors can be cut and quantised."""


def numbered(entries: Sequence[object]) -> Iterator[tuple[int, object]]:
    """Yield the tables of `[[retrievers]]`, written out, each with its place in the file.

    >>> base = {"name": "m", "encoder": {"kind": "hashing"}, "derive": {"dimensions": [64], "quantization": ["int8"]}}
    >>> [table["name"] for _, table in numbered([base])]
    ['m', 'm-int8', 'm-64', 'm-64-int8']
    """
    for number, entry in enumerate(entries):
        yield from ((number, table) for table in _written_out(entry))


def _written_out(entry: object) -> Iterator[object]:
    if not isinstance(entry, Mapping) or not {"derive", "encoder"} <= entry.keys() or entry.get("kind", DENSE) != DENSE:
        yield entry
        return
    try:
        derive = checked(Derive, entry["derive"], "derive")
    except InputError:
        yield entry  # the check of the whole table says what is wrong with it
        return
    base = {key: value for key, value in entry.items() if key != "derive"}
    yield base
    for size, form in product((None, *derive.dimensions), (None, *derive.quantization)):
        if size is not None or form is not None:
            shared = {key: value for key, value in base.items() if key != "color"}
            yield {**shared, **_derived(base, size, form), "proof": derive.proof}


def _derived(base: Mapping[str, Any], dimensions: int | None, quantization: str | None) -> dict[str, Any]:
    """What the table of a derived retriever has of its own."""
    suffix = "".join(f"-{choice}" for choice in (dimensions, quantization) if choice is not None)
    choices = {"dimensions": dimensions, "quantization": quantization}
    named = {key: choice for key, choice in choices.items() if choice is not None}
    return {"name": f"{base.get('name')}{suffix}", "derived_from": base.get("name"), **named}
