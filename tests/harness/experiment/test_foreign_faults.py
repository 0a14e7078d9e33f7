"""Parts of other packages that fail, forget something, or do less than ours: told, counted, and never believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.evaluation.costs import costs_of
from harness.experiment import parse
from harness.pipeline import run
from harness.report.sections.reranked import reranked
from harness.report.view import view_of
from harness.running.check import check
from harness.running.cluster import tasks_of
from harness.running.forecast import Options
from retrievers import bm25
from retrievers.errors import InputError
from tests.harness.experiment.test_foreign_parts import install
from tests.support import small
from tests.support.small import BM25

PACKAGE = '''
"""Parts that somebody else wrote, none of them with care."""

import numpy as np

from retrievers.ragged import SparseVectors
from retrievers.resources import Corpus, Resources
from retrievers.types import Embedded, Encoder, Limits, PairScores, Price, Reranker, Retriever, ranked


class Service(Encoder):
    """An encoder behind a network; every text is too long for it."""

    def __init__(self, *, usd: float = 0.0, key: str = "there") -> None:
        """Describe it.

        Args:
            usd: dollars for a million tokens; 0 where the author forgot to say.
            key: what it needs.
        """
        self._usd = usd
        self._key = key

    @property
    def fingerprint(self):
        return "service"

    @property
    def limits(self):
        return Limits(2, 0, 0, 10, 512)

    @property
    def price(self):
        return Price(self._usd, "its page") if self._usd else super().price

    def check(self):
        if self._key != "there":
            raise ConnectionError("no route to the key")

    def embed(self, texts, role, call):
        vectors = np.array([[text.count(one) + 1 for one in "aeiou"] for text in texts], dtype=np.float32)
        tokens = np.array([len(text) for text in texts])
        call.meter.count(calls=1, tokens=int(tokens.sum()), usd=float(tokens.sum()) * self._usd / 1e6)
        return Embedded(vectors, tokens, np.ones(len(texts), dtype=np.int64))


class Sparse(Encoder):
    """Gives sparse vectors and does not say so."""

    def __init__(self) -> None:
        """Nothing to describe."""

    @property
    def fingerprint(self):
        return "sparse"

    def embed(self, texts, role, call):
        vectors = np.array([[text.count(one) for one in "aeiou"] for text in texts], dtype=np.float32)
        return Embedded(SparseVectors.of(vectors), *np.ones((2, len(texts)), dtype=np.int64))


class First(Reranker):
    """Reads one candidate of each query, which no option says."""

    def __init__(self) -> None:
        """Nothing to describe."""

    @property
    def fingerprint(self):
        return "first"

    @property
    def depth(self):
        return 1

    def score(self, pairs, call):
        return PairScores(np.zeros(len(pairs)), *np.ones((2, len(pairs)), dtype=np.int64))


class System(Retriever):
    """Ranks by the words in common."""

    def __init__(self, *, price: float = 0.0, cached: bool = False, fault: str = "", size: int = 1) -> None:
        """Describe it.

        Args:
            price: dollars for a million tokens.
            cached: whether it answers from a cache of its own.
            fault: what it does wrong.
            size: of something, above 0.
        """
        if size < 1:
            raise ValueError(f"size is {size}")
        self._price, self._cached, self._fault, self._asked = price, cached, fault, 0

    @property
    def provenance(self):
        return {"usd_per_million_tokens": str(self._price)} if self._price else {}

    def index(self, documents, meter):
        self._words = {document.id: set(document.content.split()) for document in documents}

    def search(self, queries, depth, meter):
        if self._fault == "raises":
            raise ConnectionError("their server is down")
        if self._price:
            spent = {"cached": len(queries)} if self._cached else {"usd": self._price * 1000 / 1e6}
            meter.count(texts=len(queries), tokens=1000, **spent)
        answers = [self._found(query) for query in queries]
        return answers if self._fault else [ranked(one.doc_ids, one.scores, depth) for one in answers]

    def _found(self, query):
        words = set(query.text.split())
        ids, scores = list(self._words), [float(len(words & theirs)) for theirs in self._words.values()]
        if self._fault == "deep":
            ids, scores = [*ids, "ghost"], [*scores, 99.0]
        if self._fault == "twice":
            ids, scores = [*ids, ids[0]], [*scores, 0.5]
        return ranked(ids, scores)

    def answer(self, query, depth, meter):
        self._asked += 1
        with meter.stage("expand" if self._fault == "stages" and self._asked > 4 else "search"):
            return self.search([query], depth, meter)[0]


class Clashing(System):
    """Has an option that every experiment has too."""

    def __init__(self, *, store: str = "somewhere") -> None:
        """Describe it.

        Args:
            store: where its index is.
        """
        super().__init__()
'''
POINTS = """
[retriever_harness.encoders]
service = theirs:Service
sparse = theirs:Sparse
hashing = theirs:Sparse
[retriever_harness.rerankers]
first = theirs:First
[retriever_harness.retrievers]
system = theirs:System
clashing = theirs:Clashing
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, PACKAGE, POINTS)


def ran(folder: Path, blocks: str, more: str = ""):
    return run(small.experiment(folder, retrievers=blocks, more=more), Options(folder / "out"))


def test_an_equal_first_stage_costs_and_notes_the_same(tmp_path):
    encoder = 'encoder = { kind = "service", usd = 5 }'
    blocks = f'[[retrievers]]\nname = "plain"\n{encoder}\n[[retrievers]]\nname = "again"\n{encoder}\n'
    results = ran(tmp_path, blocks + 'rerank = { kind = "first" }\n')
    costs, ledger = costs_of(results), results.manifest.ledger.retrievers
    spent = sum(len(text) for _, text, _ in small.QUERIES) * 5e-6
    assert costs["plain"].usd_per_million == pytest.approx(spent / len(small.QUERIES) * 1e6)
    assert costs["again"].usd_per_million == pytest.approx(costs["plain"].usd_per_million)
    assert costs["again"].usd == 0  # asked and paid once
    assert {kind: len(ids) for kind, ids in ledger["plain"].notes.items()} == {"truncated": 6, "truncated-query": 6}
    assert ledger["again"].notes.items() >= ledger["plain"].notes.items()


def test_a_whole_retriever_costs_what_it_says_or_nobody_knows_what(tmp_path):
    systems = {"paid": "price = 10", "cached": "price = 10\ncached = true", "silent": ""}
    blocks = "".join(f'[[retrievers]]\nname = "{name}"\nkind = "system"\n{more}\n' for name, more in systems.items())
    costs = costs_of(ran(tmp_path, BM25 + blocks))
    assert costs["bm25"].usd_per_million == 0
    assert costs["paid"].usd_per_million == pytest.approx(1000 / len(small.QUERIES) * 10)
    assert costs["cached"].usd_per_million == pytest.approx(costs["paid"].usd_per_million)
    assert costs["silent"].usd_per_million is None


def test_what_it_raises_is_its_own_failure(tmp_path):
    fails = '[[retrievers]]\nname = "fails"\nkind = "system"\nfault = "raises"\n'
    results = ran(tmp_path, fails + BM25)
    assert results.retrievers == ("bm25",)
    said = results.manifest.failed["fails"]
    assert said.startswith("System: ConnectionError: their server is down (theirs.py:")


def test_a_fault_of_our_own_ends_its_retriever_alone_too(tmp_path, monkeypatch):
    monkeypatch.setattr(bm25.BM25, "search", lambda *_: 1 / 0)
    results = ran(tmp_path, BM25 + '[[retrievers]]\nname = "system"\nkind = "system"\n')
    assert results.retrievers == ("system",)
    assert results.manifest.failed["bm25"].startswith("ZeroDivisionError: division by zero (test_foreign_faults.py:")


def test_short_memory_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(bm25.BM25, "search", lambda *_: (_ for _ in ()).throw(MemoryError))
    results = ran(tmp_path, BM25 + '[[retrievers]]\nname = "system"\nkind = "system"\n')
    assert 'store = "edge"' in results.manifest.failed["bm25"]


def test_what_it_raises_where_it_is_built_or_checked_is_one_problem(tmp_path):
    refused = '[[retrievers]]\nname = "a"\nkind = "system"\nsize = 0\n'
    with pytest.raises(InputError, match="retriever 'a': kind: its options are refused: System: ValueError: size is 0"):
        ran(tmp_path, refused)
    keyless = '[[retrievers]]\nname = "b"\nencoder = { kind = "service", key = "lost" }\n'
    path = small.experiment(tmp_path, retrievers=keyless, name="keyless")
    with pytest.raises(InputError, match="retriever 'b': check: Service: ConnectionError: no route to the key"):
        run(path, Options(tmp_path / "out"))
    assert [line for line in check(path).warnings if "no route to the key" in line and "not cached" in line]
    with pytest.raises(InputError) as raised:
        tasks_of(path, limited=True)
    key, price = map(str, raised.value.problems)
    assert "retriever 'b': check: Service: ConnectionError: no route to the key" in key
    assert "retriever 'b': encoder.price: the price of the model is not known" in price


def test_a_ranking_that_is_too_long_is_cut_and_strangers_in_it_are_noted(tmp_path):
    results = ran(tmp_path, BM25 + '[[retrievers]]\nname = "deep"\nkind = "system"\nfault = "deep"\n')
    assert {len(ranking) for ranking in results.rankings("deep").values()} == {5}
    assert results.manifest.ledger.retrievers["deep"].notes["not-in-corpus"] == ("ghost",)
    twice = ran(tmp_path, BM25 + '[[retrievers]]\nname = "deep"\nkind = "system"\nfault = "twice"\n')
    assert twice.manifest.failed["deep"] == "query 'q-fruit' has a document twice"


def test_a_stage_that_only_some_queries_pass_is_timed(tmp_path):
    block = '[[retrievers]]\nname = "stages"\nkind = "system"\nfault = "stages"\n'
    results = ran(tmp_path, BM25 + block, more="[latency]\nsample = 6")
    timed = results.costs[(results.costs.retriever == "stages") & results.costs.p50_ms.notna()]
    assert set(timed.stage) == {"search", "expand"}


def test_the_ceiling_is_of_the_candidates_that_were_read(tmp_path):
    block = '[[retrievers]]\nname = "first"\nof = "bm25"\nrerank = { kind = "first" }\n'
    results = ran(tmp_path, BM25 + block)
    mean = results.summary.set_index(["retriever", "measure"])["mean"]["bm25", results.manifest.resolved.primary]
    (note,) = results.tests[results.tests.family == "rerank uplift"].note
    assert note == f"ceiling {mean:.4f}"  # one candidate is in order whatever it is
    rerun = reranked(view_of(results))["first"]
    assert rerun.depth == 1
    assert rerun.ceiling is not None
    assert rerun.ceiling.mean() == pytest.approx(mean)


def test_an_option_with_a_name_of_ours_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match="Clashing has an option 'store', which is a word of every experiment"):
        parse({"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"],
               "retrievers": [{"name": "a", "kind": "clashing", "store": "there"}]})  # fmt: skip


def test_a_kind_of_two_packages_is_refused():
    with pytest.raises(InputError, match=r"encoder 'hashing' is the name of several: retrievers.*, theirs:Sparse"):
        parse({"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"],
               "retrievers": [{"name": "a", "encoder": {"kind": "hashing"}}]})  # fmt: skip


def test_vectors_of_another_form_are_named(tmp_path):
    results = ran(tmp_path, BM25 + '[[retrievers]]\nname = "a"\nencoder = { kind = "sparse" }\n')
    assert results.manifest.failed["a"] == "sparse vectors came back from an encoder of dense ones"
