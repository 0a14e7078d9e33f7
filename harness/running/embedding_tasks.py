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
    """One for each `PassageChoice` of documents; one for the queries."""


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


@dataclass(frozen=True, slots=True)
class EncoderQueries:
    """An encoder with the queries that it embeds."""

    encoder: Encoder
    config: PartConfig
    queries: dict[str, IdentifiedText] = field(default_factory=dict)
    """The queries by their texts, which may have their histories: each text once, with
    the id of the first query."""

    def as_task(self) -> EmbeddingTask:
        """Return the embedding of these queries."""
        read_queries = partial(iter, self.queries.values())
        return EmbeddingTask(self.encoder, self.config, "query", (read_queries,))


def embedding_tasks(
    experiment: Path, *, limited: bool = False, allow_code: bool = True
) -> list[EmbeddingTask]:
    """Return what an experiment embeds: its documents and queries, once per encoder.

    Args:
        experiment: its file.
        limited: whether dollars are limited: then every price must be known.
        allow_code: whether the experiment may name code that is run.

    Raises:
        InputError: a problem of the experiment, its data or its environment; or it has
            no encoder, or one that reads passages with their documents.
    """
    built = build(load(experiment, allow_code=allow_code))
    problems = _missing(built.retrievers, limited=limited)
    problems += _read_with_documents(built.retrievers)
    encoder_queries = _encoder_queries(built)
    if not encoder_queries:
        message = "has no encoder"
        problems = [Problem(str(experiment), message, "nothing is to be embedded")]
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
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
    return tasks + [queries.as_task() for queries in encoder_queries]


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


def _encoder_queries(built: BuiltExperiment) -> list[EncoderQueries]:
    """The distinct encoders of queries, each with what its retrievers search with."""
    by_fingerprint: dict[str, EncoderQueries] = {}
    for retriever in built.retrievers:
        queries: dict[str, IdentifiedText] = {}
        for query in retriever.conversation_queries(built.dataset.queries):
            queries.setdefault(query.text, IdentifiedText(query.id, query.text))
        for dense in retriever.dense_parts:
            config = retriever.model_configs[id(dense.encoder)]
            texts = by_fingerprint.setdefault(
                dense.encoder.fingerprint_for("query"),
                EncoderQueries(dense.encoder, config),
            )
            texts.queries.update(queries | texts.queries)
    return list(by_fingerprint.values())


def _read_passages(dataset: Dataset, choice: PassageChoice) -> Iterator[IdentifiedText]:
    """Read a corpus as a retriever cuts it."""
    verified: set[str] | None = None
    if choice.verification:
        passages = passages_of(dataset.documents(), choice.chunks)
        verified = set(verification_texts(passage.content for passage in passages))
    for passage in passages_of(dataset.documents(), choice.chunks):
        if verified is None or passage.content in verified:
            yield IdentifiedText(passage.id, passage.content)
