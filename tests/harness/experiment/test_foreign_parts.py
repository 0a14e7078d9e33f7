"""An encoder, a reranker, a whole retriever and a store of another package: one file there, none here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from harness.experiment import parse
from harness.experiment.schema import experiment_schema
from harness.pipeline import run
from harness.running.forecast import Options
from retrievers.errors import InputError
from tests.support import small
from tests.support.small import planned

PACKAGE = '''
"""What somebody else wrote: one class with described options, others with keyword arguments."""

import numpy as np
from pydantic import Field

from retrievers.options import Configured
from retrievers.types import Embedded, Encoder, PairScores, Price, Reranker, Retriever, Store, ranked


class Lengths(Configured, Encoder):
    """Vectors of how often each vowel stands in a text."""

    vowels: str = "aeiou"
    own_price: float | None = Field(default=None, alias="price", description="Dollars for a million tokens.")

    @property
    def fingerprint(self):
        return f"vowels-{self.vowels}"

    @property
    def provenance(self):
        return {"model": "vowels"}

    @property
    def price(self):
        return None if self.own_price is None else Price(self.own_price, "their own page")

    def embed(self, texts, role, call):
        vectors = np.array([[text.count(one) for one in self.vowels] for text in texts], dtype=np.float32)
        tokens = np.array([len(text) for text in texts])
        call.meter.count(calls=1, tokens=int(tokens.sum()))
        return Embedded(vectors, tokens, np.zeros(len(texts), dtype=np.int64))


class Shorter(Reranker):
    """Prefers short documents."""

    def __init__(self, *, depth: int = 3) -> None:
        self._depth = depth

    @property
    def fingerprint(self):
        return "shorter"

    @property
    def depth(self):
        return self._depth

    def score(self, pairs, call):
        call.meter.count(calls=1)
        scores = np.array([-float(len(document)) for _, document in pairs])
        return PairScores(scores, *np.ones((2, len(pairs)), dtype=np.int64))


class Plain(Store):
    """Compares every vector of a query with every one that is kept."""

    forms = ("dense",)

    def __init__(self, opening):
        self._place = opening.options.location

    @property
    def facts(self):
        return {"plain": self._place}

    def create(self, dimensions, *, anew=False):
        self._ids, self._rows = [], []

    def upsert(self, ids, vectors, fields=()):
        self._ids += ids
        self._rows += [vector / np.linalg.norm(vector) for vector in vectors]

    def finish(self, notes):
        pass

    def search(self, vectors, limit, *, exact=False, wanted=()):
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return [ranked(self._ids, row, limit) for row in units @ np.array(self._rows).T]


class Overlap(Retriever):
    """Ranks by the words in common."""

    def __init__(self, *, folded: bool = False) -> None:
        pass

    @property
    def provenance(self):
        return {"system": "overlap 1.0"}

    def index(self, documents, meter):
        self._words = {document.id: set(document.content.split()) for document in documents}

    def search(self, queries, depth, meter):
        meter.count(calls=len(queries))
        return [
            ranked(list(self._words), [float(len(set(query.text.split()) & words)) for words in self._words.values()],
                   depth)
            for query in queries
        ]
'''
POINTS = """
[retriever_harness.stores]
plain = theirs:Plain
[retriever_harness.encoders]
vowels = theirs:Lengths
[retriever_harness.rerankers]
shorter = theirs:Shorter
[retriever_harness.retrievers]
overlap = theirs:Overlap
"""
FILTERED = """
[[retrievers]]
name = "overlap"
kind = "overlap"

[[retrievers]]
name = "of-trees"
kind = "overlap"
filter = { of = "trees" }
"""
BLOCKS = """
[[retrievers]]
name = "vowels"
encoder = { kind = "vowels", vowels = "aeiou", price = 2 }

[[retrievers]]
name = "overlap"
kind = "overlap"

[[retrievers]]
name = "hybrid"
kind = "fusion"
of = ["vowels", "overlap"]

[[retrievers]]
name = "short"
of = "overlap"
rerank = { kind = "shorter", depth = 2 }
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, points: str) -> None:
    """Leave a distribution with entry points as pip would, and a cache of its own."""
    info = folder / "site" / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "site" / "theirs.py").write_text(package, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder / "site"))
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, PACKAGE, POINTS)


def experiment(blocks: list[dict[str, object]]) -> dict[str, object]:
    return {"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"], "retrievers": blocks}


def test_a_retriever_of_theirs_is_filtered_in_a_run(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    rows = [
        {"_id": id_, "text": text, "of": "trees" if "trees" in text else "else"} for id_, text in small.TEXTS.items()
    ]
    for name, lines in (("corpus", rows), ("queries", [{"_id": q, "text": text} for q, text, _ in small.QUERIES])):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    labels = "".join(f"{q}\t{doc}\t1\n" for q, _, documents in small.QUERIES for doc in documents)
    (data / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{labels}", encoding="utf-8")
    results = run(small.experiment(tmp_path, retrievers=FILTERED), Options(tmp_path / "out"))
    assert results.manifest.retrievers["of-trees"].provenance["filter"] == '{"of": ["trees"]}'
    found = [set(ranking.doc_ids) for ranking in results.rankings("of-trees").values()]
    assert found == [{"apple", "pear"}] * len(small.QUERIES)


def test_they_run_cost_and_are_described_like_any_other(tmp_path: Path) -> None:
    path = small.experiment(tmp_path, retrievers=BLOCKS, more="[latency]\nsample = 2")
    found = planned(path, results=tmp_path / "out")
    results = run(path, Options(tmp_path / "out"))
    assert results.retrievers == ("vowels", "overlap", "hybrid", "short")
    described = {name: dict(facts.provenance) for name, facts in results.manifest.retrievers.items()}
    assert described["vowels"].items() >= {"model": "vowels", "usd_per_million_tokens": "2"}.items()
    assert described["overlap"] == {"system": "overlap 1.0"}
    assert described["short"] == {"reranker usd_per_million_tokens": "0", "reranker depth": "2"}
    costs = {(row["retriever"], row["stage"]): row for row in results.costs.to_dict("records")}
    assert costs["vowels", "embed-documents"]["tokens"] > 0
    assert costs["short", "rerank"]["calls"] == 1
    assert {stage for name, stage in costs if name == "overlap"} == {"index", "search", "latency"}
    assert costs["overlap", "search"]["calls"] == len(small.QUERIES)
    assert costs["overlap", "index"]["seconds"] > 0
    assert [row.usd for row in found.rows if row.retriever == "vowels"] == [
        pytest.approx(row.tokens * 2e-6) for row in found.rows if row.retriever == "vowels"
    ]
    first, second = results.rankings("overlap")["q-fruit"], results.rankings("short")["q-fruit"]
    assert set(first.doc_ids[:2]) == set(second.doc_ids[:2])
    assert [len(small.TEXTS[name]) for name in second.doc_ids[:2]] == sorted(
        len(small.TEXTS[name]) for name in first.doc_ids[:2]
    )


def test_a_store_is_named_by_a_word_or_by_its_scheme(tmp_path: Path) -> None:
    block = '[[retrievers]]\nname = "{}"\nencoder = {{ kind = "hashing", dimensions = 64 }}\nstore = "{}"\n'
    places = {"word": "plain", "scheme": "plain://there", "ours": ":memory:"}
    path = small.experiment(tmp_path, retrievers="".join(block.format(*pair) for pair in places.items()))
    results = run(path, Options(tmp_path / "out"))
    for name in ("word", "scheme"):
        assert results.manifest.retrievers[name].provenance.items() >= {"plain": places[name]}.items()
        for query, ranking in results.rankings("ours").items():
            assert results.rankings(name)[query].doc_ids == ranking.doc_ids
    with pytest.raises(InputError, match="runs code: store = plain, of another package"):
        run(path, Options(tmp_path / "out", code=False))
    sparse = {"name": "s", "kind": "sparse", "encoder": {"kind": "sparse-encoder", "model": "m"}, "store": "plain"}
    with pytest.raises(InputError, match="'plain' does not keep sparse vectors"):
        parse(experiment([sparse]))


def test_their_options_stand_in_the_schema() -> None:
    schema = experiment_schema()
    tables, validator = schema["$defs"], jsonschema.Draft202012Validator(schema)
    kinds = {
        name: json.dumps([tables[one["$ref"].rpartition("/")[2]] for one in tables[name]["oneOf"]])
        for name in ("Encoder", "Reranker", "Standalone")
    }
    assert '"Dollars for a million tokens."' in kinds["Encoder"]
    assert '"depth": {"default": 3, "type": "integer"}' in kinds["Reranker"]
    assert '"folded": {"default": false, "type": "boolean"}' in kinds["Standalone"]
    good = experiment([{"name": "a", "encoder": {"kind": "vowels"}}, {"name": "b", "kind": "overlap", "folded": True}])
    parse(good)
    validator.validate(good)
    for wrong in ({"name": "a", "encoder": {"kind": "vowels", "vowel": "a"}}, {"name": "b", "kind": "overlap", "f": 1}):
        with pytest.raises(InputError, match="unknown key"):
            parse(experiment([wrong]))
        assert not validator.is_valid(experiment([wrong]))


def test_one_that_cannot_be_loaded_is_one_message(tmp_path: Path) -> None:
    with (tmp_path / "site" / "theirs-1.0.dist-info" / "entry_points.txt").open("a", encoding="utf-8") as points:
        points.write("broken = theirs:NotThere\n")
    importlib.invalidate_caches()
    with pytest.raises(InputError, match="retriever 'broken' cannot be loaded"):
        parse(experiment([{"name": "a", "kind": "broken"}]))


def test_a_limit_of_costs_needs_every_price(tmp_path: Path) -> None:
    path = small.experiment(tmp_path, retrievers='[[retrievers]]\nname = "v"\nencoder = { kind = "vowels" }\n')
    with pytest.raises(InputError, match=r"retriever 'v': encoder.price: .*--max-cost cannot be kept"):
        run(path, Options(tmp_path / "out", max_cost=1.0))
    assert run(path, Options(tmp_path / "out")).manifest.retrievers["v"].provenance.get("model") == "vowels"
    assert "usd_per_million_tokens" not in run(path, Options(tmp_path / "out")).manifest.retrievers["v"].provenance
