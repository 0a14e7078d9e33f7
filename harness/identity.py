"""What "the same" means of a run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.experiment.vector_configs import DenseConfig
from retrievers.types import Query

KEYS_WITHOUT_IDENTITY = (
    "name",
    "of",
    "store",
    "color",
    "proof",
    "derive",
    "derived_from",
)
"""Keys of a retriever's table that do not change what it answers, or that name others."""
DRAWING_KEY = "color"
"""The key of a retriever's table that says only how it is drawn."""


def run_identity(written: Mapping[str, Any], digest: str) -> tuple[dict[str, Any], str]:
    """What a run answers: the experiment as it is written, but for whether and how a page is drawn; and its data.

    >>> run_identity({"name": "x", "report": False}, "d") == run_identity({"name": "x"}, "d")
    True
    """
    asked = {key: value for key, value in written.items() if key != "report"}
    if isinstance(blocks := asked.get("retrievers"), Sequence):
        asked["retrievers"] = [
            {key: value for key, value in block.items() if key != DRAWING_KEY}
            if isinstance(block, Mapping)
            else block
            for block in blocks
        ]
    return asked, digest


def retriever_identity(
    table: Mapping[str, Any], facts: Mapping[str, str], parts: Sequence[str]
) -> str:
    """What a retriever is, whatever it is called: its table, its model as it answered, and what it uses.

    Keys that have their default say nothing: a later version, which has more of them, knows the retriever again.

    Args:
        table: with every default filled in.
        facts: what the manifest keeps of its models.
        parts: what the retrievers are that it uses.
    """
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in DenseConfig.model_fields.items()
    }
    own = {
        key: value
        for key, value in table.items()
        if key not in KEYS_WITHOUT_IDENTITY and value != defaults.get(key)
    }
    if isinstance(encoder := own.get("encoder"), Mapping):
        own["encoder"] = {
            key: value for key, value in encoder.items() if value not in (None, "")
        }
    if "fingerprint" in facts and "encoder" not in table:
        own = {}  # It says all that its table says, and stays the same where later versions have more options.
    model = {
        key: facts[key] for key in ("fingerprint", "revision", "sha256") if key in facts
    }
    return json.dumps([own, model, sorted(parts)], sort_keys=True, default=str)


def question_identity(
    primary: str, baseline: str | None, retrievers: Mapping[str, str]
) -> tuple[str, str | None, list[str]]:
    """What a run asks, whatever its retrievers are called.

    Args:
        primary: the measure that decides.
        baseline: the name of the retriever that the others are compared with.
        retrievers: name -> what it is.
    """
    return (
        primary,
        None if baseline is None else retrievers.get(baseline),
        sorted(retrievers.values()),
    )


def query_identity(query: Query) -> tuple[str, ...]:
    """What makes a query the same in two runs."""
    return (query.id, query.text, *query.history)
