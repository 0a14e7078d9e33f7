"""The texts of each encoder.

An experiment comes in; out come, for each encoder and role, functions that read the
texts. Encoders with one fingerprint are one. `ray_embedding` embeds the texts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.build.build import BuiltExperiment, build
from harness.build.built_retriever import BuiltRetriever
from harness.build.missing import missing_price, missing_requirements
from harness.dataset import Dataset
from harness.experiment import load
from harness.experiment.class_options import PartConfig
from retrievers.errors import InputError, Problem
from retrievers.texts.chunking import Chunk, passages_of
from retrievers.types import Encoder, Role
from retrievers.vector_reduction import verification_texts


class IdentifiedText(NamedTuple):
    """A text with its id: a passage of a document, or a query."""

    id: str
    text: str


ReadTexts = Callable[[], Iterator[IdentifiedText]]


class EmbeddingTask(NamedTuple):
    """The texts of one role that one encoder embeds."""

    encoder: Encoder
    config: PartConfig
    """The table of the encoder, with which another process builds it again."""
    role: Role
    sources: tuple[ReadTexts, ...]
    """One for each `PassageChoice` of documents; one for all queries."""


class PassageChoice(NamedTuple):
    """Which passages of the documents an encoder embeds."""

    chunks: Chunk | None
    verification: bool
    """Whether the texts only verify that a service's smaller vectors are cut ones."""


@dataclass(frozen=True, slots=True)
class EncoderTexts:
    """An encoder with the passages that it embeds."""

    encoder: Encoder
    config: PartConfig
    choices: dict[PassageChoice, None] = field(default_factory=dict)
    """The choices in the order of the experiment."""


def embedding_tasks(
    experiment: Path, *, limited: bool = False, allow_code: bool = True
) -> list[EmbeddingTask]:
    """Return what an experiment embeds: its documents and queries, once per encoder.

    Args:
        experiment: its file.
        limited: whether every price must be known.
        allow_code: whether the experiment may name code that is run.

    Raises:
        InputError: a problem of the experiment, its data or its environment; or it has
            no encoder, or one that reads passages with their documents.
    """
    built = build(load(experiment, allow_code=allow_code))
    problems = _missing(built.retrievers, limited=limited)
    problems += _read_with_documents(built.retrievers)
    query_encoders = _query_encoders(built.retrievers)
    if not query_encoders:
        message = "has no encoder"
        problems = [Problem(str(experiment), message, "nothing is to be embedded")]
    if problems:
        raise InputError(problems)
    queries = _distinct_queries(built)
    tasks = [
        EmbeddingTask(
            texts.encoder,
            texts.config,
            "document",
            tuple(
                partial(_read_passages, built.dataset, choice)
                for choice in texts.choices
            ),
        )
        for texts in _document_encoders(built.retrievers)
    ]
    for texts in query_encoders:
        read_queries = partial(iter, queries)
        tasks.append(
            EmbeddingTask(texts.encoder, texts.config, "query", (read_queries,))
        )
    return tasks


def _missing(retrievers: Sequence[BuiltRetriever], *, limited: bool) -> list[Problem]:
    """Return what encoders lack, such as a key; if `limited`, also their prices."""
    problems: list[Problem] = []
    for built in retrievers:
        for dense in built.dense_parts:
            for encoder in (dense.encoder, dense.reduction.native_encoder):
                if encoder is None:
                    continue
                problems += missing_requirements(built.name, encoder)
                if limited:
                    problems += missing_price(built.name, "encoder", encoder)
    return problems


def _read_with_documents(retrievers: Sequence[BuiltRetriever]) -> list[Problem]:
    """Return the retrievers whose passages are not embedded alone, as problems."""
    problems: list[Problem] = []
    for built in retrievers:
        for dense in built.dense_parts:
            is_late = dense.chunks is not None and dense.chunks.late
            if is_late or dense.encoder.contextual:
                problem = "reads each passage with its document, as only a run does"
                remedy = "embed an experiment without it"
                problems.append(Problem(f"retriever {built.name!r}", problem, remedy))
    return problems


def _document_encoders(retrievers: Sequence[BuiltRetriever]) -> list[EncoderTexts]:
    """The distinct encoders of documents, each with the passages that it embeds."""
    by_fingerprint: dict[str, EncoderTexts] = {}
    for built in retrievers:
        for dense in built.dense_parts:
            encoders = [(dense.encoder, False)]
            if dense.reduction.native_encoder is not None:
                encoders.append((dense.reduction.native_encoder, True))
            for encoder, verification in encoders:
                fingerprint = encoder.fingerprint_for("document")
                texts = EncoderTexts(encoder, built.model_configs[id(encoder)])
                texts = by_fingerprint.setdefault(fingerprint, texts)
                texts.choices[PassageChoice(dense.chunks, verification)] = None
    return list(by_fingerprint.values())


def _query_encoders(retrievers: Sequence[BuiltRetriever]) -> list[EncoderTexts]:
    """The distinct encoders of queries."""
    by_fingerprint: dict[str, EncoderTexts] = {}
    for built in retrievers:
        for dense in built.dense_parts:
            fingerprint = dense.encoder.fingerprint_for("query")
            texts = EncoderTexts(dense.encoder, built.model_configs[id(dense.encoder)])
            by_fingerprint.setdefault(fingerprint, texts)
    return list(by_fingerprint.values())


def _distinct_queries(built: BuiltExperiment) -> list[IdentifiedText]:
    """The texts of the queries as retrievers search with them, each once."""
    query_ids: dict[str, str] = {}
    for retriever in built.retrievers:
        for query in retriever.conversation_queries(built.dataset.queries):
            query_ids[query.text] = query.id
    return [IdentifiedText(query_id, text) for text, query_id in query_ids.items()]


def _read_passages(dataset: Dataset, choice: PassageChoice) -> Iterator[IdentifiedText]:
    """Read a corpus as a retriever cuts it."""
    verified: set[str] | None = None
    if choice.verification:
        passages = passages_of(dataset.documents(), choice.chunks)
        verified = set(verification_texts(passage.content for passage in passages))
    for passage in passages_of(dataset.documents(), choice.chunks):
        if verified is None or passage.content in verified:
            yield IdentifiedText(passage.id, passage.content)
