"""What a retriever is, whatever it is called: by it a page, and a comparison of folders, know one again."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.experiment import DenseTable
from harness.records import Manifest

NO_PART = ("name", "of", "store", "color", "proof", "derive", "derived_from")
"""Keys of a retriever's table that do not change what it answers, or that name others."""


def identity(manifest: Manifest, retriever: str) -> str:
    """What a retriever is, whatever it is called: its table, its model as it answered, and what it is made of.

    Keys that have their default say nothing: a later version, which has more of them, knows the retriever again.
    """
    defaults = {name: field.get_default(call_default_factory=True) for name, field in DenseTable.model_fields.items()}
    block = manifest.resolved.blocks[retriever]
    own = {key: value for key, value in block.items() if key not in NO_PART and value != defaults.get(key)}
    if isinstance(encoder := own.get("encoder"), Mapping):
        own["encoder"] = {key: value for key, value in encoder.items() if value not in (None, "")}
    facts = manifest.retrievers[retriever].provenance
    if "fingerprint" in facts and "encoder" not in block:
        own = {}  # It says all that its table says, and stays the same where later versions have more options.
    model = {key: facts[key] for key in ("fingerprint", "revision", "sha256") if key in facts}
    parts = sorted(identity(manifest, part) for part in manifest.resolved.made_of(retriever))
    return json.dumps([own, model, parts], sort_keys=True, default=str)
