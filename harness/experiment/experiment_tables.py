"""Tables of an experiment that are not about retrievers.

The docstrings of classes and keys are what the schema says.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from harness.experiment.class_options import PartConfig, options_model
from harness.experiment.raw_table import RawTable
from harness.experiment.retriever_config import EncoderField, check_vector_form
from harness.stats.settings import Looks, Statistics
from retrievers.errors import InputError, Problem
from retrievers.options.tables import (
    PASS_NAMED_OBJECT,
    StrictTable,
    as_validation_error,
    key_path,
    validated,
)

MIN_ALPHA = 0.0001
"""Drawn p-values have steps of 0.00001: a smaller level would rest on a few draws."""
MAX_ALPHA = 0.5
"""An interval of less than 50 % confidence says nothing."""
_SERVICE_KEYS = (
    "base_url",
    "key_name",
    "longest",
    "concurrency",
    "rpm",
    "tpm",
    "input_price",
    "output_price",
)
_REFUSED_KEYS = {
    "lexical": ("model", *_SERVICE_KEYS),
    "nli": _SERVICE_KEYS,
    "openai": ("threshold",),
}
"""Kind of judge -> keys of other kinds, which are refused for it."""


class DatasetConfig(StrictTable):
    """Which data set, and which part of it."""

    path: Annotated[str, PASS_NAMED_OBJECT]
    """A folder, a zip archive or a file; or a name: hf:NAME@REVISION of the hub,
    irds:NAME of ir_datasets."""
    split: str | None = None
    """Name of the judgments' split; by default the only one, else test."""
    queries: str | tuple[str, ...] | None = None
    """The file of queries, or several asked as one set; left out, queries.* or
    questions.*."""
    format: str | None = None
    """The reader; left out, seen from what is there."""
    documents: str | None = None
    """A table of documents, or a folder of them; left out, documents.* or corpus.*."""
    labels: str | None = None
    """The table of labels; left out, labels.*, qrels.* or judgments.*, else the
    queries' own."""
    columns: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """What columns of tables are called: { text = "body", relevant = "answers" };
    several that together name a document as a list: { label_document = ["file", "page"]
    }, with match = ["file", "page"]."""
    header: bool | None = None
    """Whether the first row of a table names its columns; without, they are called 1,
    2, … in `columns`."""
    match: str | tuple[str, ...] | None = None
    """The field, or fields, by which labels name documents, such as page; left out,
    their ids."""
    gitignore: bool = False
    """Skip what .gitignore names, and node_modules, in the folder of documents."""
    where: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """The rows that are labels: { action_name = "click" }; left out, all."""
    pages: bool = False
    """Each page of a PDF is a document, house.pdf#3 the third of house.pdf."""
    exclude_self: bool = False
    """Keep the document that has a query's id out of that query's answers."""


class RelevanceConfig(StrictTable):
    """How labels become grades and gains."""

    grades: (
        Literal["linear", "binary", "reciprocal", "explicit"]
        | tuple[tuple[int, int], ...]
        | None
    ) = None
    """A rule, or buckets: pairs of the last place and the grade down to it, `[[1, 3],
    [3, 2], [10, 1]]`. Left out: explicit where the data has grades, else linear."""
    gain: Literal["linear", "exponential"] = "linear"
    """The grade itself, or 2^grade - 1."""
    ideal: Literal["judged", "retrieved"] = "judged"
    """What nDCG is divided by: the best order of all judged documents, or of those
    retrieved."""
    dangling: Literal["error", "drop"] = "error"
    """What to do with labels of documents or queries that do not exist."""


class JudgeConfig(StrictTable):
    """Who decides whether a text entails a claim."""

    kind: Literal["lexical", "nli", "openai"] = "lexical"
    """Words alone (weak, offline), a local model of natural language inference, or a
    chat model."""
    model: str = ""
    """A name of the hub or a folder (nli); a name that the endpoint knows (openai)."""
    base_url: str = ""
    """An OpenAI-compatible endpoint; left out, OPENAI_BASE_URL, else OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for
    OpenAI's server and that of OPENAI_BASE_URL, none for others."""
    threshold: float | None = Field(default=None, gt=0, le=1)
    """lexical: the share of a claim's distinct words that a text must hold, 0.8 if left
    out; nli: the least probability, 0.5 if left out."""
    longest: int | None = Field(default=None, ge=100)
    """openai: tokens of a text that the model is shown, as estimated, 8,000 if left
    out; the rest is cut off, and counted."""
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
    encoder: EncoderField | None = None
    """What answer relevancy compares questions by."""

    @field_validator("encoder")
    @classmethod
    def _compares_by_cosine(cls, encoder: PartConfig | None) -> PartConfig | None:
        with as_validation_error():
            if encoder is not None:
                check_vector_form(encoder.kind, Literal["dense"])
        return encoder

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> Self:
        if self.kind != "lexical" and not self.model:
            raise ValueError(f"a judge of kind {self.kind!r} needs a model")
        keys = [
            key
            for key in _REFUSED_KEYS[self.kind]
            if getattr(self, key) != type(self).model_fields[key].default
        ]
        if keys:
            raise ValueError(
                f"{', '.join(keys)} has no effect on a judge of kind {self.kind!r}"
            )
        return self


class BudgetConfig(StrictTable):
    """How the tokens of a context are counted, for measures such as R(tokens=2000)."""

    tokenizer: str = ""
    """A tokenizer.json, a model's folder, or a model whose files are on this machine;
    left out, words times 4/3, rounded up for each passage."""


class LatencyConfig(StrictTable):
    """How the time of a single query is measured.

    Without this table it is measured of retrievers that answer on this machine for
    nothing, at most 10 seconds each; with it of all.
    """

    sample: int = Field(default=20, ge=0)
    """So many queries are sent one at a time, the cache bypassed; 0: none."""


class StoredVectorsConfig(StrictTable):
    """Vectors that were embedded elsewhere, by `harness embed`."""

    location: str = Field(alias="from")
    """A folder, or a URL (`s3://…`, `gs://…`, what fsspec opens): read before anything
    is embedded."""


def parse_statistics(table: Mapping[str, Any], where: str) -> Statistics:
    """Check `[statistics]`.

    Args:
        table: the table.
        where: comes before the key in each problem.

    Raises:
        InputError: with the problems of the first check that finds any: of the looks,
            of keys and types, of alpha, of other values.
    """
    raw_table = RawTable(table)
    raw_looks = raw_table.table("looks")
    if raw_looks:
        looks_path = key_path(where, ["looks"])
        looks = validated(options_model(Looks), raw_looks.options, looks_path)
        raw_table = raw_table.with_options(looks=Looks(**looks.model_dump()))
    checked = validated(options_model(Statistics), raw_table.options, where)
    alpha = checked.model_dump()["alpha"]
    if not MIN_ALPHA <= alpha <= MAX_ALPHA:
        problem = f"{alpha} is not between {MIN_ALPHA} and {MAX_ALPHA}"
        raise InputError(Problem(key_path(where, ["alpha"]), problem, "0.05 is usual"))
    try:
        return Statistics(
            **{name: getattr(checked, name) for name in type(checked).model_fields}
        )
    except InputError as error:
        raise InputError(
            [_under_key(problem, where) for problem in error.problems]
        ) from None


def _under_key(problem: Problem, where: str) -> Problem:
    """Return a problem of an option with the path of its key."""
    # It is called "[statistics] margin", say.
    option = problem.where.split()[-1:]
    return problem._replace(where=key_path(where, option))


class SweepConfig(StrictTable):
    """Many configurations of one retriever; every key but these two is an axis with the
    list of its values.
    """  # noqa: D205  (the schema has this sentence)

    model_config = ConfigDict(extra="allow")

    default: str
    """The retriever in use today, with which every configuration is compared."""
    of: str | tuple[str, ...]
    """The retriever, or retrievers, whose configurations are tried."""


class Sweep(StrictTable):
    """A sweep, written out by `expand_sweep`: no file has this form."""

    default: str
    """The retriever in use today."""
    of: tuple[str, ...]
    """The retrievers whose configurations are tried."""
    axes: dict[str, tuple[Any, ...]] = Field(min_length=1)
    """Axis -> its values."""
    configurations: dict[str, dict[str, int]]
    """Configuration -> axis -> the place of its value there; axis "of", if there are
    several, is its retriever."""
