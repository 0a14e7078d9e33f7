"""What is no longer offered: where it could be written, what it was called, and what to use instead."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from retrievers.errors import Problem


class Retired(NamedTuple):
    """One word that is refused at one place."""

    place: str
    """`harness` and a command: its subcommands and options, or the values of an option that is named behind it. Else a
    table of an experiment, such as `statistics`: its keys, or the values of a key that is named behind a colon."""
    word: str
    instead: str


_CITATIONS = "use ragchecker.faithfulness, or compare the scores of another tool"
_NUGGETS = "use ragchecker.recall, the share of the reference's claims in the answer"

RETIRED: tuple[Retired, ...] = (
    Retired("retrievers: kind", "qdrant-fusion", 'use kind = "fusion", whose rankings are the same; k = 61 is 60'),
    Retired("statistics: correction", "hommel", 'use correction = "holm"'),
    Retired("statistics: correction", "tukey", 'use correction = "holm"'),
    Retired("statistics: test", "sign", 'use test = "wilcoxon"'),
    Retired("statistics: zeros", "pratt", "leave it out"),
    Retired("statistics: interval", "bca", "leave it out: intervals are Student's t"),
    Retired("harness compare --test", "sign", "use wilcoxon"),
    Retired("harness compare --correction", "hommel", "use holm"),
    Retired("harness compare --correction", "tukey", "use holm"),
    Retired("harness answers score --measure", "alce.citation_recall", _CITATIONS),
    Retired("harness answers score --measure", "alce.citation_precision", _CITATIONS),
    Retired("harness answers score --measure", "nuggets.all", _NUGGETS),
    Retired("harness answers score --measure", "nuggets.vital", _NUGGETS),
    Retired("harness answers score --measure", "nuggets.strict", _NUGGETS),
    Retired("harness answers score --measure", "nuggets.strict_vital", _NUGGETS),
    Retired("harness embed", "--shard", "harness embed runs on a Ray cluster, which shares the work by itself"),
    Retired("harness embed", "--engine", "leave it out: Ray Data is the one engine"),
    Retired("harness export --as", "ir-measures", "use trec, which ir_measures reads"),
    Retired("harness export --as", "ranx", "use trec, which ranx reads"),
    Retired("harness export --as", "beir", "the data set itself is what BEIR's readers take; trec has the judgments"),
    Retired("harness export --as", "model-card", "use mteb, whose results hold the same scores"),
    Retired("harness answers", "sample", "labels of people and of a model are compared: harness labels agree"),
    Retired("harness answers", "merge", "labels of people and of a model are compared: harness labels agree"),
    Retired("harness answers judge", "--repeat", "harness judge POOL --llm MODEL --repeat 2 shows a model's own noise"),
    Retired("harness", "plan", "harness check EXPERIMENT shows what a run takes; the report, how many queries"),
    Retired("harness run", "--live", "load the report when the run has ended; progress is shown while it goes on"),
    Retired("harness run", "--measures", "use --explain"),
    Retired("harness run", "--pairs", "use --explain"),
    Retired("harness report", "--measures", "use --explain"),
    Retired("harness report", "--pairs", "use --explain"),
    Retired("harness compare", "--measures", "use --explain"),
    Retired("harness compare", "--pairs", "use --explain"),
    Retired("harness report", "--figures", "print the page from a browser; figures/ holds every chart as SVG"),
    Retired("", "cache", "leave it out: cached vectors are used as they are, and --fresh embeds everything again"),
    Retired("harness", "noise", "embedding noise is far below that of drawing other queries: read the intervals"),
    Retired("harness cache", "verify", "damaged rows count as absent; to embed everything again, run with --fresh"),
    Retired("harness pool", "--next", "draw a sample of questions with --sample; the report says how much is judged"),
    Retired("harness pool", "--pair", "a pool holds the top documents of every retriever"),
    Retired("harness judge", "--terminal", "judge on the page that harness judge POOL writes"),
    Retired("harness judge", "--judge", "the page of harness judge POOL asks for your name"),
)


def retired_in(tables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each retired word in the tables of an experiment.

    >>> [str(one) for one in retired_in({"statistics": {"interval": "bca"}, "seed": 1})]
    ["statistics.interval: 'bca' is retired (leave it out: intervals are Student's t)"]
    """
    for place, word, instead in RETIRED:
        outer, _, key = place.partition(": ")
        entries = tables if not outer else tables.get(outer)
        for entry in entries if isinstance(entries, list | tuple) else [entries]:
            if isinstance(entry, Mapping) and (entry.get(key) == word if key else word in entry):
                yield Problem(".".join(filter(None, (outer, key))) or word, f"{word!r} is retired", instead)


def retired_on(line: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each retired word on a command line, which is given without `harness`.

    >>> [str(one) for one in retired_on(["judge", "pool.jsonl", "--judge=ann"])]
    ["harness judge: '--judge' is retired (the page of harness judge POOL asks for your name)"]
    """
    words = ["--measure" if part == "-m" else part for word in ["harness", *line] for part in word.split("=", 1)]
    for place, word, instead in RETIRED:
        command = [part for part in place.split() if not part.startswith("--")]
        option = place.split()[len(command) :]
        given = words[len(command) :]
        if command == words[: len(command)] and (
            (option[0], word) in pairwise(given) if option else word in (given if word.startswith("--") else given[:1])
        ):
            yield Problem(place, f"{word!r} is retired", instead)
