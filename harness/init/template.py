"""The text of an experiment file.

The template compares BM25 with a dense retriever that needs no key; what depends on the
data set, its language above all, is decided here.
"""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset import Dataset, DatasetReference
from harness.english import count_of
from harness.init.schema_file import SCHEMA_FILE
from harness.shipped_files import DEMO_MODEL_MODULES
from retrievers.ids import CONTROL_CHARACTERS
from retrievers.texts.languages import detect_shared_language

EXPERIMENT_TEMPLATE = Path(__file__).with_name("templates") / "experiment.toml"
REFERENCE_KEYS = (
    "split",
    "format",
    "documents",
    "labels",
    "queries",
    "columns",
    "match",
    "header",
    "pages",
    "where",
)
"""The keys of the table of a data set, beside its path."""
MAX_EXAMINED_LETTERS = 500
"""Characters of a text, at most, by which its script is recognised."""
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
"""A key that TOML has without quotes; any other column of `where` needs them."""
MIN_ASCII_SHARE = 0.95
"""Share of ASCII letters from which on texts may be English."""


class NamedModel(NamedTuple):
    """An embedding model that a new experiment compares."""

    name: str
    """Of its retriever."""
    kind: str
    """Of its encoder, such as "openai"."""
    model: str
    """What its provider calls it."""


class ExperimentDraft(NamedTuple):
    """The data set of a new experiment, with the notes on it."""

    name: str
    reference: DatasetReference
    dataset: Dataset
    dropped_labels: int
    """Number of labels that the experiment drops."""
    production: Path | None
    """The TREC run of the system in production; None if there is none."""
    has_conversations: bool
    """Whether several queries may be of one conversation."""
    cutoff: int = 10
    """Depth of the measures."""
    mark: str = ""
    """The first line: a comment that says which command wrote the file."""
    models: tuple[NamedModel, ...] = ()
    """Further encoders; without the offline model, the first is in the fusion."""


def experiment_text(draft: ExperimentDraft) -> str:
    """Return an experiment file.

    It has retrievers that run on this machine without a key, and others as comments.
    """
    import jinja2

    dataset = draft.dataset
    is_english = _is_english(dataset)
    dense = _dense_retriever(draft, is_english=is_english)
    reranker = "BAAI/bge-reranker-v2-m3"
    if is_english:
        reranker = "cross-encoder/ms-marco-MiniLM-L6-v2"
    graded = [labels for labels in dataset.labels.values() if labels.grades is not None]
    production = draft.production
    # The text is TOML: nothing is escaped for HTML.
    env = jinja2.Environment(
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    template = env.from_string(EXPERIMENT_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        schema=SCHEMA_FILE,
        name=draft.name,
        documents=count_of(dataset.document_count, "document"),
        queries=labelled_queries_text(dataset),
        dataset=_inline_toml(_dataset_table(draft.reference)),
        mapping=list(_column_comments(dataset)),
        dropped=draft.dropped_labels,
        # If people are still to judge, their labels will be grades.
        explicit=not dataset.labels or bool(graded),
        turns=draft.has_conversations,
        cutoff=draft.cutoff,
        mark=draft.mark,
        models=[NamedModel(*map(_inline_toml, model)) for model in draft.models],
        dense=dense,
        fused=_inline_toml(dense or draft.models[0].name),
        reranker=reranker,
        production=production and _inline_toml(production.as_posix()),
    )


def has_offline_model() -> bool:
    """Whether the extra `offline` is installed."""
    return all(map(importlib.util.find_spec, DEMO_MODEL_MODULES))


def _dense_retriever(draft: ExperimentDraft, *, is_english: bool) -> str:
    """Return the name of the dense retriever: minilm for English texts, if installed.

    Else hashing, which knows no meaning; "" if a model that the user named takes its
    place.
    """
    if is_english and has_offline_model():
        return "minilm"
    return "" if draft.models else "hashing"


def _dataset_table(reference: DatasetReference) -> object:
    """Return the value of the key `dataset`: the path, or a table."""
    options: dict[str, Any] = {}
    for key in REFERENCE_KEYS:
        option: Any = getattr(reference, key)
        if key == "columns":
            option = dict(reference.columns)
        if option or (key == "header" and option is False):
            options[key] = option
    if reference.gitignore:
        options["gitignore"] = True
    return {"path": reference.name, **options} if options else reference.name


def _column_comments(dataset: Dataset) -> Iterator[str]:
    """Yield how the columns of each table are read; no name can end the comment."""
    if dataset.tables:
        yield (
            "What its columns are read as; change it with the key columns "
            "of the data set, or with --columns:"
        )
    for table in dataset.tables:
        uses = [
            f"{column.name or '(no name)'} -> {column.kind or 'not used'}"
            for column in table.columns
        ]
        yield CONTROL_CHARACTERS.sub(" ", f"{table.file}: {', '.join(uses)}")


def _is_english(dataset: Dataset) -> bool:
    """Whether a small English model could read the texts.

    No other language is clear, and nearly all letters are ASCII.
    """
    documents = [document.content for document in dataset.sample]
    queries = [query.text for query in dataset.queries]
    letters = 0
    ascii_letters = 0
    for text in (*documents, *queries):
        for character in text[:MAX_EXAMINED_LETTERS]:
            if character.isalpha():
                letters += 1
                ascii_letters += character.isascii()
    if detect_shared_language(documents) not in ("en", ""):
        return False
    return ascii_letters >= MIN_ASCII_SHARE * letters


def labelled_queries_text(dataset: Dataset) -> str:
    """Return the number of queries, and whether they have labels."""
    queries = len(dataset.queries)
    if dataset.labels:
        return count_of(queries, "labelled query")
    return f"{count_of(queries, 'query')} without labels"


def _inline_toml(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, Mapping):
        pairs = [
            f"{_toml_key(key)} = {_inline_toml(inner)}" for key, inner in value.items()
        ]
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(key: str) -> str:
    """Return a key as TOML: in quotes, unless it needs none."""
    return key if BARE_KEY.fullmatch(key) else _inline_toml(key)
