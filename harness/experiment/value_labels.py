"""Short names of swept values."""

import re
from collections.abc import Mapping
from typing import Any

from harness.experiment.experiment_tables import Sweep

WHOLE_DOCUMENT_LABEL = "whole"
"""The word of a chunk size of 0: whole documents."""


def value_labels(sweep: Sweep) -> dict[str, tuple[str, ...]]:
    """Axis -> a word for each of its values, as in the names of the configurations."""
    return {axis: label_axis(values, axis) for axis, values in sweep.axes.items()}


def label_axis(values: tuple[Any, ...], path: str) -> tuple[str, ...]:
    """A word for each value: a model's name without its owner, a number as it is, 0 of chunk.size as "whole".

    >>> label_axis(("sentence-transformers/all-MiniLM-L6-v2", "minishlab/potion"), "encoder.model")
    ('all-MiniLM-L6-v2', 'potion')
    >>> label_axis(((1, 2), (1, 0.5)), "weights"), label_axis((0, 128), "chunk.size"), label_axis(("", "query: "), "prompt")
    (('1-2', '1-0.5'), ('whole', '128'), ('none', 'query'))
    """
    short = [_word(value, path, whole=False) for value in values]
    if len(set(short)) == len(short):
        return tuple(short)
    long = [_word(value, path, whole=True) for value in values]
    return tuple(
        word if long.count(word) == 1 else f"{word}-{place}"
        for place, word in enumerate(long, 1)
    )


def _word(value: Any, path: str, *, whole: bool) -> str:
    if isinstance(value, tuple):
        return "-".join(_word(one, path, whole=whole) for one in value)
    if isinstance(value, Mapping):
        return "-".join(_word(one, path, whole=whole) for one in value.values())
    if path.endswith("chunk.size") and value == 0:
        return WHOLE_DOCUMENT_LABEL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.12g}"
    text = (
        str(value)
        if whole or not isinstance(value, str)
        else value.rstrip("/").rpartition("/")[2]
    )
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-")[:60] or "none"
