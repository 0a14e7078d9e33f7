"""The CSV tables of a results folder: written in full precision, read with their types, known by their digests.

What a spreadsheet would run stays text, and no character makes a row of its own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.records.kept import COSTS, Run
from harness.records.safe_files import create, sha256_of
from retrievers.meter import StageTotals
from retrievers.types import CONTROL

if TYPE_CHECKING:
    import pandas as pd

FORMULA = re.compile(r"""(^|[;,\t])('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
QUOTED = re.compile(r"""(^|[;,\t])'('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
_NOTHING: Mapping[str, StageTotals] = MappingProxyType({})
LEADING = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": (
        "retriever", "measure", "count", "mean", "ci_low", "ci_high", "std", "min", "q25", "median", "q75", "max",
        "ci_method",
    ),
    "comparisons": ("measure", "a", "b", "n", "mean_difference", "p_value", "p_adjusted", "verdict"),
    "tests": ("family", "measure", "a", "b", "p_value"),
    "costs": COSTS,
}  # fmt: skip
"""Table -> columns without which it cannot be used."""
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Names: read back as text, whatever they look like, and an empty one is a text too."""
NUMBERS = frozenset({
    "value", "count", "mean", "ci_low", "ci_high", "std", "min", "q25", "median", "q75", "max",
    "n", "zeros", "wins", "ties", "losses", "mean_difference", "w_plus", "w_minus", "statistic", "effect_size",
    "p_value", "p_adjusted", "p_minimum", "p_minimum_adjusted", "p_randomization", "p_randomization_adjusted",
    "p_wilcoxon", "p_wilcoxon_adjusted",
    "clusters", "calls", "texts", "cached", "tokens", "usd", "seconds", "p50_ms", "p95_ms", "p99_ms",
})  # fmt: skip
"""Columns of numbers; every other column is text."""


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


def write_table(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Write a CSV file: full precision, line feeds, empty cells for what is undefined, no text that would be run."""
    texts = {column: _mapped(table[column], as_cell) for column in table.columns if column not in NUMBERS}
    table = table.assign(**texts)
    with create(folder / f"{name}.csv") as file:
        table.to_csv(file, index=False, lineterminator="\n")


def write_costs(folder: Path, runs: Iterable[Run], shared: Mapping[str, StageTotals] = _NOTHING) -> None:
    """Write costs.csv: one row per retriever and stage, in calls, tokens, dollars and seconds.

    Args:
        folder: of the results.
        runs: the retrievers.
        shared: the stages that serve all retrievers at once, such as "judge"; their rows name no retriever.
    """
    import pandas as pd

    rows = []
    for run in runs:
        for stage in dict.fromkeys([*run.stages, *run.latency]):
            totals = run.stages.get(stage, StageTotals(0.0, {}))
            latency = run.latency.get(stage, (None,) * 4)
            counts = [int(totals.counts.get(name, 0)) for name in ("calls", "texts", "cached", "tokens")]
            rows.append((run.retriever, stage, *counts, totals.counts.get("usd", 0.0), totals.seconds, *latency))
    for stage, totals in shared.items():
        counts = [int(totals.counts.get(name, 0)) for name in ("calls", "texts", "cached", "tokens")]
        rows.append(("", stage, *counts, totals.counts.get("usd", 0.0), totals.seconds, *(None,) * 4))
    write_table(folder, "costs", pd.DataFrame(rows, columns=list(COSTS)))


def read_costs(folder: Path) -> list[dict[str, Any]]:
    """Read the rows of a results folder's costs.csv; OSError or ValueError where it cannot be read."""
    rows = read_table(folder / "costs.csv").to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that a run wrote; OSError or ValueError where it cannot be read."""
    import pandas as pd

    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    texts = [column for column in header if column not in NUMBERS]
    empty: dict[Any, Any] = {column: [""] for column in header if column not in TEXT_COLUMNS}
    table = pd.read_csv(
        path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=empty, index_col=False, encoding="utf-8"
    )
    return table.assign(**{column: _mapped(table[column], of_cell) for column in texts})


def _mapped(values: pd.Series[Any], change: Callable[[str], str]) -> pd.Series[Any]:
    """A column with its texts changed, each distinct text looked at once."""
    changed = {text: change(text) for text in values.unique() if isinstance(text, str)}
    if all(text == other for text, other in changed.items()):
        return values
    return values.map(lambda value: changed.get(value, value))


def file_digests(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a results folder that is read back, for the manifest."""
    names = [*(f"{name}.csv" for name in LEADING), "labels.jsonl", "documents.jsonl", "qrels.trec"]
    names += [name for name in ("evaluation.json",) if (folder / name).is_file()]  # nobody judged where it is missing
    names += sorted(f"rankings/{path.name}" for path in (folder / "rankings").glob("*.jsonl"))
    return {name: sha256_of(folder / name) for name in names}
