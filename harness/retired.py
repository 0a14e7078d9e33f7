"""What is no longer offered."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from retrievers.errors import Problem

_CITATIONS = "use ragchecker.faithfulness, or compare the scores of another tool"
_NUGGETS = "use ragchecker.recall, the share of the reference's claims in the answer"

RETIRED_OFFERS: tuple[tuple[str, str, str], ...] = (
    (
        "retrievers: kind",
        "qdrant-fusion",
        'use kind = "fusion", whose rankings are the same; k = 61 is 60',
    ),
    ("statistics: correction", "hommel tukey", 'use correction = "holm"'),
    ("statistics: test", "sign", 'use test = "wilcoxon"'),
    ("statistics: zeros", "pratt", "leave it out"),
    ("statistics: interval", "bca", "leave it out: intervals are Student's t"),
    ("harness compare --test", "sign", "use wilcoxon"),
    ("harness compare --correction", "hommel tukey", "use holm"),
    (
        "harness answers score --measure",
        "alce.citation_recall alce.citation_precision",
        _CITATIONS,
    ),
    (
        "harness answers score --measure",
        "nuggets.all nuggets.vital nuggets.strict nuggets.strict_vital",
        _NUGGETS,
    ),
    (
        "harness embed",
        "--shard",
        "harness embed runs on a Ray cluster, which shares the work by itself",
    ),
    ("harness embed", "--engine", "leave it out: Ray Data is the one engine"),
    ("harness export --as", "ir-measures", "use trec, which ir_measures reads"),
    ("harness export --as", "ranx", "use trec, which ranx reads"),
    (
        "harness export --as",
        "beir",
        "the data set itself is what BEIR's readers take; trec has the judgments",
    ),
    (
        "harness export --as",
        "model-card",
        "use mteb, whose results hold the same scores",
    ),
    (
        "harness answers",
        "sample merge",
        "labels of people and of a model are compared: harness labels agree",
    ),
    (
        "harness answers judge",
        "--repeat",
        "harness judge POOL --llm MODEL --repeat 2 shows a model's own noise",
    ),
    (
        "harness",
        "plan",
        "harness check EXPERIMENT shows what a run takes; the report, how many queries",
    ),
    (
        "harness run",
        "--live",
        "load the report when the run has ended; progress is shown while it goes on",
    ),
    ("harness run", "--measures --pairs", "use --explain"),
    ("harness report", "--measures --pairs", "use --explain"),
    ("harness compare", "--measures --pairs", "use --explain"),
    (
        "harness report",
        "--figures",
        "print the page from a browser; figures/ holds every chart as SVG",
    ),
    (
        "",
        "cache",
        "leave it out: cached vectors are used as they are, and --fresh embeds everything again",
    ),
    (
        "harness",
        "noise",
        "embedding noise is far below that of drawing other queries: read the intervals",
    ),
    (
        "harness cache",
        "verify",
        "damaged rows count as absent; to embed everything again, run with --fresh",
    ),
    (
        "harness pool",
        "--next",
        "draw a sample of queries with --sample; the report says how much is judged",
    ),
    ("harness pool", "--pair", "a pool holds the top documents of every retriever"),
    ("harness judge", "--terminal", "judge on the page that harness judge POOL writes"),
    ("harness judge", "--judge", "the page of harness judge POOL asks for your name"),
)
"""Place, words and what to use instead. The place is `harness` and a command: its subcommands and options, or values
of an option that is named behind it; else a table of an experiment, such as `statistics`: its keys, or the values of a
key that is named behind a colon."""
RETIRED_WORDS = [
    (place, word, instead)
    for place, words, instead in RETIRED_OFFERS
    for word in words.split()
]


def retired_keys(tables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each retired word in the tables of an experiment.

    >>> [str(one) for one in retired_keys({"statistics": {"interval": "bca"}, "seed": 1})]
    ["statistics.interval: 'bca' is retired (leave it out: intervals are Student's t)"]
    """
    for place, word, instead in RETIRED_WORDS:
        outer, _, key = place.partition(": ")
        entries = tables if not outer else tables.get(outer)
        for entry in entries if isinstance(entries, list | tuple) else [entries]:
            if isinstance(entry, Mapping) and (
                entry.get(key) == word if key else word in entry
            ):
                yield Problem(
                    ".".join(filter(None, (outer, key))) or word,
                    f"{word!r} is retired",
                    instead,
                )


def retired_arguments(line: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each retired word on a command line, which is given without `harness`.

    >>> [str(one) for one in retired_arguments(["judge", "pool.jsonl", "--judge=ann"])]
    ["harness judge: '--judge' is retired (the page of harness judge POOL asks for your name)"]
    """
    words = [
        "--measure" if part == "-m" else part
        for word in ["harness", *line]
        for part in word.split("=", 1)
    ]
    for place, word, instead in RETIRED_WORDS:
        command = [part for part in place.split() if not part.startswith("--")]
        option = place.split()[len(command) :]
        given = words[len(command) :]
        if command == words[: len(command)] and (
            (option[0], word) in pairwise(given)
            if option
            else word in (given if word.startswith("--") else given[:1])
        ):
            yield Problem(place, f"{word!r} is retired", instead)
