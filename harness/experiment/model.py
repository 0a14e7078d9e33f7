"""The experiment as data: frozen tables, checked as they are made."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, model_validator

from harness.experiment.options import Kind, Strict
from harness.measures import Measure
from retrievers.errors import did_you_mean

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]


class DatasetTable(Strict):
    """Which data set, and which part of it."""

    path: str
    split: str | None = None
    queries: str | tuple[str, ...] | None = None
    """The query files in it; several are asked as one set."""
    format: str | None = None
    documents: str | None = None
    """A file of documents, or a folder of them."""
    labels: str | None = None
    """A file of labels."""
    columns: dict[str, str] = Field(default_factory=dict)
    """What the columns of tables are called."""
    match: str | tuple[str, ...] | None = None
    """The fields by which labels name documents."""
    exclude_self: bool = False
    """Whether a document with a query's id is kept out of that query's answers."""


class Relevance(Strict):
    """How labels become grades and gains."""

    grades: Literal["linear", "binary", "reciprocal", "explicit"] | tuple[tuple[int, int], ...] | None = None
    """A rule, or buckets: pairs of the last place and the grade down to it, `[[1, 3], [3, 2], [10, 1]]`. Left out:
    explicit where the data has grades, else linear."""
    gain: Literal["linear", "exponential"] = "linear"
    ideal: Literal["judged", "retrieved"] = "judged"
    dangling: Literal["error", "drop"] = "error"


class Statistics(Strict):
    """Which test decides, and how strict it is."""

    test: Literal["wilcoxon", "randomization", "t", "sign"] = "wilcoxon"
    zeros: Literal["wilcox", "pratt"] = "wilcox"
    correction: Literal["holm", "hommel", "bonferroni", "bh", "tukey"] = "holm"
    alpha: float = Field(default=0.05, gt=0, lt=1)
    margin: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    interval: Literal["t", "bca"] = "t"


class Latency(Strict):
    """How the time of a single query is measured."""

    sample: int = Field(ge=1)


class Chunk(Strict):
    """Passages of at most `size` characters, each beginning `overlap` characters before the end of the last."""

    size: int = Field(ge=1)
    overlap: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _moves_on(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError(f"an overlap of {self.overlap} is not below the size, {self.size}")
        return self


class Block(Strict):
    """One `[[retrievers]]` table."""

    name: Name
    rerank: Kind | None = None


class Dense(Block):
    """Nearest neighbours by cosine in one collection of vectors."""

    kind: Literal["dense"] = "dense"
    encoder: Kind
    store: dict[str, Any] = Field(default_factory=dict)
    """The options of the store; a string is short for { location = … }."""
    chunk: Chunk | None = None
    """Cut long documents into passages; a document is worth its best one."""


class Standalone(Block):
    """A whole retriever that indexes and searches by itself, such as BM25 or one of another package."""

    kind: str
    options: dict[str, Any] = Field(default_factory=dict)
    """The keyword arguments of its class, defaults filled in; they stand beside `kind` in the file."""


class Fusion(Block):
    """Reciprocal rank fusion of other retrievers."""

    kind: Literal["fusion"] = "fusion"
    of: tuple[str, ...] = Field(min_length=2)
    constant: float = Field(default=60, gt=0)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        twice = [name for name in dict.fromkeys(self.of) if self.of.count(name) > 1]
        if twice:
            raise ValueError(f"{', '.join(map(repr, twice))} stands twice in `of`; name each retriever once")
        return self


class Reranked(Block):
    """Another retriever, its first hits put into a better order."""

    kind: Literal["rerank"] = "rerank"
    of: str
    rerank: Kind


KINDS: dict[str, type[Block]] = {"dense": Dense, "fusion": Fusion, "rerank": Reranked}
"""Blocks that the harness makes; any other kind is a whole retriever."""


class Experiment(Strict):
    """One question, fixed before the run: data, retrievers, measures, tests."""

    name: Name
    dataset: DatasetTable
    primary: str
    baseline: str | None = None
    measures: tuple[str, ...] = Field(min_length=1)
    depth: int = Field(default=100, ge=1)
    seed: int = 0
    relevance: Relevance = Relevance()
    statistics: Statistics = Statistics()
    latency: Latency | None = None
    retrievers: tuple[SerializeAsAny[Block], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [block.name for block in self.retrievers]
        for number, name in enumerate(names):
            alike = [other for other in names[:number] if other.lower() == name.lower()]
            if alike:
                twice = f"{name!r} stands twice" if name in alike else f"{alike[0]!r} and {name!r} differ by case only"
                raise ValueError(f"retriever names: {twice}; names must differ by more than case")
        if self.baseline is not None and self.baseline not in names:
            raise ValueError(f"baseline {self.baseline!r} is no retriever; {did_you_mean(self.baseline, names)}")
        self._check_graph(names)
        return self

    def _check_graph(self, names: list[str]) -> None:
        done: set[str] = set()
        waiting = {block.name: set(inputs(block)) for block in self.retrievers}
        for name, of in waiting.items():
            for other in of - set(names):
                raise ValueError(f"retriever {name!r} is made of unknown {other!r}; {did_you_mean(other, names)}")
        while waiting:
            ready = {name for name, of in waiting.items() if of <= done}
            if not ready:
                raise ValueError(f"retrievers are made of each other in a circle: {', '.join(waiting)}")
            done |= ready
            waiting = {name: of for name, of in waiting.items() if name not in ready}

    def resolved(self) -> dict[str, Any]:
        """The experiment with every default filled in, as the manifest keeps it."""
        dumped = self.model_dump(mode="json")
        for table, block in zip(dumped["retrievers"], self.retrievers, strict=True):
            if isinstance(block, Dense):
                table["encoder"] = block.encoder.written()
            if isinstance(block, Standalone):
                table.update(table.pop("options"))
            if block.rerank is not None:
                table["rerank"] = block.rerank.written()
        return dumped


def inputs(block: Block) -> tuple[str, ...]:
    """The names of the retrievers that a block is made of."""
    match block:
        case Fusion():
            return block.of
        case Reranked():
            return (block.of,)
    return ()


class Question(NamedTuple):
    """An experiment with its measures parsed."""

    experiment: Experiment
    measures: tuple[Measure, ...]
    """What is measured, `[relevance]` filled in; each once."""
    primary: Measure
    """The measure that decides, one of them."""
