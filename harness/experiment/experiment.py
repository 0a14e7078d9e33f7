"""The frozen experiment.

`parse` makes it of checked tables; here the names are compared: retrievers, baseline,
the sweep's default, and what retrievers use.
"""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Self

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from harness.experiment.class_options import shown_as
from harness.experiment.experiment_tables import (
    BudgetConfig,
    DatasetConfig,
    JudgeConfig,
    LatencyConfig,
    RelevanceConfig,
    StoredVectorsConfig,
    Sweep,
    SweepConfig,
    parse_statistics,
)
from harness.experiment.retriever_config import (
    ConversationConfig,
    RetrieverConfig,
    ValidName,
)
from harness.experiment.retriever_schema import RetrieverSchema
from harness.stats.settings import Statistics
from retrievers.errors import did_you_mean
from retrievers.options.tables import (
    PASS_NAMED_OBJECT,
    StrictTable,
    as_validation_error,
)

RESERVED_RETRIEVER_NAME = "dataset"
"""The name of the data set in the manifest, which no retriever may have."""


class Experiment(StrictTable):
    """One question, fixed before the run: data, retrievers, measures, tests.

    >>> from harness.experiment import parse_experiment
    >>> words = {"name": "words", "kind": "bm25"}
    >>> tables = {"name": "one", "dataset": "data", "retrievers": [words]}
    >>> experiment = parse_experiment(tables | {"primary": "RR", "measures": ["RR"]})
    >>> experiment.primary, experiment.depth
    ('RR', 100)
    """

    name: ValidName
    """Name of the results folder: letters, digits, full stops, hyphens, underscores; at
    most 64."""
    dataset: Annotated[DatasetConfig, shown_as(str | DatasetConfig, "path")]
    """A folder, or a table that says more; relative to the working directory, else to
    the nearest folder above this file that has it. Or a list of them, several data
    sets: a table may have a `name` there."""
    primary: Annotated[str, PASS_NAMED_OBJECT]
    """The measure that decides, one of `measures`."""
    baseline: str | None = None
    """The retriever with which each other one is compared; left out, all pairs."""
    measures: tuple[Annotated[str, PASS_NAMED_OBJECT], ...] = Field(
        default=(), min_length=1
    )
    """What is measured, such as nDCG@10; left out, the primary measure alone."""
    depth: int = Field(default=100, ge=1)
    """Hits kept per query."""
    seed: int = 0
    """Seed of every random draw."""
    relevance: RelevanceConfig = RelevanceConfig()
    """What a label is worth."""
    statistics: Statistics = Statistics()
    """Which test decides, and how strict it is."""
    judge: JudgeConfig | None = None
    """Who decides whether a text entails a claim: for measures by claims, and for
    answers."""
    latency: LatencyConfig | None = None
    """Whether single queries are timed."""
    budget: BudgetConfig | None = None
    """How the tokens of passages are counted; a table without keys keeps passages for
    measures that are named later."""
    vectors: StoredVectorsConfig | None = None
    """Where vectors are that were embedded elsewhere."""
    # Not stored: `parse` has written it into the table of each retriever.
    conversation: ConversationConfig = Field(default=ConversationConfig(), exclude=True)
    """What retrievers search with in a conversation; a retriever may have a table of
    its own."""
    sweep: Annotated[Sweep, shown_as(SweepConfig)] | None = None
    """Many configurations of a retriever, one of which is to be chosen."""
    report: bool = True
    """Whether a run writes the report: `harness report` writes it later all the same,
    and no figure depends on it."""
    retrievers: tuple[
        Annotated[SerializeAsAny[RetrieverConfig], RetrieverSchema()], ...
    ] = Field(min_length=1)
    """What is compared, in the order of the tables."""

    @model_validator(mode="before")
    @classmethod
    def _primary_is_measured(cls, tables: Any) -> Any:
        """Return the tables; without `measures`, the primary one alone is measured."""
        if not isinstance(tables, Mapping) or "measures" in tables:
            return tables
        if "primary" not in tables:
            return tables
        return {**tables, "measures": (tables["primary"],)}

    @field_validator("statistics", mode="before")
    @classmethod
    def _statistics_make_sense(cls, table: object) -> object:
        if not isinstance(table, Mapping):
            return table
        with as_validation_error():
            return parse_statistics(table, "")

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [retriever.name for retriever in self.retrievers]
        _check_distinct(names)
        if self.sweep is not None:
            self._check_sweep(self.sweep, names)
        if self.baseline is not None and self.baseline not in names:
            remedy = did_you_mean(self.baseline, names)
            raise ValueError(f"baseline {self.baseline!r} is not a retriever; {remedy}")
        self._check_graph(names)
        return self

    def _check_sweep(self, sweep: Sweep, names: list[str]) -> None:
        """Check that a sweep has a default, which is the baseline, and more values."""
        default = sweep.default
        if default not in names:
            remedy = did_you_mean(default, names)
            raise ValueError(f"sweep.default {default!r} is not a retriever; {remedy}")
        if self.baseline != default:
            problem = f"baseline {self.baseline!r} is not sweep.default"
            raise ValueError(f"{problem}: leave the baseline out, or name it there")
        if not set(sweep.configurations) - {default}:
            raise ValueError(
                "sweep: the default is its only configuration; name more values"
            )

    def _check_graph(self, names: list[str]) -> None:
        """Check that retrievers use retrievers of the experiment, in no circle."""
        uses = {config.name: config.used_names for config in self.retrievers}
        for user, used_names in uses.items():
            for used in used_names:
                if used not in names:
                    remedy = did_you_mean(used, names)
                    problem = f"retriever {user!r} uses unknown {used!r}"
                    raise ValueError(f"{problem}; {remedy}")
        try:
            TopologicalSorter(uses).prepare()
        except CycleError as error:
            circle = ", ".join(error.args[1])
            raise ValueError(
                f"retrievers use each other in a circle: {circle}"
            ) from None

    @property
    def retriever_names(self) -> list[str]:
        """The names of the retrievers, in the order of the file."""
        return [config.name for config in self.retrievers]

    def resolved(self) -> dict[str, Any]:
        """Return the experiment with all defaults, as the manifest stores it."""
        return self.model_dump(mode="json", by_alias=True)


def _check_distinct(names: list[str]) -> None:
    """Raise ValueError if a name is reserved, or two names differ only by case."""
    if RESERVED_RETRIEVER_NAME in names:
        raise ValueError(
            f"retriever name {RESERVED_RETRIEVER_NAME!r} is used for the data set "
            "in manifest.json; choose another"
        )
    for number, name in enumerate(names):
        alike = [other for other in names[:number] if other.lower() == name.lower()]
        if not alike:
            continue
        problem = f"{alike[0]!r} and {name!r} differ by case only"
        if name in alike:
            problem = f"{name!r} occurs twice"
        raise ValueError(
            f"retriever names: {problem}; names must differ by more than case"
        )
