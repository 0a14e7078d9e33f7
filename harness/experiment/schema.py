"""The experiment file as JSON Schema (`python -m harness.experiment.schema` writes it), and as tables for the site."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from harness.experiment.model import Experiment
from harness.experiment.option_tables import sentence

HEADS: Mapping[str, str] = {
    "Experiment": "",
    "DatasetTable": "dataset",
    "Relevance": "[relevance]",
    "Statistics": "[statistics]",
    "Looks": "looks = { … }",
    "JudgeOptions": "[judge]",
    "LatencyOptions": "[latency]",
    "StoredVectors": "[vectors]",
    "SweepTable": "[sweep]",
    "DenseTable": '[[retrievers]], kind = "dense"',
    "Sparse": '[[retrievers]], kind = "sparse"',
    "Multivector": '[[retrievers]], kind = "multivector"',
    "Chunk": "chunk = { … }",
    "Derive": "derive = { … }",
    "Fusion": '[[retrievers]], kind = "fusion"',
    "RerankedTable": '[[retrievers]], kind = "rerank"',
    "StoreOptions": "store = { … }",
}
"""Table of the schema -> what stands above its keys, and in the first column of docs/experiment-file.md."""
UNIONS: Mapping[str, str] = {
    "Standalone": "[[retrievers]], kind = {kind}",
    "Encoder": "encoder = {{ kind = {kind}, … }}",
    "Reranker": "rerank = {{ kind = {kind}, … }}",
}
LIMITS: Mapping[str, Mapping[str, float]] = {
    "alpha": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "margin": {"exclusiveMinimum": 0},
}
"""What `[statistics]` refuses, as far as a schema can say it."""
SCHEMA_ID = "urn:retriever-harness:experiment:1"
"""Its number rises where a key of before means something else, as docs/versioning.md says."""


class _Untitled(GenerateJsonSchema):
    """Gives titles to tables alone: those of keys would repeat them."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Never."""
        return False


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an experiment file."""
    made = Experiment.model_json_schema(schema_generator=_Untitled)
    defs: dict[str, Any] = {}
    root = _plain({key: value for key, value in made.items() if key not in ("$defs", "title")}, defs)
    for name, table in made["$defs"].items():
        defs[name] = _plain({key: value for key, value in table.items() if key != "title"}, defs)
    several = {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, {"type": "object"}]}}
    root["properties"]["dataset"]["anyOf"].append(several)
    for key, limits in LIMITS.items():
        defs["Statistics"]["properties"][key] |= limits
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "An experiment of the retriever harness",
        **root,
        "$defs": dict(sorted(defs.items())),
    }


def _plain(value: Any, defs: dict[str, Any]) -> Any:
    """A part of the schema: each table under its name among `defs`, of each description the first paragraph."""
    if isinstance(value, list):
        return [_plain(inner, defs) for inner in value]
    if not isinstance(value, Mapping):
        return value
    plain = {key: _plain(inner, defs) for key, inner in value.items() if key != "discriminator"}
    if isinstance(text := plain.get("description"), str):
        plain["description"] = sentence(text.partition("\n\n")[0])
    if not isinstance(name := plain.pop("title", None), str):
        return plain
    beside = {key: plain.pop(key) for key in ("description", "default") if key in plain}
    defs[name] = plain
    return {**beside, "$ref": f"#/$defs/{name}"}


def markdown() -> str:
    """Return every key of the file as tables, which the site shows; what several tables share stands once."""
    schema = experiment_schema()
    defs = schema["$defs"] | {"Experiment": schema}
    tables = [(head, _rows(head, defs[name])) for name, head in HEADS.items()]
    kinds = [
        (head.format(kind=json.dumps(table["properties"]["kind"]["const"])), _rows(head, table))
        for union, head in UNIONS.items()
        for member in defs[union].get("oneOf", ())
        for table in [defs[member["$ref"].rpartition("/")[2]]]
    ]
    counts = Counter(row for _, rows in [*tables, *kinds] for row in rows)
    most = {row[0]: row for row in sorted(counts, key=lambda row: counts[row])}
    shared = [row for row in most.values() if counts[row] > 1]
    return "\n\n".join([
        *(_table(f"`{head}`" if head else "At the top of the file", rows, shared) for head, rows in [*tables, *kinds]),
        _table("Keys that several tables have", shared, []),
    ])  # fmt: skip


def write(project: Path) -> None:
    """Write the schema beside the experiments."""
    path = project / "experiments" / "experiment.schema.json"
    path.write_text(json.dumps(experiment_schema(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _rows(head: str, table: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Key, default and description of every key."""
    needed = table.get("required", ())
    rows = [
        (key, "required" if key in needed else _shown(value), value.get("description", ""))
        for key, value in table["properties"].items()
        if key != "kind" or head == HEADS["JudgeOptions"]  # others have it in their heads
    ]
    if table.get("additionalProperties"):
        axis = 'a key of its table, such as "chunk.size" (0: whole documents), or of a part: "dense.encoder.model"'
        rows.append(("any other", "a list", f"An axis: {axis}."))
    return rows


def _table(head: str, rows: Sequence[tuple[str, str, str]], shared: Sequence[tuple[str, str, str]]) -> str:
    own, others = [row for row in rows if row not in shared], [f"`{row[0]}`" for row in rows if row in shared]
    also = f"{'Also ' if own else ''}{', '.join(others)}{'' if own else ' alone'} (below)."
    lines = ["", "| key | value | |", "| --- | --- | --- |"] if own else []
    lines += [f"| `{key}` | {value} | {text} |".replace(" |  |", " | |") for key, value, text in own]
    return "\n".join([f"### {head}", *lines, *(["", also] if others else [])])


def _shown(value: Mapping[str, Any]) -> str:
    """A key's default, and what else may stand there."""
    default = value.get("default")
    choices = [choice for one in [value, *value.get("anyOf", [])] for choice in one.get("enum", [])]
    if choices:
        others = [f'`"{choice}"`' + (" (default)" if choice == default else "") for choice in choices]
        return ", ".join(others)
    return "optional" if default in (None, "") or isinstance(default, dict) else f"`{json.dumps(default)}`"


if __name__ == "__main__":
    write(Path.cwd())
