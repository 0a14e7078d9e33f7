"""The CSV tables of a results folder: written in full precision, read with their types, known by their digests.

What a spreadsheet would run stays text, and no character makes a row of its own.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.records.jsonl_rows import COSTS, Run
from harness.records.safe_files import create
from retrievers.meter import StageTotals
from retrievers.opening import file_digest
from retrievers.types import CONTROL

FORMULA = re.compile(r"""(^|[;,\t])('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
QUOTED = re.compile(r"""(^|[;,\t])'('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
_NOTHING: Mapping[str, StageTotals] = MappingProxyType({})
TABLES = ("scores", "summary", "comparisons", "tests", "costs")
TableColumns = Mapping[str, Sequence[Any]]
"""A table: name of a column -> its values."""
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Names: read back as text, whatever they look like, and an empty one is a text too."""
NUMBERS = frozenset({
    "value", "count", "mean", "ci_low", "ci_high", "std", "min", "q25", "median", "q75", "max",
    "n", "zeros", "wins", "ties", "losses", "mean_difference", "w_plus", "w_minus", "statistic", "effect_size",
    "p_value", "p_adjusted", "p_minimum", "p_minimum_adjusted", "p_randomization", "p_randomization_adjusted",
    "p_wilcoxon", "p_wilcoxon_adjusted",
    "clusters", "calls", "texts", "cached", "tokens", "usd", "seconds", "p50_ms", "p95_ms", "p99_ms",
})  # fmt: skip
"""TableColumns of numbers; every other column is text."""


def as_cell(text: str) -> str:
    r"""Return a text as it is written into a CSV file.

    A spreadsheet runs what begins with an equals sign, or with a sign and holds a call; where it cuts lines at
    semicolons or tabs, also in the middle of a text. An apostrophe before it makes it text. Control characters become
    spaces: some readers end a row at each of them.

    >>> as_cell("=HYPERLINK(1)"), as_cell("a;@SUM(1)"), as_cell("-abc123"), as_cell("a\rb")
    ("'=HYPERLINK(1)", "a;'@SUM(1)", '-abc123', 'a b')
    """
    return FORMULA.sub(r"\1'\2", CONTROL.sub(" ", text))


def of_cell(cell: str) -> str:
    """Return the text that `as_cell` wrote.

    >>> of_cell(as_cell("=1")), of_cell(as_cell("'=1")), of_cell("don't")
    ('=1', "'=1", "don't")
    """
    return QUOTED.sub(r"\1\2", cell)


def write_table(folder: Path, name: str, table: TableColumns) -> None:
    """Write a CSV file: full precision, line feeds, empty cells for what is undefined, no text that would be run."""
    columns = [_numbers(values) if column in NUMBERS else _texts(values) for column, values in table.items()]
    with create(folder / f"{name}.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))


def _numbers(values: Iterable[Any]) -> list[Any]:
    """Numbers as they are written: all of a column with a point, or none; None and NaN as empty cells."""
    kept = [None if one is None or one != one else one for one in values]
    if all(isinstance(one, int | np.integer) for one in kept):
        return kept
    return [None if one is None else float(one) for one in kept]


def _texts(values: Iterable[Any]) -> list[Any]:
    """Texts as they are written, each distinct one looked at once."""
    known: dict[Any, Any] = {}
    return [
        known[one] if one in known else known.setdefault(one, as_cell(one) if isinstance(one, str) else None)
        for one in values
    ]


def write_costs(folder: Path, runs: Iterable[Run], shared: Mapping[str, StageTotals] = _NOTHING) -> None:
    """Write costs.csv: one row per retriever and stage, in calls, tokens, dollars and seconds.

    Args:
        folder: of the results.
        runs: the retrievers.
        shared: the stages that serve all retrievers at once, such as "judge"; their rows name no retriever.
    """
    empty = StageTotals(0.0, {})
    stages = [
        (run.retriever, stage, run.stages.get(stage, empty), run.latency.get(stage, (None,) * 4))
        for run in runs
        for stage in dict.fromkeys([*run.stages, *run.latency])
    ]
    stages += [("", stage, totals, (None,) * 4) for stage, totals in shared.items()]
    rows = []
    for name, stage, totals, latency in stages:
        counts = [int(totals.counts.get(key, 0)) for key in ("calls", "texts", "cached", "tokens")]
        rows.append((name, stage, *counts, totals.counts.get("usd", 0.0), totals.seconds, *latency))
    write_table(folder, "costs", {name: [row[place] for row in rows] for place, name in enumerate(COSTS)})


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a table that a run wrote; as `read_columns`."""
    columns = read_columns(path)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def has_rows(path: Path) -> bool:
    """Whether a table that a run wrote has more than its header; as `read_columns`."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return len([*islice(csv.reader(file), 2)]) > 1


def read_columns(path: Path) -> dict[str, list[Any]]:
    """Read a table that a run wrote, NaN for what is undefined; OSError or ValueError where it cannot be read."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {
        name: _read_numbers(cells) if name in NUMBERS else _read_texts(cells, name)
        for name, cells in zip(header, columns, strict=True)
    }


def _read_numbers(cells: Sequence[str]) -> list[Any]:
    try:
        return list(map(int, cells))
    except ValueError:
        return [float(cell) if cell else math.nan for cell in cells]


def _read_texts(cells: Sequence[str], column: str) -> list[Any]:
    texts: dict[str, Any] = {cell: of_cell(cell) for cell in set(cells)}
    if column not in TEXT_COLUMNS and "" in texts:
        texts[""] = math.nan
    return list(map(texts.__getitem__, cells))


def file_digests(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a results folder that is read back, for the manifest."""
    names = [*(f"{name}.csv" for name in TABLES), "labels.jsonl", "documents.jsonl", "qrels.trec"]
    names += [name for name in ("evaluation.json",) if (folder / name).is_file()]  # nobody judged where it is missing
    names += sorted(f"rankings/{path.name}" for path in (folder / "rankings").glob("*.jsonl"))
    return {name: file_digest(folder / name) for name in names}
