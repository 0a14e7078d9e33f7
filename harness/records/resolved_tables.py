"""The check of each table of a resolved experiment.

A manifest's tables are read back as the records that an experiment file has, without
the packages of their kinds. `manifest` uses the types at the end of this module; a
wrong key is a ValueError, of which pydantic names the path.
"""

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
    PartConfig,
    RawTable,
    RelevanceConfig,
    StoredVectorsConfig,
    Sweep,
    parse_statistics,
)
from harness.measures import parse_measure
from harness.records.jsonl import parse_record, reads_by
from harness.stats.settings import Statistics
from retrievers.errors import InputError
from retrievers.options.tables import validated

ExperimentName = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A name that cannot be the path of another folder."""
RetrieverName = Annotated[str, Field(pattern=SWEPT_NAME)]
"""A name of a retriever, which may be a configuration of a sweep."""
ExperimentTable = Mapping[str, Any]
"""A table of an experiment file."""


@dataclass(frozen=True, slots=True)
class UsedPart:
    """The keys of a part without a name that are read back."""

    of: UsedRetrievers = None


UsedRetrievers = str | UsedPart | list["str | UsedPart"] | None
"""The key `of` of a retriever's table."""


def _read_part(table: ExperimentTable | None) -> PartConfig | None:
    """Return a kind with its options, whose class need not be installed here."""
    if table is None:
        return None
    kind = table.get("kind", "")
    if not isinstance(kind, str):
        raise ValueError(f"kind is {kind!r:.40}, not a text")
    options = {key: option for key, option in table.items() if key != "kind"}
    return PartConfig(kind=kind, options=options)


StoredPart = Annotated[PartConfig | None, reads_by(_read_part)]


@dataclass(frozen=True, slots=True)
class _RetrieverKeys:
    """The keys of a retriever's table that are read back.

    Its other options depend on packages that need not be installed here.
    """

    name: RetrieverName
    kind: str
    of: UsedRetrievers = None
    encoder: StoredPart = None
    rerank: StoredPart = None
    derived_from: str | None = None
    comparable_scores: bool = False


@dataclass(frozen=True, slots=True)
class RetrieverRecord:
    """A retriever of a run, with its defaults.

    It can be read without the package of its kind.
    """

    name: str
    kind: str
    of: UsedRetrievers
    """The retrievers that it uses; a part without a name has its own."""
    encoder: PartConfig | None
    rerank: PartConfig | None
    derived_from: str
    """The retriever whose vectors are made smaller; "" if there is none."""
    comparable_scores: bool
    """Whether its scores are declared to be comparable between queries."""
    table: RawTable
    """All of its stored table: only its kind knows the other keys."""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> RetrieverRecord:
        """Return the record of a table; ValueError if a key that is used is wrong."""
        retriever_keys = parse_record(_RetrieverKeys, json.dumps(table, default=str))
        return cls(
            name=retriever_keys.name,
            kind=retriever_keys.kind,
            of=retriever_keys.of,
            encoder=retriever_keys.encoder,
            rerank=retriever_keys.rerank,
            derived_from=retriever_keys.derived_from or "",
            comparable_scores=retriever_keys.comparable_scores,
            table=RawTable(table),
        )

    @property
    def uses(self) -> tuple[str, ...]:
        """The retrievers that it names under `of`, also within unnamed parts."""
        return tuple(_retriever_names(self.of))


def _retriever_names(used: UsedRetrievers) -> Iterator[str]:
    """Yield the names in the key `of`, which may be nested."""
    if isinstance(used, str):
        yield used
    elif isinstance(used, UsedPart):
        yield from _retriever_names(used.of)
    else:
        for part in used or ():
            yield from _retriever_names(part)


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Turn an InputError inside into a ValueError, to which pydantic adds the key."""
    try:
        yield
    except InputError as error:
        raise ValueError("; ".join(map(str, error.problems))) from None


def _parse_optional(model: type[BaseModel], table: object) -> BaseModel | None:
    return None if table is None else _parse_model(model, table)


def _parse_model(model: type[BaseModel], table: object) -> BaseModel:
    """Return a table as a model, with its defaults; ValueError if it is none."""
    if not isinstance(table, Mapping):
        raise ValueError(f"is {table!r:.40}, not a table")
    with _as_value_errors():
        return validated(model, table, "")


def _read_statistics(table: ExperimentTable) -> Statistics:
    with _as_value_errors():
        return parse_statistics(table, "")


def _read_vectors(table: ExperimentTable | None) -> StoredVectorsConfig | None:
    """Return the location of stored vectors; keys of a later version are ignored."""
    if table is None:
        return None
    model_fields = StoredVectorsConfig.model_fields
    known_fields = {field.alias or name for name, field in model_fields.items()}
    options = {key: option for key, option in table.items() if key in known_fields}
    with _as_value_errors():
        return validated(StoredVectorsConfig, options, "")


def _check_measure(name: str) -> str:
    with _as_value_errors():
        parse_measure(name)
    return name


def _read_written(table: ExperimentTable) -> RawTable:
    """Return an experiment as it was written, if a TOML file can hold it."""
    for key in ("name", "dataset", "retrievers"):
        if key not in table:
            raise ValueError(f"{key!r} is missing")
    if not isinstance(table["dataset"], str | Mapping):
        raise ValueError("dataset should be a text or a table")
    try:
        tomli_w.dumps(table)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be written as TOML: {error}") from None
    return RawTable(table)


def _reads(model: type[BaseModel]) -> PlainValidator:
    """Return the reading of a table that has the keys of a model."""
    return PlainValidator(partial(_parse_model, model))


def _reads_optional(model: type[BaseModel]) -> PlainValidator:
    """Return the reading of such a table, or of none."""
    return PlainValidator(partial(_parse_optional, model))


StoredDatasetConfig = Annotated[DatasetConfig, _reads(DatasetConfig)]
StoredRelevance = Annotated[RelevanceConfig, _reads(RelevanceConfig)]
StoredSweep = Annotated[Sweep | None, _reads_optional(Sweep)]
StoredLatencyConfig = Annotated[LatencyConfig | None, _reads_optional(LatencyConfig)]
StoredBudgetConfig = Annotated[BudgetConfig | None, _reads_optional(BudgetConfig)]
StoredStatistics = Annotated[Statistics, reads_by(_read_statistics)]
StoredRetriever = Annotated[RetrieverRecord, reads_by(RetrieverRecord.read)]
StoredVectors = Annotated[StoredVectorsConfig | None, reads_by(_read_vectors)]
MeasureName = Annotated[str, AfterValidator(_check_measure)]
WrittenExperiment = Annotated[RawTable, reads_by(_read_written)]
