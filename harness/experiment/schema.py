"""The experiment file as JSON Schema and as tables: `python -m harness.experiment.schema` writes both."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.experiment import (
    CacheOptions,
    Chunk,
    DatasetTable,
    Dense,
    Derive,
    Experiment,
    Fusion,
    JudgeOptions,
    LatencyOptions,
    Multivector,
    Relevance,
    Reranked,
    Sparse,
)
from harness.experiment.blocks import Block
from harness.experiment.options import options_of
from harness.stats.settings import Looks, Statistics
from retrievers import encoder_class, encoder_kinds, reranker_class, reranker_kinds, retriever_class, retriever_kinds
from retrievers.stores import StoreOptions

STORE: Mapping[str, str] = {
    "location": "`:memory:`, `edge`, a folder, or a server's URL (http, https, grpc, grpcs); of sparse vectors also "
    "`csr`, scipy's matrices. Left out: `csr` for sparse vectors; else memory up to 20,000 documents (1,000 with a "
    "vector for each token), edge above.",
    "api_key": "A server's, always as `${NAME}`.",
    "shards": "Of a server's collection; left out, the server decides.",
    "replication": "Copies of each shard; left out, the server decides.",
}
"""What the docstrings of the store's options do not say, or not to a reader of the file."""

TABLES: Mapping[str, type[BaseModel]] = {
    "": Experiment,
    "dataset": DatasetTable,
    "[relevance]": Relevance,
    "[statistics]": options_of(Statistics),
    "looks = { … }": options_of(Looks),
    "[judge]": JudgeOptions,
    "[latency]": LatencyOptions,
    "[cache]": CacheOptions,
    '[[retrievers]], kind = "dense"': Dense,
    '[[retrievers]], kind = "sparse"': Sparse,
    '[[retrievers]], kind = "multivector"': Multivector,
    "chunk = { … }": Chunk,
    "derive = { … }": Derive,
    '[[retrievers]], kind = "fusion"': Fusion,
    '[[retrievers]], kind = "rerank"': Reranked,
}
ENCODED = (Dense, Sparse, Multivector)
BLOCKS = (*ENCODED, Fusion, Reranked)
START, END = "<!-- keys: written by python -m harness.experiment.schema -->", "<!-- end of keys -->"


DECLARED: Mapping[str, type] = {"Statistics": Statistics, "Looks": Looks}
"""Tables whose keys are the fields of a dataclass elsewhere: its docstrings describe them."""
LIMITS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "Statistics": {"alpha": {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "margin": {"exclusiveMinimum": 0}},
}
"""What those dataclasses refuse, as far as a schema can say it."""


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an experiment file."""
    defs: dict[str, Any] = {model.__name__: _object(model) for model in TABLES.values()}
    root = defs.pop("Experiment")
    root["properties"]["dataset"] = _described(root, "dataset", _either("DatasetTable"))
    root["properties"]["retrievers"]["items"] = {
        "anyOf": [*(_ref(model.__name__) for model in BLOCKS), _ref("Standalone")]
    }
    tables = {
        "relevance": "Relevance",
        "statistics": "Statistics",
        "judge": "JudgeOptions",
        "latency": "LatencyOptions",
        "cache": "CacheOptions",
    }
    for key, model in tables.items():
        root["properties"][key] = _described(root, key, _ref(model))
    for block in BLOCKS:
        table = defs[block.__name__]
        table["properties"]["rerank"] = _described(table, "rerank", _ref("Reranker"))
        if block in (Sparse, Multivector, Fusion):
            table["required"].append("kind")
        if "store" in table["properties"]:
            table["properties"]["store"] = _described(table, "store", _either("Store"))
    judge = defs["JudgeOptions"]
    judge["properties"]["encoder"] = _described(judge, "encoder", _ref("Encoder"))
    for block in ENCODED:
        table = defs[block.__name__]
        table["properties"]["encoder"] = _described(table, "encoder", _ref("Encoder"))
    defs["Store"] = _object(options_of(StoreOptions), {**_attribute_docs(StoreOptions), **STORE})
    defs["Encoder"] = {"anyOf": [_kind(kind, encoder_class(kind)) for kind in sorted(encoder_kinds())]}
    defs["Reranker"] = {"anyOf": [_kind(kind, reranker_class(kind)) for kind in sorted(reranker_kinds())]}
    defs["Standalone"] = {"anyOf": [_standalone(kind, retriever_class(kind)) for kind in sorted(retriever_kinds())]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An experiment of the retriever harness",
        **root,
        "$defs": defs,
    }


def markdown() -> str:
    """Return every key of the file as tables for docs/formats.md."""
    schema = experiment_schema()
    tables = {head: schema["$defs"].get(model.__name__, schema) for head, model in TABLES.items()}
    tables["store = { … }"] = schema["$defs"]["Store"]
    for table in schema["$defs"]["Standalone"]["anyOf"]:
        tables[f'[[retrievers]], kind = "{table["properties"]["kind"]["const"]}"'] = table
    for name, of in (("encoder", "Encoder"), ("rerank", "Reranker")):
        for table in schema["$defs"][of]["anyOf"]:
            tables[f'{name} = {{ kind = "{table["properties"]["kind"]["const"]}", … }}'] = table
    return "\n\n".join(_table(head, table) for head, table in tables.items())


def write(project: Path) -> None:
    """Write the schema beside the experiments, and the tables into docs/formats.md."""
    path = project / "experiments" / "experiment.schema.json"
    path.write_text(json.dumps(experiment_schema(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    page = project / "docs" / "formats.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n{markdown()}\n\n{END}{after}", encoding="utf-8")


def _object(model: type[BaseModel], docs: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A model's own table: properties with descriptions and defaults, no titles, nothing else allowed."""
    cls = DECLARED.get(model.__name__, model)
    docstrings = docs if cls is model else _attribute_docs(cls)
    made = model.model_json_schema(ref_template="#/$defs/{model}")
    properties = {}
    for key, value in made["properties"].items():
        # From the field itself: pydantic's schema leaves out a description that equals that of the field's model.
        text = _sentence((model.model_fields[key].description or "") if docstrings is None else docstrings.get(key, ""))
        described = {"description": text} if text else {}
        limits = LIMITS.get(model.__name__, {}).get(key, {})
        properties[key] = described | _without_titles(value) | described | limits  # the description stands first
    return {
        **({"description": _first_sentence(cls)} if docs is None else {}),
        "type": "object",
        "properties": properties,
        "required": list(made.get("required", [])),
        "additionalProperties": False,
    }


def _kind(kind: str, cls: type) -> dict[str, Any]:
    table = _object(options_of(cls), _argument_docs(cls))
    table["properties"] = {"kind": {"const": kind}, **table["properties"]}
    table["required"].insert(0, "kind")
    return {"description": _first_sentence(cls), **table}


def _standalone(kind: str, cls: type) -> dict[str, Any]:
    """The table of a whole retriever: what every block has, and the options of its class."""
    block, table = _object(Block), _kind(kind, cls)
    block["properties"]["rerank"] = _described(block, "rerank", _ref("Reranker"))
    if "chunk" in table["properties"]:
        table["properties"]["chunk"] = _described(table, "chunk", _ref("Chunk"))
    table["properties"] = {**block["properties"], **table["properties"]}
    table["required"] = [*block["required"], *table["required"]]
    return table


def _table(head: str, table: Mapping[str, Any]) -> str:
    lines = [f"`{head}`:" if head else "At the top of the file:", "", "| key | value | |", "| --- | --- | --- |"]
    for key, value in table["properties"].items():
        if key == "kind":
            continue  # The head has it.
        needed = "required" if key in table["required"] else _shown(value)
        lines.append(f"| `{key}` | {needed} | {value.get('description', '')} |".replace(" |  |", " | |"))
    return "\n".join(lines)


def _shown(value: Mapping[str, Any]) -> str:
    """A key's default, and what else may stand there."""
    default = value.get("default")
    choices = [choice for one in [value, *value.get("anyOf", [])] for choice in one.get("enum", [])]
    if choices:
        others = [f'`"{choice}"`' + (" (default)" if choice == default else "") for choice in choices]
        return ", ".join(others)
    return "optional" if default in (None, "") or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _described(table: Mapping[str, Any], key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A value in the place of a table's key, with the description that the key has."""
    return {"description": table["properties"][key]["description"], **value}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _either(name: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "string"}, _ref(name)]}


def _without_titles(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_titles(inner) for key, inner in value.items() if key != "title"}
    return [_without_titles(inner) for inner in value] if isinstance(value, list) else value


def _first_sentence(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def _argument_docs(cls: type) -> dict[str, str]:
    """The arguments of a constructor as its docstring describes them."""
    constructor: Any = cls.__init__  # type: ignore[misc]
    _, _, args = (inspect.getdoc(constructor) or "").partition("Args:\n")
    block = textwrap.dedent(re.split(r"\n\S", args)[0])
    entries = re.finditer(r"^(\w+): (.+(?:\n +.+)*)", block, re.MULTILINE)
    return {one[1]: _sentence(one[2]) for one in entries}


def _attribute_docs(cls: type) -> dict[str, str]:
    """The docstrings that stand under a class's fields."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return dict(_under(tree.body))


def _under(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, docstring in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(docstring, ast.Expr):
            text = ast.literal_eval(docstring.value)
            yield field.target.id, _sentence(text)


def _sentence(text: str) -> str:
    r"""Text on one line, its first letter a capital.

    >>> _sentence("dollars for a\n    million tokens")
    'Dollars for a million tokens'
    """
    line = " ".join(text.split())
    return line[:1].upper() + line[1:]


if __name__ == "__main__":
    write(Path.cwd())
