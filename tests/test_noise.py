"""The floor of noise: how far a mean moves when the same texts are embedded again in other ways."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness import records
from harness.pipeline import run
from harness.running import components
from harness.running.noise import measure_noise
from harness.running.options import Options
from retrievers.encoders.hashing import HashingEncoder
from retrievers.meter import Call
from retrievers.types import Embedded, Role, Vectors
from tests import layouts, small
from tests.recompute import score
from tests.servers import OpenAIProvider, serving
from tests.small import ended, ends
from tests.test_foreign_parts import PACKAGE, POINTS, install

pytestmark = pytest.mark.usefixtures("own_cache")

ENCODED = '[[retrievers]]\nname = "hashing"\nencoder = { kind = "hashing", dimensions = 64 }\n'


def ran(folder: Path, retrievers: str = ENCODED) -> tuple[Path, Options]:
    experiment, options = small.experiment(folder, retrievers=retrievers), Options(folder / "out")
    run(experiment, options)
    return experiment, options


def test_noise_of_a_known_size_gives_the_floor_that_enumeration_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[dict[str, Vectors]] = []

    class Noisy(HashingEncoder):
        """Every loading of it adds other noise, of a standard deviation of 0.1 a number."""

        def __init__(self, *, dimensions: int = 64) -> None:
            super().__init__(dimensions=dimensions)
            handed.append({})
            self._given, self._random = handed[-1], np.random.default_rng(len(handed))

        def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
            vectors, tokens, cut = super().embed(texts, role, call)
            moved = (vectors + self._random.normal(0, 0.1, vectors.shape)).astype(np.float32)
            self._given.update(zip(texts, moved, strict=True))
            return Embedded(moved, tokens, cut)

    monkeypatch.setattr(components, "encoder_class", lambda kind: Noisy)
    experiment, options = ran(tmp_path, small.RETRIEVERS)
    results = measure_noise(experiment, options=options)
    assert list(results.manifest.noise) == ["hashing", "hybrid"]
    grades, words = results.grades(), results.rankings("bm25")
    texts = {id_: next(one for one in handed[0] if text in one) for id_, text in small.TEXTS.items()}

    def best_first(given: dict[str, Vectors], question: str) -> list[str]:
        cosines = {
            id_: float(given[text] @ given[question] / np.linalg.norm(given[text])) for id_, text in texts.items()
        }
        return sorted(cosines, key=lambda id_: (-cosines[id_], id_))[:5]

    whole = [given for given in handed if len(given) == len(texts) + len(small.QUERIES)]
    rankings = [{id_: best_first(given, text) for id_, text, _ in small.QUERIES} for given in whole]
    means = [statistics.fmean(score("nDCG@3", of[id_], grades[id_]) or 0 for id_ in grades) for of in rankings]
    found, fused = results.manifest.noise["hashing"], results.manifest.noise["hybrid"]
    assert list(fused.means.values()) == pytest.approx(
        [
            statistics.fmean(score("nDCG@3", by_ranks(words[id_].doc_ids, of[id_]), grades[id_]) or 0 for id_ in grades)
            for of in rankings
        ],
        abs=1e-12,
    )
    assert list(found.means) == ["as in the run", "reverse order", "one thread"]
    assert list(found.means.values()) == pytest.approx(means, abs=1e-12)
    assert found.deviation == pytest.approx(statistics.stdev(means))
    assert found.largest == pytest.approx(max(abs(mean - means[0]) for mean in means))
    moved = {id_ for of in rankings[1:] for id_ in of if of[id_] != rankings[0][id_]}
    assert found.moved == pytest.approx(len(moved) / len(small.QUERIES))
    assert found.deviation > 0 < fused.deviation


def by_ranks(*lists: Sequence[str]) -> list[str]:
    """Reciprocal rank fusion with the constant 60, ties by id, the last first."""
    sums = {id_: sum(1 / (60 + of.index(id_) + 1) for of in lists if id_ in of) for of in lists for id_ in of}
    return sorted(sums, key=lambda id_: (round(sums[id_], 12), id_), reverse=True)


def test_what_computes_the_same_has_no_noise_and_a_later_run_keeps_what_was_measured(tmp_path: Path) -> None:
    experiment, options = ran(tmp_path)
    measured = measure_noise(experiment, ["hashing"], queries=4, options=options).manifest.noise
    assert (measured["hashing"].deviation, measured["hashing"].moved) == (0, 0)
    assert (measured["hashing"].queries, measured["hashing"].documents) == (4, 6)
    assert run(experiment, options).manifest.noise == measured
    assert run(experiment, options._replace(fresh=True)).manifest.noise == {}


def test_a_service_is_asked_five_times_again(tmp_path: Path) -> None:
    with serving(OpenAIProvider()) as provider:
        block = (
            f'[[retrievers]]\nname = "api"\nencoder = {{ kind = "openai", model = "m", base_url = "{provider.url}" }}\n'
        )
        experiment, options = ran(tmp_path, block)
        before = len(provider.requests)
        found = measure_noise(experiment, options=options).manifest.noise["api"]
        assert len(provider.requests) - before == 5 * before
    assert list(found.means)[1:] == [f"asked again ({number})" for number in range(1, 6)]


def test_a_difference_below_twice_the_floor_carries_the_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment, _ = ran(tmp_path, small.RETRIEVERS)
    words = ("noise", experiment, "--results", tmp_path / "out")
    assert json.loads(small.told(capsys, *words, "--json", "--quiet"))["noise"]["hashing"]["largest"] == 0
    folder = tmp_path / "out" / "small"
    manifest = records.read_manifest(folder)
    floor = manifest.noise["hashing"]
    records.rewrite_manifest(folder, replace(manifest, noise={"hashing": replace(floor, deviation=0.4)}))
    said = small.told(capsys, *words, "--retriever", "bm25", code=2)
    assert "'bm25' is not a retriever that a model has a part in and that has answered" in said
    assert ended("report", folder) == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "is below twice the floor of noise" in page


@pytest.mark.parametrize(
    ("retrievers", "arguments", "message"),
    [
        ('[[retrievers]]\nname = "bm25"\nkind = "bm25"\n', [], "no retriever that answered has a model"),
        ('[[retrievers]]\nname = "bm25"\nkind = "bm25"\n', ["--retriever", "bm25"], "no retriever that answered"),
        (ENCODED, ["--results", "elsewhere"], "holds no results of this experiment and this data"),
    ],
)
def test_where_nothing_can_be_measured_one_sentence_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], retrievers: str, arguments: list[str], message: str
) -> None:
    experiment, _ = ran(tmp_path, retrievers)
    assert message in ends(capsys, 2, "noise", experiment, "--results", tmp_path / "out", *arguments).err


def test_what_a_reranker_read_beyond_the_first_hundred_is_in_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, PACKAGE, POINTS)
    texts = {f"d{i}": f"wheels {i}" for i in range(130)}
    asked = [{"id": f"q{i}", "query": f"wheels {i}", "relevant_documents": [f"d{i}"]} for i in range(2)]
    small.markdown(tmp_path / "data", texts, asked)
    layouts.jsonl(
        tmp_path / "run.jsonl",
        [{"query_id": one["id"], "doc_id": id_, "score": -place} for one in asked for place, id_ in enumerate(texts)],
    )
    block = f'[[retrievers]]\nname = "theirs"\nkind = "run"\npath = "{(tmp_path / "run.jsonl").as_posix()}"\n'
    experiment = small.experiment(tmp_path, retrievers=block + 'rerank = { kind = "shorter", depth = 120 }\n')
    experiment.write_text(experiment.read_text().replace("depth = 5\n", "depth = 130\n"))
    options = Options(tmp_path / "out")
    assert not run(experiment, options).manifest.failed
    found = measure_noise(experiment, options=options).manifest.noise["theirs"]
    assert (found.documents, found.deviation) == (120, 0)


def test_a_retriever_that_found_nothing_is_left_out(tmp_path: Path) -> None:
    none = ENCODED.replace('"hashing"', '"none"', 1) + 'filter = { language = "xx" }\n'
    data = tmp_path / "data"
    texts = {"en": "cars", "xx": ""}  # what is empty is never found
    rows = [{"_id": code, "text": text, "metadata": {"language": code}} for code, text in texts.items()]
    layouts.jsonl(data / "documents.jsonl", rows)
    asked = [{"id": f"q{i}", "query": "cars", "relevant": ["en"]} for i in range(2)]
    asked[1]["need"] = "x"  # of a cluster that none of those drawn has
    layouts.jsonl(data / "queries.jsonl", asked)
    experiment, options = ran(tmp_path, none + ENCODED + '[statistics]\ncluster = "need"\n')
    said: list[str] = []
    told = options._replace(on_message=said.append)
    assert list(measure_noise(experiment, queries=1, options=told).manifest.noise) == ["hashing"]
    assert said == ["none has no hit for any query that was drawn: it has no noise to measure"]
    assert ended("noise", experiment, "--results", tmp_path / "out", "--retriever", "none") == 2
