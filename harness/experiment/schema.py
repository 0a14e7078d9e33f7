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
    Chunk,
    DatasetTable,
    Dense,
    Experiment,
    Fusion,
    Latency,
    Relevance,
    Reranked,
    Statistics,
)
from harness.experiment.model import Block
from harness.experiment.options import options_of
from retrievers import encoder_class, encoder_kinds, reranker_class, reranker_kinds, retriever_class, retriever_kinds
from retrievers.stores import StoreOptions

DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    "Experiment": {
        "name": "Of the results folder: letters, digits, full stops, hyphens, underscores; at most 64.",
        "dataset": "A folder, or a table that says more; relative to the working directory, else to the nearest "
        "folder above this file that has it.",
        "primary": "The measure that decides, one of `measures`.",
        "baseline": "The retriever with which each other one is compared; left out, all pairs.",
        "measures": "What is measured, such as nDCG@10.",
        "depth": "Hits kept per query.",
        "seed": "Of every random draw.",
        "relevance": "How labels become grades and gains.",
        "statistics": "Which test decides, and how strict it is.",
        "latency": "Whether single queries are timed.",
        "retrievers": "What is compared, in the order of the tables.",
    },
    "DatasetTable": {
        "path": "A folder, a zip archive or a file; or a name: hf:NAME@REVISION of the hub, irds:NAME of ir_datasets.",
        "split": "Which file or part of judgments; left out, the only one, else test.",
        "queries": "The file of queries, or several asked as one set; left out, queries.* or questions.*.",
        "format": "The reader; left out, seen from what is there.",
        "documents": "A table of documents, or a folder of them; left out, documents.* or corpus.*.",
        "labels": "The table of labels; left out, labels.*, qrels.* or judgments.*, else the queries' own.",
        "columns": 'What columns of tables are called: { text = "body", relevant = "answers" }.',
        "match": "The field, or fields, by which labels name documents, such as page; left out, their ids.",
        "exclude_self": "Keep the document that has a query's id out of that query's answers.",
    },
    "Relevance": {
        "gain": "The grade itself, or 2^grade - 1.",
        "ideal": "What nDCG is divided by: the best order of all judged documents, or of those retrieved.",
        "dangling": "What to do with labels of documents or queries that do not exist.",
    },
    "Statistics": {
        "test": "The test that decides; the randomisation test of the mean always stands beside it.",
        "zeros": "How the signed-rank test treats equal scores: drops them first, or ranks them first.",
        "correction": "For the comparisons of one measure.",
        "alpha": "Level of the tests; intervals have 1 - alpha.",
        "margin": "A difference of the primary mean that does not matter; without one, nothing is called equivalent.",
        "interval": "Of means and differences: Student's t, or the BCa bootstrap.",
    },
    "Chunk": {
        "size": "Characters of a passage, at most.",
        "overlap": "Characters of the last passage with which the next begins.",
    },
    "Latency": {"sample": "So many queries are asked one at a time, the cache bypassed."},
    "Block": {
        "name": "As in the report; names differ by more than case.",
        "kind": "What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank).",
        "rerank": "A reranker of the first hits.",
        "encoder": "What turns texts into vectors.",
        "store": "Where the vectors are: `:memory:`, `edge`, a folder, a server's URL, or a table that says more.",
        "of": "The retriever, or retrievers, that this one is made of.",
        "constant": "Added to every rank.",
    },
    "StoreOptions": {
        "location": "`:memory:`, `edge`, a folder, or a server's URL (http, https, grpc, grpcs); left out, memory up "
        "to 20,000 documents, edge above.",
        "api_key": "A server's, always as `${NAME}`.",
        "shards": "Of a server's collection; left out, the server decides.",
        "replication": "Copies of each shard; left out, the server decides.",
    },
}
"""What docstrings do not say, or not to a reader of the file: model -> key -> description."""

TABLES: Mapping[str, type[BaseModel]] = {
    "": Experiment,
    "dataset": DatasetTable,
    "[relevance]": Relevance,
    "[statistics]": Statistics,
    "[latency]": Latency,
    '[[retrievers]], kind = "dense"': Dense,
    "chunk = { … }": Chunk,
    '[[retrievers]], kind = "fusion"': Fusion,
    '[[retrievers]], kind = "rerank"': Reranked,
}
BLOCKS = (Dense, Fusion, Reranked)
START, END = "<!-- keys: written by python -m harness.experiment.schema -->", "<!-- end of keys -->"


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an experiment file."""
    defs: dict[str, Any] = {model.__name__: _object(model) for model in TABLES.values()}
    root = defs.pop("Experiment")
    root["properties"]["dataset"] = _described("Experiment", "dataset", _either("DatasetTable"))
    root["properties"]["retrievers"]["items"] = {
        "anyOf": [*(_ref(model.__name__) for model in BLOCKS), _ref("Standalone")]
    }
    for key, model in (("relevance", "Relevance"), ("statistics", "Statistics"), ("latency", "Latency")):
        root["properties"][key] = _described("Experiment", key, _ref(model))
    for block in BLOCKS:
        table = defs[block.__name__]
        table["properties"]["rerank"] = _described("Block", "rerank", _ref("Reranker"))
        if block is Fusion:
            table["required"].append("kind")
    defs["Dense"]["properties"]["encoder"] = _described("Block", "encoder", _ref("Encoder"))
    defs["Dense"]["properties"]["store"] = _described("Block", "store", _either("Store"))
    defs["Store"] = _object(options_of(StoreOptions), _attribute_docs(StoreOptions))
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
    own = _attribute_docs(model) if docs is None else docs
    made = model.model_json_schema(ref_template="#/$defs/{model}")
    shared = DESCRIPTIONS["Block"] if model in (Block, *BLOCKS) else DESCRIPTIONS.get(model.__name__, {})
    properties = {}
    for key, value in made["properties"].items():
        described = {"description": text} if (text := shared.get(key) or own.get(key)) else {}
        properties[key] = {**described, **_without_titles(value)}
    return {
        **({"description": _first_sentence(model)} if docs is None else {}),
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
    block["properties"]["rerank"] = _described("Block", "rerank", _ref("Reranker"))
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


def _described(model: str, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": DESCRIPTIONS[model][key], **value}


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
    found = re.finditer(r"^(\w+): (.+(?:\n +.+)*)", block, re.MULTILINE)
    return {one[1]: _sentence(one[2]) for one in found}


def _attribute_docs(cls: type) -> dict[str, str]:
    """The docstrings that stand under a class's fields."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return dict(_under(tree.body))


def _under(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, said in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(said, ast.Expr):
            text = ast.literal_eval(said.value)
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
