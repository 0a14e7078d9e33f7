"""Puts the environment's values in place of `${NAME}` at the moment of use, and takes them out of messages again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from harness.experiment.guards import walk
from retrievers.remote.redaction import REFERENCE, SHORTEST, Expanded


def expanded(value: Any) -> Any:
    """Replace every `${NAME}` by the environment's value: only at the moment of use, never to be written down.

    A text in which something was replaced remembers how it was written.
    """
    if isinstance(value, str):
        replaced = REFERENCE.sub(lambda name: os.environ[name[1]], value)
        return replaced if replaced == value else Expanded(replaced, value)
    if isinstance(value, Mapping):
        return {key: expanded(inner) for key, inner in value.items()}
    return type(value)(map(expanded, value)) if isinstance(value, list | tuple) else value


def unexpanded(text: str, written: Any) -> str:
    """Put `${NAME}` back into a text wherever it holds what a string of the experiment, or a part of it, came from.

    Args:
        text: a message, which may be shown and kept.
        written: the tables as they were written.
    """
    values = [value for _, _, value in walk(written, "") if REFERENCE.search(value)]
    for value in values:
        replaced = str(expanded(value))
        if replaced != value and len(replaced) > 3:
            text = text.replace(replaced, value)
    for name in dict.fromkeys(name for value in values for name in REFERENCE.findall(value)):
        if len(os.environ[name]) >= SHORTEST:  # a server may repeat the key of "Bearer ${KEY}" alone
            text = text.replace(os.environ[name], f"${{{name}}}")
    return text
