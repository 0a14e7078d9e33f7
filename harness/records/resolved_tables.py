"""The check of each table of a resolved experiment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import tomli_w
from pydantic import AfterValidator, BaseModel, Field, PlainValidator

from harness.experiment import (
    NAME_PATTERN,
    SWEPT_NAME,
    BudgetConfig,
    DatasetConfig,
    LatencyConfig,
    RelevanceConfig,
    Sweep,
    parse_statistics,
)
from harness.measures import parse_measure
from harness.records.jsonl import parse_record
from retrievers.errors import InputError
from retrievers.options.tables import validated

ExperimentName = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A name that cannot be the path of another folder."""
RetrieverName = Annotated[str, Field(pattern=SWEPT_NAME)]
"""The same for a retriever, which may be one of a sweep."""
ExperimentTable = Mapping[str, Any]
"""A table of an experiment file."""


@dataclass(frozen=True, slots=True)
class UsedPart:
    """The keys of a part without a name that are read back."""

    of: UsedRetrievers = None


UsedRetrievers = str | UsedPart | list["str | UsedPart"] | None
"""The key `of` of a retriever's table."""


@dataclass(frozen=True, slots=True)
class RetrieverKeys:
    """The keys of a retriever's table that are read back.

    Its other options depend on packages that need not be installed here.
    """

    name: RetrieverName
    kind: str
    of: UsedRetrievers = None
    encoder: ExperimentTable | None = None
    rerank: ExperimentTable | None = None
    chunk: ExperimentTable | None = None


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Turn an InputError inside into a ValueError, which pydantic names the key of."""
    try:
        yield
    except InputError as error:
        raise ValueError("; ".join(map(str, error.problems))) from None


def _parse_model(model: type[BaseModel], table: object) -> BaseModel | None:
    """Return a table as a model, with its defaults; None for no table."""
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise ValueError(f"is {table!r:.40}, not a table")
    with _as_value_errors():
        return validated(model, table, "")


def _check_statistics(table: ExperimentTable) -> ExperimentTable:
    with _as_value_errors():
        parse_statistics(table, "")
    return table


def _check_measure(name: str) -> str:
    with _as_value_errors():
        parse_measure(name)
    return name


def _check_written(table: ExperimentTable) -> ExperimentTable:
    """Refuse an experiment that no TOML file can hold."""
    for key in ("name", "dataset", "retrievers"):
        if key not in table:
            raise ValueError(f"{key!r} is missing")
    if not isinstance(table["dataset"], str | Mapping):
        raise ValueError("dataset should be a text or a table")
    try:
        tomli_w.dumps(table)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be written as TOML: {error}") from None
    return table


def _check_retriever(table: ExperimentTable) -> ExperimentTable:
    parse_record(RetrieverKeys, json.dumps(table, default=str))
    return table


def _reads(model: type[BaseModel]) -> PlainValidator:
    """Return the reading of a table that has the keys of a model."""
    return PlainValidator(partial(_parse_model, model))


StoredDatasetConfig = Annotated[DatasetConfig, _reads(DatasetConfig)]
StoredRelevance = Annotated[RelevanceConfig, _reads(RelevanceConfig)]
StoredSweep = Annotated[Sweep | None, _reads(Sweep)]
StoredLatencyConfig = Annotated[LatencyConfig | None, _reads(LatencyConfig)]
StoredBudgetConfig = Annotated[BudgetConfig | None, _reads(BudgetConfig)]
StatisticsTable = Annotated[ExperimentTable, AfterValidator(_check_statistics)]
RetrieverTable = Annotated[ExperimentTable, AfterValidator(_check_retriever)]
MeasureName = Annotated[str, AfterValidator(_check_measure)]
WrittenExperiment = Annotated[ExperimentTable, AfterValidator(_check_written)]
