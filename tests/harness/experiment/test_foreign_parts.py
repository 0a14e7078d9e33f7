"""Parts of another package.

They take one file there and none here; a part that fails is reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.console.check_text import warning_text
from harness.evaluation.costs import price_points, retriever_costs
from harness.experiment import parse_experiment
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.records import Results
from harness.running.embedding_tasks import embedding_tasks
from harness.running.options import RunOptions
from retrievers import bm25
from retrievers.errors import InputError
from retrievers.types import stored_facts
from tests.support import small
from tests.support.small import BM25, planned, refusal
from tests.support.theirs import BAD, install


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)


def block(name: str, *lines: str, kind: str = "overlap") -> str:
    return "\n".join(
        [
            "[[retrievers]]",
            f'name = "{name}"',
            *([f'kind = "{kind}"'] if kind else []),
            *lines,
            "",
        ]
    )


def ran(folder: Path, *blocks: str, more: str = "") -> Results:
    return run(
        small.experiment(folder, retrievers="".join(blocks), more=more),
        RunOptions(folder / "out"),
    )


def experiment(*blocks: dict[str, object]) -> dict[str, object]:
    return {
        "name": "x",
        "dataset": "d",
        "primary": "RR",
        "measures": ["RR"],
        "retrievers": [*blocks],
    }


def test_a_retriever_of_theirs_is_filtered_in_a_run(tmp_path: Path) -> None:
    data = small.dataset(tmp_path / "data")
    for name, text in small.TEXTS.items():
        kind = "trees" if "trees" in text else "else"
        (data / f"{name}.md").write_text(
            f"---\nof: {kind}\n---\n{text}", encoding="utf-8"
        )
    results = ran(
        tmp_path, block("all"), block("of-trees", 'filter = { of = "trees" }')
    )
    assert (
        results.manifest.retrievers["of-trees"].provenance.conditions
        == '{"of": ["trees"]}'
    )
    id_sets = [
        set(ranking.doc_ids) for ranking in results.rankings("of-trees").values()
    ]
    assert id_sets == [{"apple", "pear"}] * len(small.QUERIES)


@pytest.fixture
def foreign_experiment(tmp_path: Path) -> Path:
    """An experiment with an encoder, a retriever and a reranker of the package."""
    blocks = [
        block("vowels", 'encoder = { kind = "vowels", price = 2 }', kind=""),
        block("overlap"),
        block("hybrid", 'of = ["vowels", "overlap"]', kind="fusion"),
        block(
            "short",
            'of = "overlap"',
            'rerank = { kind = "shorter", depth = 2 }',
            kind="",
        ),
    ]
    latency = "[latency]\nsample = 2"
    return small.experiment(tmp_path, retrievers="".join(blocks), more=latency)


def test_the_price_of_a_foreign_encoder_is_planned(
    foreign_experiment: Path, tmp_path: Path
) -> None:
    plan = planned(foreign_experiment, results=tmp_path / "out")

    rows = [row for row in plan.rows if row.retriever == "vowels"]
    prices = [pytest.approx(row.tokens * 2e-6) for row in rows]
    assert [row.usd for row in rows] == prices


def test_foreign_parts_are_described_in_the_manifest(
    foreign_experiment: Path, tmp_path: Path
) -> None:
    results = run(foreign_experiment, RunOptions(tmp_path / "out"))

    assert results.retrievers == ("vowels", "overlap", "hybrid", "short")
    facts = results.manifest.retrievers
    vowels = stored_facts(facts["vowels"].provenance)
    assert (vowels["model"], vowels["usd_per_million_tokens"]) == ("vowels", "2")
    assert stored_facts(facts["overlap"].provenance) == {"system": "overlap 1.0"}
    assert stored_facts(facts["short"].provenance) == {
        "reranker usd_per_million_tokens": "0",
        "reranker depth": "2",
    }


def test_foreign_parts_have_costs(foreign_experiment: Path, tmp_path: Path) -> None:
    results = run(foreign_experiment, RunOptions(tmp_path / "out"))

    costs = {}
    for row in results.costs.to_dict("records"):
        costs[row["retriever"], row["stage"]] = row
    assert costs["vowels", "embed-documents"]["tokens"] > 0
    assert costs["short", "rerank"]["calls"] == 1
    assert costs["overlap", "search"]["calls"] == len(small.QUERIES)
    assert costs["overlap", "index"]["seconds"] > 0
    stages = {stage for retriever, stage in costs if retriever == "overlap"}
    assert stages == {"index", "search", "latency"}


def test_a_foreign_reranker_orders_the_first_hits(
    foreign_experiment: Path, tmp_path: Path
) -> None:
    results = run(foreign_experiment, RunOptions(tmp_path / "out"))

    first_hits = results.rankings("overlap")["q-fruit"].doc_ids[:2]
    reranked = results.rankings("short")["q-fruit"].doc_ids[:2]
    assert [*reranked] == sorted(first_hits, key=lambda id_: len(small.TEXTS[id_]))


def test_a_store_is_named_by_a_word_or_by_its_scheme(tmp_path: Path) -> None:
    places = {"word": "plain", "scheme": "plain://there", "ours": ":memory:"}
    encoder = 'encoder = { kind = "hashing", dimensions = 64 }'
    results = ran(
        tmp_path,
        *(
            block(name, encoder, f'store = "{location}"', kind="")
            for name, location in places.items()
        ),
    )
    for name in ("word", "scheme"):
        assert (
            stored_facts(results.manifest.retrievers[name].provenance).items()
            >= {"plain": places[name]}.items()
        )
        for query, ranking in results.rankings("ours").items():
            assert results.rankings(name)[query].doc_ids == ranking.doc_ids
    with pytest.raises(
        InputError, match="runs code: store = plain, of another package"
    ):
        run(tmp_path / "small.toml", RunOptions(tmp_path / "out", allow_code=False))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"name": "a", "kind": "broken"}, "retriever 'broken' cannot be loaded"),
        (
            {"name": "a", "kind": "clashing", "store": "there"},
            "Clashing has an option 'store', which is a word of every experiment",
        ),
        (
            {
                "name": "s",
                "kind": "sparse",
                "encoder": {"kind": "sparse-encoder", "model": "m"},
                "store": "plain",
            },
            "'plain' does not keep sparse vectors",
        ),
    ],
)
def test_what_cannot_be_taken_is_one_message_before_anything_runs(
    tmp_path, monkeypatch, block, message
) -> None:
    install(tmp_path, monkeypatch, BAD)
    with pytest.raises(InputError, match=message) as caught:
        parse_experiment(experiment(block))
    assert len(caught.value.problems) == 1


def test_an_equal_first_stage_costs_and_notes_the_same(tmp_path: Path) -> None:
    encoder = 'encoder = { kind = "vowels", price = 5 }'
    again = block("again", encoder, 'rerank = { kind = "first" }', kind="")
    results = ran(tmp_path, block("plain", encoder, kind=""), again)
    costs = retriever_costs(results)
    ledger = results.manifest.ledger.retrievers
    spent = sum(len(text) for _, text, _ in small.QUERIES) * 5e-6
    assert costs["plain"].usd_per_million == pytest.approx(
        spent / len(small.QUERIES) * 1e6
    )
    assert costs["again"].usd_per_million == pytest.approx(
        costs["plain"].usd_per_million
    )
    assert costs["again"].usd == 0  # asked and paid once
    assert {kind: len(ids) for kind, ids in ledger["plain"].notes.items()} == {
        "truncated": 6,
        "truncated-query": 6,
    }
    assert ledger["again"].notes.items() >= ledger["plain"].notes.items()


def test_trials_do_not_make_a_query_dearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = (
        "def search(queries, depth):\n    return [['apple', 'car'] for _ in queries]"
    )
    call = f'call = "{small.module(tmp_path, monkeypatch, search)}:search"'
    rerank = 'rerank = { kind = "shorter", depth = 2 }'
    reranked = block("reranked", call, rerank, "trials = 3", kind="python")
    results = ran(tmp_path, BM25, reranked)
    queries = len(small.QUERIES)
    billed = [
        row._replace(usd=0.5 * (row.texts - row.cached))
        if row.stage == "rerank"
        else row
        for row in results.cost_rows
        if (row.retriever, row.stage) != ("reranked", "search")  # its price is unknown
    ]
    assert {row.texts for row in billed if row.stage == "rerank"} == {3 * 2 * queries}
    price = price_points(results.manifest, billed)["reranked"]
    assert price.usd_per_million == pytest.approx(0.5 * 2 * 1e6)


def test_a_whole_retriever_costs_what_it_says_or_nobody_knows_what(
    tmp_path: Path,
) -> None:
    blocks = (
        block("paid", "price = 10"),
        block("cached", "price = 10", "cached = true"),
        block("silent"),
    )
    costs = retriever_costs(ran(tmp_path, BM25, *blocks))
    assert costs["bm25"].usd_per_million == 0
    assert costs["paid"].usd_per_million == pytest.approx(
        1000 / len(small.QUERIES) * 10
    )
    assert costs["cached"].usd_per_million == pytest.approx(
        costs["paid"].usd_per_million
    )
    assert costs["silent"].usd_per_million is None


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (
            block("it", 'fault = "raises"'),
            "Overlap: ConnectionError: their server is down (theirs.py:",
        ),
        (block("it", 'fault = "twice"'), "query 'q-fruit' has a document twice"),
        (
            block("it", 'encoder = { kind = "sparse" }', kind=""),
            "returned sparse vectors; its form is dense",
        ),
        (
            ZeroDivisionError("by zero"),
            "ZeroDivisionError: by zero (test_foreign_parts.py:",
        ),  # a fault of our own
    ],
)
def test_what_fails_ends_its_retriever_alone(
    tmp_path, monkeypatch, failing, message
) -> None:
    def fails(*_):
        raise failing

    is_own_error = isinstance(failing, Exception)
    if is_own_error:
        monkeypatch.setattr(bm25.BM25, "search", fails)
    results = ran(tmp_path, BM25, block("fine") if is_own_error else failing)
    assert results.retrievers == (("fine",) if is_own_error else ("bm25",))
    (failure,) = results.manifest.failed
    assert message in failure.reason


def test_what_it_raises_where_it_is_built_or_checked_is_one_problem(
    tmp_path: Path,
) -> None:
    reason = "Overlap: ValueError: size is"
    message = f"retriever 'a': kind: its options are refused: {reason}"
    with pytest.raises(InputError, match=message):
        ran(tmp_path, block("a", "size = 0"))
    keyless = block("b", 'encoder = { kind = "vowels", key = "lost" }', kind="")
    path = small.experiment(tmp_path, retrievers=keyless, name="keyless")
    lost = "retriever 'b': check: Vowels: ConnectionError: no route to the key"
    with pytest.raises(InputError, match=lost):
        run(path, RunOptions(tmp_path / "out"))
    free = small.experiment(
        tmp_path,
        retrievers=block("b", 'encoder = { kind = "vowels" }', kind=""),
        name="free",
    )
    assert (
        run(free, RunOptions(tmp_path / "out"))
        .manifest.retrievers["b"]
        .provenance.model.price
        is None
    )
    with pytest.raises(
        InputError, match=r"retriever 'b': encoder.price: .*cannot be kept .*--max-cost"
    ):
        run(free, RunOptions(tmp_path / "out", max_cost=1.0))
    assert [
        line
        for line in map(warning_text, check_target(path).warnings)
        if "no route to the key" in line and "not cached" in line
    ]
    key, price = map(str, refusal(embedding_tasks, path, limited=True).problems)
    assert (
        lost in key
        and "retriever 'b': encoder.price: the price of vowels is not known" in price
    )


def test_a_ranking_that_is_too_long_is_cut_and_strangers_in_it_are_noted(
    tmp_path: Path,
) -> None:
    results = ran(tmp_path, BM25, block("deep", 'fault = "deep"'))
    assert {len(ranking) for ranking in results.rankings("deep").values()} == {5}
    assert results.manifest.ledger.retrievers["deep"].notes["not-in-corpus"] == (
        "ghost",
    )


def test_two_functions_under_one_name_of_the_cache_are_refused(tmp_path):
    """The second would be given the vectors of the first."""
    encoder = '{{ kind = "python", call = "mine:{0}", cache = "v1" }}'
    blocks = [
        block(name, f"encoder = {encoder.format(name)}", kind="") for name in "ab"
    ]
    problem = "encoder.cache: 'v1' is the name of mine:a and of mine:b"
    assert problem in str(refusal(ran, tmp_path, *blocks))
