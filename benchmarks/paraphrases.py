"""How often `harness check` takes queries for paraphrases: of queries that are, and of queries that are not.

    python benchmarks/paraphrases.py COLLECTION ...   # folders with queries.jsonl and qrels/test.tsv, as BEIR has them

`paraphrased.json` holds four paraphrases of each of the 13 article queries of the survey templates, in English and in
Japanese; a language model wrote them, as it would for somebody who asks for more queries, before the shares were known.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.dataset import DatasetReference, Labels, load
from harness.running.paraphrases import MANY, paraphrases
from retrievers.types import Query

HERE = Path(__file__).parent
NEEDS, EACH = 13, 5


class Asked(NamedTuple):
    """Queries with their labels."""

    name: str
    queries: tuple[Query, ...]
    labels: Mapping[str, Labels]


def templates(language: str) -> Asked:
    """The 138 queries that come with the project: no two of one need."""
    folder = HERE.parent / "datasets" / f"survey-templates-{language}"
    data = load(DatasetReference(folder, queries=("queries.json", "queries-extended.json")))
    return Asked(f"survey templates, {language}", data.queries, data.labels)


def paraphrased(language: str, each: int) -> Asked:
    """The 13 article queries, each asked several times."""
    original, again = templates(language), json.loads((HERE / "paraphrased.json").read_text("utf-8"))[language]
    queries, labels = [], {}
    for query in original.queries[:NEEDS]:
        for number, text in enumerate([query.text, *again[query.id]][:each]):
            queries.append(Query(f"{query.id}-{number}", text))
            labels[queries[-1].id] = original.labels[query.id]
    return Asked(f"{NEEDS} needs x {each}, {language}", tuple(queries), labels)


def rows(collections: list[str]) -> Iterator[tuple[str, Asked]]:
    """(what they are, the queries)."""
    for language in ("en", "ja"):
        other = templates(language)
        for each in (2, EACH):
            yield "paraphrases", paraphrased(language, each)
        yield "paraphrases, no labels", paraphrased(language, EACH)._replace(labels={})
        half = paraphrased(language, EACH)
        more = other.queries[NEEDS : NEEDS + len(half.queries)]
        mixed = Asked(f"{half.name}, and as many others", half.queries + more, {**half.labels, **other.labels})
        yield "half paraphrases", mixed
        yield "separate", other
    for folder in collections:
        data = load(DatasetReference(Path(folder)))
        yield "separate", Asked(Path(folder).name, data.queries, data.labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*")
    print("| queries | in truth | number | taken for paraphrases | warned |")
    print("| --- | --- | ---: | ---: | --- |")
    for truth, asked in rows(parser.parse_args().collections):
        alike = paraphrases(asked.queries, asked.labels)
        share = len(alike.queries) / alike.compared
        print(f"| {asked.name} | {truth} | {alike.compared:,} | {share:.0%} | {'yes' if share >= MANY else 'no'} |")


if __name__ == "__main__":
    main()
