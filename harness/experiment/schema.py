"""The experiment file as JSON Schema (`python -m harness.experiment.schema` writes it)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from harness.experiment.model import Experiment
from harness.experiment.option_tables import sentence

LIMITS: Mapping[str, Mapping[str, float]] = {
    "alpha": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "margin": {"exclusiveMinimum": 0},
}
"""What `[statistics]` refuses, as far as a schema can say it."""
SCHEMA_ID = "urn:retriever-harness:experiment:1"
"""Its number rises if a key changes its meaning, as docs/commands.md says."""


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


def write(project: Path) -> None:
    """Write the schema beside the experiments."""
    path = project / "experiments" / "experiment.schema.json"
    path.write_text(json.dumps(experiment_schema(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path.cwd())
