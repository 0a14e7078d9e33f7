"""The check of each table of a resolved experiment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import tomli_w
from pydantic import AfterValidator, BaseModel, Field

from harness.experiment import (
    NAME_PATTERN,
    SWEPT_NAME,
    DatasetConfig,
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


def _check_model(model: type[BaseModel], table: ExperimentTable) -> ExperimentTable:
    """Return the table of a model, with its defaults."""
    with _as_value_errors():
        validated(model, table, "")
    defaults: dict[str, Any] = {}
    for name, model_field in model.model_fields.items():
        if not model_field.is_required() and name not in table:
            defaults[name] = model_field.get_default(call_default_factory=True)
    return {**table, **defaults}


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


def _model_check(model: type[BaseModel]) -> AfterValidator:
    """Return pydantic's check that a table is one of a model."""
    return AfterValidator(partial(_check_model, model))


DatasetTable = Annotated[ExperimentTable, _model_check(DatasetConfig)]
RelevanceTable = Annotated[ExperimentTable, _model_check(RelevanceConfig)]
SweepTable = Annotated[ExperimentTable, _model_check(Sweep)]
StatisticsTable = Annotated[ExperimentTable, AfterValidator(_check_statistics)]
RetrieverTable = Annotated[ExperimentTable, AfterValidator(_check_retriever)]
MeasureName = Annotated[str, AfterValidator(_check_measure)]
WrittenExperiment = Annotated[ExperimentTable, AfterValidator(_check_written)]
