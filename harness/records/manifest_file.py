"""manifest.json: written and read here alone, checked as it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.dataset.source import parse_json
from harness.records.folder import create, regular
from harness.records.manifest import AGAIN, SCHEMA, Manifest, Table
from harness.records.manifest_checks import manifest_faults
from retrievers.errors import InputError, Problem

LARGEST = 256 << 20
"""Bytes that are read, at most: what a ledger of a million queries takes."""
NAMED = 5
"""Faults of a manifest that one message names."""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    content = {"schema": SCHEMA, **asdict(manifest)}
    content["ledger"] = {"dataset": content["ledger"]["dataset"], **content["ledger"]["retrievers"]}
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    with create(folder / "manifest.json") as file:
        file.write(text + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.json.

    Raises:
        InputError: there is none, it is of another version, or parts of it are missing or of the wrong type.
    """
    path = folder / "manifest.json"
    try:
        with regular(path).open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        content = parse_json(raw.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if folder.exists() and not folder.is_dir():
            what, remedy = "is a file, not a results folder", "give the folder that `harness run` wrote"
        else:
            what, remedy = "is no results folder", "it holds no manifest.json"
        raise InputError(Problem(str(folder), what, remedy)) from None
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(path), f"cannot be read as JSON: {error}", AGAIN)) from None
    version = content.get("schema") if isinstance(content, dict) else None
    if version != SCHEMA:
        what = f"is of version {version!r}, and this program reads version {SCHEMA}"
        raise InputError(Problem(str(path), what, AGAIN))
    try:
        # Through JSON, since only there a list may stand for a tuple in strict mode.
        manifest = _adapter().validate_json(json.dumps(_with_ledger(content)), strict=True)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
    else:
        faults = list(manifest_faults(manifest))
        if not faults:
            return manifest
    more = f" and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
    raise InputError(Problem(str(path), f"is damaged: {'; '.join(faults[:NAMED])}{more}", AGAIN))


@cache
def _adapter() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


def _with_ledger(content: Table) -> Table:
    """The ledgers of the retrievers in a table of their own: in the file they stand beside that of the data set."""
    ledger = content.get("ledger")
    if not isinstance(ledger, Mapping):
        return content
    retrievers = {name: kept for name, kept in ledger.items() if name != "dataset"}
    return {**content, "ledger": {"dataset": ledger.get("dataset", {}), "retrievers": retrievers}}
