"""The experiment as data: frozen tables, checked key by key as they are made."""

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from harness.experiment import blocks
from harness.experiment.blocks import (
    KINDS,
    Block,
    Conversation,
    EncoderTable,
    Name,
    check_form,
    inputs,
)
from harness.experiment.option_tables import (
    Kind,
    options_of,
    read_as,
    secrets,
    too_large,
    unset,
    walk,
)
from harness.experiment.variants import Sweep, SweepTable, written_out
from harness.measures import Measure
from harness.retired import retired_in
from harness.stats.settings import Looks, Statistics, without_retired
from retrievers import (
    ENCODERS,
    RERANKERS,
    RETRIEVERS,
    STORES,
    retriever_kinds,
    store_kinds,
)
from retrievers.errors import InputError, Problem, collecting, did_you_mean
from retrievers.options import KEEPS_OBJECT, Strict, as_validation_error, below, checked

RESERVED = "dataset"
"""What no retriever may be called: the manifest's ledger has the data set beside the retrievers."""


class DatasetTable(Strict):
    """Which data set, and which part of it."""

    path: Annotated[str, KEEPS_OBJECT]
    """A folder, a zip archive or a file; or a name: hf:NAME@REVISION of the hub, irds:NAME of ir_datasets."""
    split: str | None = None
    """Which file or part of judgments; left out, the only one, else test."""
    queries: str | tuple[str, ...] | None = None
    """The file of queries, or several asked as one set; left out, queries.* or questions.*."""
    format: str | None = None
    """The reader; left out, seen from what is there."""
    documents: str | None = None
    """A table of documents, or a folder of them; left out, documents.* or corpus.*."""
    labels: str | None = None
    """The table of labels; left out, labels.*, qrels.* or judgments.*, else the queries' own."""
    columns: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """What columns of tables are called: { text = "body", relevant = "answers" }; several that together name a document
    as a list: { label_document = ["file", "page"] }, with match = ["file", "page"]."""
    header: bool | None = None
    """Whether the first row of a table names its columns; without, they are called 1, 2, … in `columns`."""
    match: str | tuple[str, ...] | None = None
    """The field, or fields, by which labels name documents, such as page; left out, their ids."""
    exclude_self: bool = False
    """Keep the document that has a query's id out of that query's answers."""


class Relevance(Strict):
    """How labels become grades and gains."""

    grades: (
        Literal["linear", "binary", "reciprocal", "explicit"]
        | tuple[tuple[int, int], ...]
        | None
    ) = None
    """A rule, or buckets: pairs of the last place and the grade down to it, `[[1, 3], [3, 2], [10, 1]]`. Left out:
    explicit where the data has grades, else linear."""
    gain: Literal["linear", "exponential"] = "linear"
    """The grade itself, or 2^grade - 1."""
    ideal: Literal["judged", "retrieved"] = "judged"
    """What nDCG is divided by: the best order of all judged documents, or of those retrieved."""
    dangling: Literal["error", "drop"] = "error"
    """What to do with labels of documents or queries that do not exist."""


class JudgeOptions(Strict):
    """Who decides whether a text entails a claim."""

    kind: Literal["lexical", "nli", "openai"] = "lexical"
    """Words alone (weak, offline), a local model of natural language inference, or a chat model."""
    model: str = ""
    """A name of the hub or a folder (nli); a name that the endpoint knows (openai)."""
    base_url: str = ""
    """An OpenAI-compatible endpoint; left out, OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for OpenAI's server."""
    threshold: float | None = Field(default=None, gt=0, le=1)
    """lexical: the share of a claim's distinct words that a text must hold, 0.8 if left out; nli: the least
    probability, 0.5 if left out."""
    longest: int | None = Field(default=None, ge=100)
    """openai: tokens of a text that the model is shown, as estimated, 8,000 if left out; the rest is cut off,
    and counted."""
    concurrency: int = Field(default=4, ge=1)
    """Requests at once."""
    rpm: float = Field(default=0, ge=0)
    """Requests a minute that the endpoint allows; 0: unknown."""
    tpm: float = Field(default=0, ge=0)
    """Tokens a minute that the endpoint allows; 0: unknown."""
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars for a million tokens sent."""
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars for a million tokens received."""
    encoder: EncoderTable | None = None
    """What answer relevancy compares questions by."""

    @field_validator("encoder")
    @classmethod
    def _compares_by_cosine(cls, encoder: Kind | None) -> Kind | None:
        with as_validation_error():
            if encoder is not None:
                check_form(encoder, Literal["dense"])
        return encoder

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> Self:
        if self.kind != "lexical" and not self.model:
            raise ValueError(f"a judge of kind {self.kind!r} needs a model")
        without_effect = {
            "lexical": (
                "model",
                "base_url",
                "key_name",
                "longest",
                "input_price",
                "output_price",
            ),
            "nli": ("base_url", "key_name", "longest", "input_price", "output_price"),
            "openai": ("threshold",),
        }[self.kind]
        if given := [
            key for key in without_effect if getattr(self, key) not in ("", None)
        ]:
            raise ValueError(
                f"{', '.join(given)} has no effect on a judge of kind {self.kind!r}"
            )
        return self


class LatencyOptions(Strict):
    """How the time of a single query is measured."""

    sample: int = Field(ge=1)
    """So many queries are asked one at a time, the cache bypassed."""


class StoredVectors(Strict):
    """Vectors that were embedded elsewhere, by `harness embed`."""

    location: str = Field(alias="from")
    """A folder, or a URL (`s3://…`, `gs://…`, what fsspec opens): read before anything is embedded."""


LEAST_ALPHA, MOST_ALPHA = 0.0001, 0.5


def statistics_of(table: Mapping[str, Any], where: str) -> Statistics:
    """Check `[statistics]`; raises InputError with every problem."""
    given = without_retired(table)
    if isinstance(given.get("looks"), Mapping):
        given["looks"] = Looks(
            **checked(
                options_of(Looks), given["looks"], below(where, ["looks"])
            ).model_dump()
        )
    known = checked(options_of(Statistics), given, where)
    alpha: float = getattr(known, "alpha", LEAST_ALPHA)
    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        what = f"{alpha} is not between {LEAST_ALPHA} and {MOST_ALPHA}"
        raise InputError(Problem(below(where, ["alpha"]), what, "0.05 is usual"))
    try:
        return Statistics(
            **{name: getattr(known, name) for name in type(known).model_fields}
        )
    except InputError as error:
        raise InputError(
            [
                p._replace(where=below(where, p.where.split()[-1:]))
                for p in error.problems
            ]
        ) from None


class Experiment(Strict):
    """One question, fixed before the run: data, retrievers, measures, tests.

    >>> from harness.experiment import parse
    >>> words = {"name": "words", "kind": "bm25"}
    >>> made = parse({"name": "one", "dataset": "data", "primary": "RR", "measures": ["RR"], "retrievers": [words]})
    >>> made.primary, made.depth
    ('RR', 100)
    """

    name: Name
    """Of the results folder: letters, digits, full stops, hyphens, underscores; at most 64."""
    dataset: Annotated[DatasetTable, read_as(str | DatasetTable, "path")]
    """A folder, or a table that says more; relative to the working directory, else to the nearest folder above this
    file that has it. Or a list of them, several data sets: a table may have a `name` there."""
    primary: Annotated[str, KEEPS_OBJECT]
    """The measure that decides, one of `measures`."""
    baseline: str | None = None
    """The retriever with which each other one is compared; left out, all pairs."""
    measures: tuple[Annotated[str, KEEPS_OBJECT], ...] = Field(default=(), min_length=1)
    """What is measured, such as nDCG@10; left out, the primary measure alone."""
    depth: int = Field(default=100, ge=1)
    """Hits kept per query."""
    seed: int = 0
    """Of every random draw."""
    relevance: Relevance = Relevance()
    """What a label is worth."""
    statistics: Statistics = Statistics()
    """Which test decides, and how strict it is."""
    judge: JudgeOptions | None = None
    """Who decides whether a text entails a claim: for measures by claims, and for answers."""
    latency: LatencyOptions | None = None
    """Whether single queries are timed."""
    vectors: StoredVectors | None = None
    """Where vectors are that were embedded elsewhere."""
    conversation: Conversation = Field(default=Conversation(), exclude=True)
    """What retrievers search with in a conversation; a retriever may have a table of its own."""
    sweep: Annotated[Sweep, read_as(SweepTable)] | None = None
    """Many configurations of a retriever, one of which is to be chosen."""
    report: bool = True
    """Whether a run writes the report: `harness report` writes it later all the same, and no figure depends on it."""
    retrievers: tuple[Annotated[SerializeAsAny[Block], blocks.BlockUnion()], ...] = (
        Field(min_length=1)
    )
    """What is compared, in the order of the tables."""

    @model_validator(mode="before")
    @classmethod
    def _primary_is_measured(cls, tables: Any) -> Any:
        if (
            isinstance(tables, Mapping)
            and "primary" in tables
            and "measures" not in tables
        ):
            return {**tables, "measures": (tables["primary"],)}
        return tables

    @field_validator("statistics", mode="before")
    @classmethod
    def _statistics_make_sense(cls, table: object) -> object:
        with as_validation_error():
            return statistics_of(table, "") if isinstance(table, Mapping) else table

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [block.name for block in self.retrievers]
        if RESERVED in names:
            raise ValueError(
                f"retriever name {RESERVED!r} is used for the data set in manifest.json; choose another"
            )
        for number, name in enumerate(names):
            alike = [other for other in names[:number] if other.lower() == name.lower()]
            if alike:
                twice = (
                    f"{name!r} occurs twice"
                    if name in alike
                    else f"{alike[0]!r} and {name!r} differ by case only"
                )
                raise ValueError(
                    f"retriever names: {twice}; names must differ by more than case"
                )
        if self.sweep is not None:
            default = self.sweep.default
            if default not in names:
                raise ValueError(
                    f"sweep.default {default!r} is not a retriever; {did_you_mean(default, names)}"
                )
            if self.baseline != default:
                what = f"baseline {self.baseline!r} is not sweep.default"
                raise ValueError(f"{what}: leave the baseline out, or name it there")
            if not set(self.sweep.cells) - {default}:
                raise ValueError(
                    "sweep: the default is its only configuration; name more values"
                )
        if self.baseline is not None and self.baseline not in names:
            raise ValueError(
                f"baseline {self.baseline!r} is not a retriever; {did_you_mean(self.baseline, names)}"
            )
        self._check_graph(names)
        return self

    def _check_graph(self, names: list[str]) -> None:
        uses = {block.name: inputs(block) for block in self.retrievers}
        for name, other in (
            (name, other)
            for name, of in uses.items()
            for other in of
            if other not in names
        ):
            raise ValueError(
                f"retriever {name!r} uses unknown {other!r}; {did_you_mean(other, names)}"
            )
        try:
            TopologicalSorter(uses).prepare()
        except CycleError as error:
            raise ValueError(
                f"retrievers use each other in a circle: {', '.join(error.args[1])}"
            ) from None

    def resolved(self) -> dict[str, Any]:
        """The experiment with every default filled in, as the manifest keeps it."""
        return self.model_dump(mode="json", by_alias=True)


class Question(NamedTuple):
    """An experiment with its measures parsed."""

    experiment: Experiment
    measures: tuple[Measure, ...]
    """What is measured, `[relevance]` filled in; each once."""
    primary: Measure
    """The measure that decides, one of them."""


def parse(written: Mapping[str, Any], *, code: bool = True) -> Experiment:
    """Check the tables of an experiment and the variables that they name; raises InputError with every problem."""
    if gone := list(retired_in(written)):
        raise InputError(gone)
    problems = [*secrets(written), *unset(written), *too_large(written)]
    tables = dict(written)
    judge = tables.get("judge")
    if (
        not code
        and isinstance(judge, Mapping)
        and (runs := code_of({"encoder": judge.get("encoder")}))
    ):
        problems.append(_refused("judge", runs))
        tables["judge"] = {
            key: value for key, value in judge.items() if key != "encoder"
        }
    made: list[Block] = []
    entries = tables.get("retrievers", [])
    configurations: list[tuple[str, dict[str, Any]]] = []
    if "sweep" in tables:
        from harness.experiment.sweep import (
            swept,
        )  # a wing: an experiment without a sweep needs none of it

        sweep = tables.pop("sweep")
        with collecting(problems):  # the rest of the file is checked all the same
            tables, configurations = swept({**tables, "sweep": sweep})
    given = list(written_out(entries if isinstance(entries, list) else ["no table"]))
    for place, entry in (*given, *configurations):
        if "conversation" in tables and isinstance(entry, Mapping):
            entry = {"conversation": tables["conversation"], **entry}
        with collecting(problems):
            if not code and (runs := code_of(entry)):
                raise InputError(_refused(place, runs))
            made.append(_block(entry, place))
            continue
        # Its name still counts: others may use it, and the rest of the file is checked all the same.
        name = entry.get("name") if isinstance(entry, Mapping) else None
        made += (
            [Block(name=name)]
            if isinstance(name, str) and re.fullmatch(blocks.SWEPT, name)
            else []
        )
    try:
        experiment = checked(Experiment, {**tables, "retrievers": made}, "")
    except (
        InputError
    ) as error:  # that one is needed is no news where the only one is refused
        problems.extend(
            one
            for one in error.problems
            if made or not given or one.where != "retrievers"
        )
    if problems:  # once, although several retrievers may be written out from one table
        raise InputError(list(dict.fromkeys(problems)))
    return experiment


def _refused(where: str, runs: str) -> Problem:
    return Problem(
        where,
        f"runs code: {runs}",
        "--no-code refuses it; look at that code, then run without the option",
    )


def _block(entry: object, where: str) -> Block:
    if not isinstance(entry, Mapping):
        raise InputError(
            Problem(
                "retrievers",
                "is not a list of tables",
                "write each under [[retrievers]]",
            )
        )
    kind = _kind_in(entry, where)
    if kind not in ("fusion", "rerank"):
        return checked(
            blocks.KINDS.get(kind, blocks.CustomConfig), {**entry, "kind": kind}, where
        )
    of = entry.get("of")
    several = list(of) if isinstance(of, list | tuple) else [of]
    parts = [
        _block({"name": f"part-{number}", **part}, f"{where}.of[{number}]")
        if isinstance(part, Mapping)
        else part
        for number, part in enumerate(several)
    ]
    made = (
        {}
        if of is None
        else {"of": parts if isinstance(of, list | tuple) else parts[0]}
    )
    return checked(blocks.KINDS[kind], {**entry, **made, "kind": kind}, where)


def _kind_in(entry: Mapping[str, Any], where: str) -> str:
    """The kind of a retriever, which must be known."""
    kind = entry.get("kind") or (
        "dense" if "encoder" in entry else "rerank" if "rerank" in entry else None
    )
    if isinstance(kind, str) and kind in blocks.KINDS:
        return kind
    foreign = retriever_kinds()
    if not isinstance(kind, str) or kind not in foreign:
        what = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
        raise InputError(
            Problem(
                where, what, did_you_mean(str(kind or ""), {*blocks.KINDS, *foreign})
            )
        )
    return kind


CODED = {
    "": {*KINDS, *RETRIEVERS},
    "of": {*KINDS, *RETRIEVERS},
    "encoder": ENCODERS,
    "rerank": RERANKERS,
    "chunk": (),
}
"""Table within a retriever's, "" for its own -> the kinds of it that come with the harness."""


def code_of(entry: object) -> str:
    """Return which code a retriever's table makes run; "" for none. Nothing is imported.

    >>> code_of({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    for place, one in walk(entry):
        path = re.sub(r"\[\d+\]", "", place)
        name, before = path.rpartition(".")[2], f"{place}." if place else ""
        kind = one.get("kind") if isinstance(one, Mapping) else None
        if isinstance(one, Mapping) and name in CODED:
            if kind == "python" or (name == "chunk" and one.get("call")):
                return f"{before}call = {one.get('call')}"
            if isinstance(kind, str) and kind not in CODED[name]:
                return f"{before}kind = {kind}, of another package"
            if one.get("trust_remote_code"):
                return f"{before}trust_remote_code"
        scheme = (
            one.partition("://")[0]
            if isinstance(one, str) and re.search(r"\bstore(\.location)?$", path)
            else ""
        )
        if scheme not in STORES and scheme in store_kinds():
            return f"store = {one}, of another package"
    return ""
