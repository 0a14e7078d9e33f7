"""The tests of each pair, the other families, the means of every measure; versions, and the command that repeats it."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from harness.evaluation.conclusions import first_lines
from harness.evaluation.csv_views import slices_of
from harness.evaluation.evaluation import wilcoxon_floors
from harness.evaluation.evidence import PairEvidence, evidence, pairs_by_weight
from harness.evaluation.verdict import Comparison, TestRow
from harness.evaluation.wording import SIGNS, reason_words, settings_sentence, verdict_word
from harness.records import Results
from harness.report import text
from harness.report.charts import Section
from harness.report.html_page import letters_of, superscripts
from harness.report.sections.slices import label_of
from harness.report.view import View
from harness.stats.multiplicity import small_slices

FAMILIES = {"equivalence": "Equivalence within the margin", "rerank uplift": "Reranked against its first stage"}
"""The families of tests.csv that are shown here; slices have their own section."""
LOOKED_AT = 4_000
"""Most pairs times queries that the page computes, in half a second; `harness compare --json` has more."""
ROWS = 200
"""Most rows that the page shows; if there are more, only those of the leader and the baseline."""
SMALL = 20
"""Most small slices that are named: a field may have a different value for each query."""


def section(view: View) -> Section:
    """The means of every measure, and the tests if there are two or more retrievers."""
    summary = view.evaluation.summary
    means = {name: {one: summary[one][name] for one in view.measures if name in summary[one]} for name in view.ranked}
    best = {measure: max(row.mean for row in summary[measure].values()) for measure in view.measures}
    several = len(view.retrievers) > 1
    beaten = {measure: superscripts(view, measure) for measure in view.measures}
    lettered = any(letters for row in beaten.values() for letters in row.values())
    known = {"means": means, "best": best, "letters": letters_of(view), "beaten": beaten, "lettered": lettered}
    return (
        Section("tests", "Tests", known | tests(view))
        if several
        else Section("tests", "Measures", known | {"rows": []})
    )


def tests(view: View) -> dict[str, Any]:
    """The comparisons of the primary measure, further evidence, the other tests."""
    beside, small, families = pair_evidence(view), _small_slices(view), other_families(view)
    rows = _listed(view, view.comparisons[view.primary])
    return {
        "settings": settings_sentence(view.settings),
        "details": [view.spoken(one) for one in first_lines(view.evaluation).details],
        "rows": rows,
        "left": len(view.comparisons[view.primary]) - len(rows),
        "floors": wilcoxon_floors(view.comparisons[view.primary], view.settings),
        "evidence": beside,
        "evidence_left_out": len(view.retrievers) * (len(view.retrievers) - 1) // 2 - len(beside),
        "other": families,
        "small_slices": small[:SMALL],
        "small_left": len(small[SMALL:]),
        "other_left": len(view.evaluation.tests) - sum(map(len, families.values())),
        "signs": SIGNS,
        "word": verdict_word,
        "reason": reason_words,
    }


def other_families(view: View) -> dict[str, list[TestRow]]:
    """The rows of the families that no other section shows; only those of the leader and the baseline."""
    found: dict[str, list[TestRow]] = {}
    for row in view.evaluation.tests:
        if row.family in FAMILIES and _about(view, row.a, row.b):
            found.setdefault(FAMILIES[row.family], []).append(row)
    return found


def _listed(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows of the primary measure that the page lists; of many, those of the leader and the baseline."""
    return in_reading_order(view, [row for row in rows if len(rows) <= ROWS or _about(view, row.a, row.b)])


def _about(view: View, a: object, b: object) -> bool:
    """Whether a row includes the leader or the baseline."""
    return not {view.evaluation.leader, view.baseline}.isdisjoint((a, b))


def _small_slices(view: View) -> list[tuple[str, int]]:
    """The slices with too few queries for a test, with the number of queries."""
    kinds = slices_of([view.query(place).query for place in range(view.n)], view.settings.cluster)
    return [
        (label_of(family, kind), number)
        for family, labels in kinds.items()
        if len(set(labels)) > 1
        for kind, number in small_slices(labels).items()
    ]


def in_reading_order(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next; a is the one with the higher mean on the primary measure."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [row.swapped if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def pair_evidence(view: View) -> list[PairEvidence]:
    """Return the evidence on the pairs, the leader's first; on all pairs unless that takes too long."""
    pairs = pairs_by_weight(view.ranked, view.baseline, view.n, LOOKED_AT)
    return evidence(view.table, pairs)


def provenance(view: View) -> Section:
    """The experiment, the versions, the machine, and how to run it again."""
    experiment, machine = tomli_w.dumps(view.manifest.experiment), _flat(view.manifest.machine)
    context = {"experiment": text.visible(experiment), "machine": machine, "folder": place_of(view.results)}
    return Section("provenance", "Provenance", context)


def place_of(results: Results) -> str:
    """The path of the results folder for commands; a run moves it there at its end."""
    folder = results.folder.with_name(results.folder.name.removesuffix(".unfinished")).resolve()
    here = Path.cwd()
    path = shlex.quote((folder.relative_to(here) if folder.is_relative_to(here) else folder).as_posix())
    # Nothing can be escaped between the backquotes of Markdown.
    return f"results/{results.manifest.name}" if "`" in path or text.visible(path) != path else path


def _flat(table: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)
        for key, value in table.items()
        if value not in ({}, None, "")
    }


PLACES = {80: section, 100: provenance}
