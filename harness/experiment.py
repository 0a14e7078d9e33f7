"""The experiment file: TOML in, a frozen and fully checked Experiment out."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, model_validator

from harness import measures
from harness.dataset import DatasetReference
from harness.measures import Measure
from harness.options import Kind, Strict, checked, kind_of, options_of
from retrievers import encoder_class, reranker_class
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.stores import StoreOptions

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET_KEY = re.compile(r"(api_?key|secret|password|passwd|token|credential)s?$", re.IGNORECASE)
PASSWORD_IN_URL = re.compile(r"://[^/@\s:]*:[^/@\s]+@")
Name = Annotated[str, Field(pattern=NAME)]


class DatasetTable(Strict):
    """Which data set, and which part of it."""

    path: str
    split: str | None = None
    queries: str | tuple[str, ...] | None = None
    """The query files in it; several are asked as one set."""
    format: str | None = None


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


class BM25(Block):
    """Okapi BM25."""

    kind: Literal["bm25"] = "bm25"
    k1: float = Field(default=0.9, ge=0)
    b: float = Field(default=0.4, ge=0, le=1)
    stemming: str = ""


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


KINDS: dict[str, type[Block]] = {"dense": Dense, "bm25": BM25, "fusion": Fusion, "rerank": Reranked}


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


class Loaded(NamedTuple):
    """An experiment, what was written for it, and where its data set lies."""

    question: Question
    written: Mapping[str, Any]
    path: Path
    dataset: DatasetReference

    @property
    def experiment(self) -> Experiment:
        """The experiment itself."""
        return self.question.experiment


def load(path: str | Path) -> Loaded:
    """Read and check an experiment file.

    Raises:
        InputError: with every problem that was found, each with its key.
    """
    path = Path(path)
    try:
        written = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        remedy = "give the path of an experiment, a .toml file"
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}", remedy)) from None
    except UnicodeDecodeError:
        raise InputError(Problem(str(path), "is not UTF-8", "save the file as UTF-8")) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(Problem(str(path), f"is not TOML: {error}")) from None
    try:
        question = question_of(parse(written))
    except InputError as error:
        raise InputError([Problem(f"{path}: {p.where}" if p.where else f"{path}", p.what, p.remedy)
                          for p in error.problems]) from None  # fmt: skip
    return Loaded(question, written, path, locate(question.experiment.dataset, path))


def question_of(experiment: Experiment) -> Question:
    """Parse the measures, and the primary one among them.

    Raises:
        InputError: one is unknown, looks deeper than `depth`, or the primary measure is not among them.
    """
    relevance, problems = experiment.relevance, list[Problem]()
    named: list[Measure] = []
    for where, text in [("primary", experiment.primary), *(("measures", text) for text in experiment.measures)]:
        try:
            found = measures.parse_all([text], gain=relevance.gain, ideal=relevance.ideal)
        except InputError as error:
            problems += [Problem(f"{where}: {text!r}", p.what, p.remedy) for p in error.problems]
            continue
        if where == "measures" and found[0] in named[1:]:
            problems.append(Problem(where, f"{text} stands twice", "name each measure once"))
        named += found[:1] if where == "primary" else found
        if where == "measures" and (found[0].cutoff or 0) > experiment.depth:
            problems.append(Problem(where, f"{text} looks below depth {experiment.depth}", "raise depth"))
    primary, others = (named[0], named[1:]) if named else (None, [])
    if not problems and primary not in others:
        known = ", ".join(experiment.measures)
        problems.append(Problem("primary", f"{experiment.primary} is not among the measures", f"they are {known}"))
    if problems or primary is None:
        raise InputError(problems)
    return Question(experiment, tuple(dict.fromkeys(others)), primary)


def parse(written: Mapping[str, Any]) -> Experiment:
    """Check the tables of an experiment; raises InputError with every problem."""
    problems = [*_secrets(written), *_unset(written)]
    tables = dict(written)
    if isinstance(tables.get("dataset"), str):
        tables["dataset"] = {"path": tables["dataset"]}
    blocks: list[Block] = []
    entries = tables.pop("retrievers", [])
    for number, entry in enumerate(entries if isinstance(entries, list) else ["no table"]):
        try:
            blocks.append(_block(entry, f"retrievers[{number}]"))
        except InputError as error:
            problems.extend(error.problems)
            # Its name still counts: others may be made of it, and the rest of the file is checked all the same.
            name = entry.get("name") if isinstance(entry, Mapping) else None
            blocks += [BM25(name=name)] if isinstance(name, str) and re.match(NAME, name) else []
    try:
        tables["retrievers"] = blocks
        experiment = checked(Experiment, tables, "")
    except InputError as error:
        problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return experiment


def locate(table: DatasetTable, path: Path) -> DatasetReference:
    """Find the data set: relative to the working directory, else to the nearest parent of the file that has it."""
    tried = [Path(), *path.resolve().parents]
    found = next((folder / table.path for folder in tried if (folder / table.path).exists()), None)
    if found is None:
        remedy = "looked in the working directory and in every folder above the experiment"
        raise InputError(Problem(f"{path}: dataset", f"{table.path!r} does not exist", remedy))
    queries = (table.queries,) if isinstance(table.queries, str) else table.queries or ()
    return DatasetReference(found, table.split, queries, table.format)


def expanded(value: Any) -> Any:
    """Replace every `${NAME}` by the environment's value: only at the moment of use, never to be written down."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda found: os.environ[found[1]], value)
    if isinstance(value, Mapping):
        return {key: expanded(inner) for key, inner in value.items()}
    return value


def _block(entry: object, where: str) -> Block:
    if not isinstance(entry, Mapping):
        raise InputError(Problem("retrievers", "is no list of tables", "write each under [[retrievers]]"))
    kind = entry.get("kind") or ("dense" if "encoder" in entry else "rerank" if "rerank" in entry else None)
    if not isinstance(kind, str) or kind not in KINDS:
        what = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
        raise InputError(Problem(where, what, did_you_mean(str(kind or ""), KINDS)))
    table = {**entry, "kind": kind}
    if isinstance(table.get("store"), str):
        table["store"] = {"location": table["store"]}
    problems: list[Problem] = []
    if isinstance(table.get("store"), Mapping):
        try:
            table["store"] = checked(options_of(StoreOptions), table["store"], f"{where}.store").model_dump()
            StoreOptions(**table["store"])
        except InputError as error:
            problems.extend(error.problems)
    for key, find in (("encoder", encoder_class), ("rerank", reranker_class)):
        if key in table and key in KINDS[kind].model_fields:
            try:
                table[key] = kind_of(table[key], find, f"{where}.{key}")
            except InputError as error:
                problems.extend(error.problems)
                table[key] = Kind(kind="unknown", options={})
    try:
        block = checked(KINDS[kind], table, where)
    except InputError as error:
        problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return block


def _walk(value: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """Every string in nested tables: (its place, the key nearest to it, itself)."""
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        inner = ((f"{where}.{key}" if where else key, v) for key, v in value.items())
    elif isinstance(value, list | tuple):
        inner = ((f"{where}[{number}]", v) for number, v in enumerate(value))
    elif isinstance(value, str):
        yield where, where.rpartition(".")[2], value
    for place, v in inner:
        yield from _walk(v, place)


def _secrets(written: Mapping[str, Any]) -> Iterator[Problem]:
    for place, key, value in _walk(written, ""):
        plain = REFERENCE.sub("", value).strip()
        if (SECRET_KEY.search(key) and plain) or PASSWORD_IN_URL.search(plain):
            yield Problem(place, "a secret does not belong in a file", 'put it in the environment, write "${NAME}"')


def _unset(written: Mapping[str, Any]) -> Iterator[Problem]:
    for place, _, value in _walk(written, ""):
        for found in REFERENCE.finditer(value):
            if found[1] not in os.environ:
                yield Problem(place, f"${{{found[1]}}} is not set in the environment", f"export {found[1]}=…")
