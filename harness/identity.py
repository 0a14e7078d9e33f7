"""When two runs count as the same."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.experiment import RawTable
from harness.experiment.vector_configs import DenseConfig
from retrievers.types import Query, RetrieverFacts

KEYS_OUTSIDE_IDENTITY = (
    "name",
    "of",
    "store",
    "proof",
    "derive",
    "derived_from",
)
"""Keys of a retriever's table that change no answer, or that name other retrievers.

The identity of a retriever has its parts in place of their names.
"""


class RunIdentity(NamedTuple):
    """The identity of a run: runs with equal ones count as the same."""

    experiment: RawTable
    """The experiment as it was written, without `report`."""
    data_digest: str
    """The digest of documents, queries and labels: `Dataset.digest`."""


def run_identity(experiment: RawTable, data_digest: str) -> RunIdentity:
    """Return the identity of a run; whether a page is written makes no difference.

    >>> with_default = run_identity(RawTable({"name": "x", "report": False}), "d")
    >>> with_default == run_identity(RawTable({"name": "x"}), "d")
    True
    """
    return RunIdentity(experiment.without("report"), data_digest)


def retriever_identity(
    table: RawTable, facts: RetrieverFacts, parts: Sequence[str]
) -> str:
    """Return a text that is equal for the same retriever under another name.

    Keys with the default value of a dense retriever are left out, so that a later
    version with more keys recognises the retriever.

    Args:
        table: of the retriever, with every default filled in.
        facts: what the manifest has of its models.
        parts: the identities of the retrievers that it uses; their order is ignored.
    """
    if facts.model.fingerprint and "encoder" not in table:
        # This fingerprint is the retriever's own, not its encoder's: it covers the
        # table, and stays the same with more options.
        own_table: dict[str, Any] = {}
    else:
        own_table = _changed_keys(table)
    digests = {
        "fingerprint": facts.model.fingerprint,
        "revision": facts.model.revision,
        "sha256": facts.model.sha256 or facts.origin.sha256,
    }
    model = {name: digest for name, digest in digests.items() if digest}
    return json.dumps([own_table, model, sorted(parts)], sort_keys=True, default=str)


def _changed_keys(table: RawTable) -> dict[str, Any]:
    """The keys of a table that identify it.

    Without those that have the default of a dense retriever, whatever its kind is, and
    without empty options of the encoder.
    """
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in DenseConfig.model_fields.items()
    }
    changed = {
        key: option
        for key, option in table.options.items()
        if key not in KEYS_OUTSIDE_IDENTITY and option != defaults.get(key)
    }
    encoder = changed.get("encoder")
    if isinstance(encoder, Mapping):
        changed["encoder"] = {
            key: value for key, value in encoder.items() if value not in (None, "")
        }
    return changed


def query_identity(query: Query) -> tuple[str, ...]:
    """Return what makes a query the same in two runs."""
    return (query.id, query.text, *query.history)
