"""Short names of swept values, as in `dense[MiniLM, 256]`."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.experiment.experiment_tables import Sweep

WHOLE_DOCUMENT_LABEL = "whole"
"""The label of a chunk size of 0: whole documents."""
MAX_LABEL_LENGTH = 60
"""Characters of a text's label, which becomes part of a retriever's name."""


def value_labels(sweep: Sweep) -> dict[str, tuple[str, ...]]:
    """Return for each axis the labels of its values in names of configurations."""
    return {axis: label_axis(values, axis) for axis, values in sweep.axes.items()}


def label_axis(values: tuple[Any, ...], path: str) -> tuple[str, ...]:
    """Return a label for each value of an axis; no two differ by case alone.

    A model has its name without its owner, unless two labels would be the same; labels
    that are the same all the same are numbered.

    Args:
        values: those of the axis: texts, numbers, tuples or tables.
        path: the key of the axis, such as `chunk.size`.

    >>> models = ("sentence-transformers/all-MiniLM-L6-v2", "minishlab/potion")
    >>> label_axis(models, "encoder.model")
    ('all-MiniLM-L6-v2', 'potion')
    >>> label_axis(((1, 2), (1, 0.5)), "weights"), label_axis((0, 128), "chunk.size")
    (('1-2', '1-0.5'), ('whole', '128'))
    >>> label_axis(("", "query: "), "prompt")
    ('none', 'query')
    """
    labels = [_label(value, path, with_owner=False) for value in values]
    if _repeated(labels):
        labels = [_label(value, path, with_owner=True) for value in values]
    return _numbered(labels)


def _repeated(labels: Sequence[str]) -> set[str]:
    """Return the labels, in lower case, that occur more than once."""
    counts = Counter(label.lower() for label in labels)
    return {label for label, count in counts.items() if count > 1}


def _numbered(labels: Sequence[str]) -> tuple[str, ...]:
    """Return labels; of equal ones, each has a number that gives no other label."""
    repeated = _repeated(labels)
    used = {label.lower() for label in labels}
    distinct: list[str] = []
    for position, label in enumerate(labels, 1):
        numbered = label
        number = position
        while label.lower() in repeated and numbered.lower() in used:
            numbered = f"{label}-{number}"
            number += 1
        used.add(numbered.lower())
        distinct.append(numbered)
    return tuple(distinct)


def _label(value: Any, path: str, *, with_owner: bool) -> str:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple):
        labels = [_label(inner, path, with_owner=with_owner) for inner in value]
        return "-".join(labels) or "none"
    if path.endswith("chunk.size") and value == 0:
        return WHOLE_DOCUMENT_LABEL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.12g}"
    text = str(value)
    if isinstance(value, str) and not with_owner:
        text = value.rstrip("/").rpartition("/")[2]
    label = re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-")
    return label[:MAX_LABEL_LENGTH] or "none"
