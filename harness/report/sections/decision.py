"""The first screen: the verdict, one reason, one next step, warnings, and the paired leaderboard."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from harness.english import shared_beginning
from harness.evaluation.conclusions import first_lines
from harness.evaluation.csv_views import costs_of, slices_of
from harness.evaluation.evaluation import Board, WarningKind, wilcoxon_floors
from harness.evaluation.evidence import PairEvidence, evidence, pairs_by_weight
from harness.evaluation.verdict import Comparison, TestRow
from harness.evaluation.wording import (
    SIGNS,
    STANDINGS,
    look_sentences,
    reason_words,
    settings_sentence,
    verdict_word,
    warning_sentence,
)
from harness.records import Results
from harness.report import text
from harness.report.axes import numbers, steps
from harness.report.charts import Figure, ForestRow, Section, paired_forest
from harness.report.sections.slices import (
    called,
    carried,
    compared,
    label_of,
    labels_of,
    pair_of,
)
from harness.report.sections.tradeoffs import PRICES
from harness.report.view import View, letters_of, superscripts
from harness.stats.multiplicity import small_slices

APART = 2.0
"""Largest credible ratio of two latencies of the same encoder."""
BUSY = 1.0
"""Waiting processes per core of a busy machine."""


class Screen(NamedTuple):
    """The content of the first screen, in its order."""

    headline: str
    reason: str
    """Why, in one sentence; may be empty."""
    step: str
    """What to do next; may be empty."""
    alerts: tuple[str, ...]
    """What may change the decision, most important first."""
    board: Board
    beginning: str
    """The shared start of all names, which the head shows once; "" for none."""
    failed: Mapping[str, str]
    first: int = 6
    """Rows of the leaderboard that are shown at first."""
    standings: Mapping[str, tuple[str, str]] = STANDINGS

    def short(self, name: str) -> str:
        """A name without the shared start."""
        return name.removeprefix(self.beginning)

    @property
    def signs(self) -> list[tuple[str, str]]:
        """The signs of the leaderboard with their words, except the leader's and those of failed retrievers."""
        rows = [
            row
            for row in self.board.rows
            if row.mean is not None and row.standing != "leader"
        ]
        shown = dict.fromkeys(self.standings[row.standing] for row in rows)
        return [(sign, word) for sign, word in shown if sign]

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of the forest's axis, with some room."""
        low, high = self.board.span
        room = (high - low) * 0.04 or 0.05
        return low - room, high + room

    @property
    def folded(self) -> frozenset[str]:
        """The retrievers that the leaderboard shows on demand."""
        rest = [
            row.retriever
            for row in self.board.rows[self.first :]
            if row.standing not in ("baseline", "failed")
        ]
        return frozenset(rest if len(rest) > 2 else ())

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The round values of the axis, with labels."""
        values = steps(*self.axis, 5)
        return list(zip(values, numbers(values, "-"), strict=True))


def section(view: View) -> Section:
    """The verdict, the reason, the next step, and the paired leaderboard."""
    screen = screen_of(view)
    drawn = (_figure(view, screen),) if screen.board.paired else ()
    return Section("decision", "Decision", {"screen": screen}, drawn)


def _figure(view: View, screen: Screen) -> Figure:
    """The paired forest as a figure, with the counts of each row."""
    board, name = screen.board, view.names[view.primary].short
    rows = [
        ForestRow(
            row.retriever,
            row.retriever,
            row.difference,
            row.low,
            row.high,
            board.n,
            record := f"{row.wins:,} / {row.ties:,} / {row.losses:,}",
            beside=record,
            color=view.colors[row.retriever],
        )
        for row in board.rows
        if row.difference is not None
    ]
    where = (
        f"ahead of {board.reference}"
        if board.against_baseline
        else f"behind {board.reference}"
    )
    differences = "; ".join(
        f"{row.label} {text.signed(row.difference)}" for row in rows
    )
    words = (
        "leaderboard",
        f"{name} {where}, with {100 * board.level:g} % intervals; queries won / tied / lost",
        f"Mean paired difference of {name}, {where}: {differences}.",
        f"{name} {where}",
    )
    return paired_forest(words, {"": rows}, board.margin)


def screen_of(view: View) -> Screen:
    """Put the first screen together."""
    said, beginning = (
        first_lines(view.evaluation),
        shared_beginning(list(view.evaluation.means)),
    )

    def short(sentence: str) -> str:
        # The head of the leaderboard shows the shared start of all names once.
        spoken = view.spoken(sentence)
        return spoken.replace(beginning, "…") if beginning else spoken

    return Screen(
        headline=short(said.headline),
        reason=short(said.reason),
        step=short(said.step + _cheapest(view)),
        alerts=tuple(
            map(short, [*alerts(view), *look_sentences(view.evaluation), *said.alerts])
        ),
        board=view.evaluation.board,
        beginning=beginning,
        failed=view.evaluation.failed,
        first=2 if view.evaluation.sweep else 6,
    )


def _cheapest(view: View) -> str:
    """The fastest, cheapest and smallest of the retrievers that are shown to be as good as the leader."""
    result, costs, said = view.evaluation, costs_of(view.results), ""
    if (
        result.plans
        or result.failed
        or result.sweep
        or not result.measured
        or not result.settings.by_people
    ):
        return ""  # nothing is recommended, or another step comes first
    good = result.within_margin
    for price in PRICES.values():
        priced = {
            name: value for name in good if (value := price.of(costs[name])) is not None
        }
        if len(priced) == len(good) and len(set(priced.values())) > 1:
            said += f" {price.word}: {min(priced, key=lambda name: priced[name])}."
    return said


def alerts(view: View) -> list[str]:
    """Everything that may change the decision, most important first."""
    left_out = (
        WarningKind.FRAGILE,
        WarningKind.JUDGED_GAP,
    )  # shown by the conclusion and by Trust
    known = [
        warning_sentence(one)
        for one in view.evaluation.warnings
        if one.kind not in left_out
    ]
    return [*known, *_carried(view), *_latency(view)]


def _carried(view: View) -> Iterator[str]:
    """The slice that makes up the whole difference between the leader and the next, if a difference is shown."""
    kinds = labels_of(view)
    if (
        len(view.retrievers) < 2
        or not kinds
        or view.ranked[1] not in view.evaluation.shown_worse
    ):
        return
    pair = pair_of(view, view.evaluation.leader, compared(view)[0], kinds)
    if (row := carried(view, pair)) is not None:
        yield f"{pair.a} leads {pair.b} only because of the {row.queries:,} queries of {called(row)}."


def _latency(view: View) -> Iterator[str]:
    """Timings that cannot be trusted: one encoder at very different speeds, or a busy machine."""
    costs, encoders = costs_of(view.results), dict[str, list[float]]()
    for name in view.retrievers:
        encoder = view.resolved.blocks[name].get("encoder")
        timed = [
            stage.p50
            for stage in costs[name].stages
            if encoder and stage.stage == "embed-queries"
        ]
        encoders.setdefault(repr(encoder), []).extend(timed)
    apart = any(
        max(timed) > APART * min(timed) > 0 for timed in encoders.values() if timed
    )
    cores, load = view.manifest.machine.get("cores"), view.manifest.machine.get("load")
    busy = cores and load is not None and load > BUSY * cores
    if apart or (busy and any(cost.stages for cost in costs.values())):
        yield "The machine was busy: latencies may be too long, so do not compare them."


FAMILIES = {
    "equivalence": "Equivalence within the margin",
    "rerank uplift": "Reranked against its first stage",
}
"""The families of tests.csv that are shown here; slices have their own section."""
LOOKED_AT = 4_000
"""Most pairs times queries that the page computes, in half a second; `harness compare --json` has more."""
ROWS = 200
"""Most rows that the page shows; if there are more, only those of the leader and the baseline."""
SMALL = 20
"""Most small slices that are named: a field may have a different value for each query."""


def tested(view: View) -> Section:
    """The means of every measure, and the tests if there are two or more retrievers."""
    summary = view.evaluation.summary
    means = {
        name: {one: summary[one][name] for one in view.measures if name in summary[one]}
        for name in view.ranked
    }
    best = {
        measure: max(row.mean for row in summary[measure].values())
        for measure in view.measures
    }
    several = len(view.retrievers) > 1
    beaten = {measure: superscripts(view, measure) for measure in view.measures}
    lettered = any(letters for row in beaten.values() for letters in row.values())
    known = {
        "means": means,
        "best": best,
        "letters": letters_of(view),
        "beaten": beaten,
        "lettered": lettered,
    }
    return (
        Section("tests", "Tests", known | tests(view))
        if several
        else Section("tests", "Measures", known | {"rows": []})
    )


def tests(view: View) -> dict[str, Any]:
    """The comparisons of the primary measure, further evidence, the other tests."""
    beside, small, families = (
        pair_evidence(view),
        _small_slices(view),
        other_families(view),
    )
    rows = _listed(view, view.comparisons[view.primary])
    return {
        "settings": settings_sentence(view.settings),
        "details": [view.spoken(one) for one in first_lines(view.evaluation).details],
        "rows": rows,
        "left": len(view.comparisons[view.primary]) - len(rows),
        "floors": wilcoxon_floors(view.comparisons[view.primary], view.settings),
        "evidence": beside,
        "evidence_left_out": len(view.retrievers) * (len(view.retrievers) - 1) // 2
        - len(beside),
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
    return in_reading_order(
        view, [row for row in rows if len(rows) <= ROWS or _about(view, row.a, row.b)]
    )


def _about(view: View, a: object, b: object) -> bool:
    """Whether a row includes the leader or the baseline."""
    return not {view.evaluation.leader, view.baseline}.isdisjoint((a, b))


def _small_slices(view: View) -> list[tuple[str, int]]:
    """The slices with too few queries for a test, with the number of queries."""
    kinds = slices_of(
        [view.query(place).query for place in range(view.n)], view.settings.cluster
    )
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
    experiment, machine = (
        tomli_w.dumps(view.manifest.experiment),
        _flat(view.manifest.machine),
    )
    context = {
        "experiment": text.visible(experiment),
        "machine": machine,
        "folder": place_of(view.results),
    }
    return Section("provenance", "Provenance", context)


def place_of(results: Results) -> str:
    """The path of the results folder for commands; a run moves it there at its end."""
    folder = results.folder.with_name(
        results.folder.name.removesuffix(".unfinished")
    ).resolve()
    here = Path.cwd()
    path = shlex.quote(
        (folder.relative_to(here) if folder.is_relative_to(here) else folder).as_posix()
    )
    # Nothing can be escaped between the backquotes of Markdown.
    return (
        f"results/{results.manifest.name}"
        if "`" in path or text.visible(path) != path
        else path
    )


def _flat(table: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: ", ".join(f"{k}={v}" for k, v in value.items())
        if isinstance(value, Mapping)
        else str(value)
        for key, value in table.items()
        if value not in ({}, None, "")
    }


PLACES = {10: section, 80: tested, 100: provenance}
