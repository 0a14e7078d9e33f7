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
from harness.cli import main
from harness.pipeline import run
from harness.running import components
from harness.running.noise import measure_noise
from harness.running.options import Options
from retrievers.encoders.hashing import HashingEncoder
from retrievers.meter import Call
from retrievers.types import Embedded, Role, Vectors
from tests import small
from tests.recompute import score
from tests.servers import OpenAIProvider, serving
from tests.small import ended

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
    experiment, options = ran(tmp_path)
    results = measure_noise(experiment, options=options)
    grades = results.grades()
    texts = {id_: next(one for one in handed[0] if text in one) for id_, text in small.TEXTS.items()}

    def best_first(given: dict[str, Vectors], question: str) -> list[str]:
        cosines = {
            id_: float(given[text] @ given[question] / np.linalg.norm(given[text])) for id_, text in texts.items()
        }
        return sorted(cosines, key=lambda id_: (-cosines[id_], id_))[:5]

    whole = [given for given in handed if len(given) == len(texts) + len(small.QUERIES)]
    rankings = [{id_: best_first(given, text) for id_, text, _ in small.QUERIES} for given in whole]
    means = [statistics.fmean(score("nDCG@3", of[id_], grades[id_]) or 0 for id_ in grades) for of in rankings]
    found = results.manifest.noise["hashing"]
    assert list(found.means) == ["as in the run", "reverse order", "one thread"]
    assert list(found.means.values()) == pytest.approx(means, abs=1e-12)
    assert found.deviation == pytest.approx(statistics.stdev(means))
    assert found.largest == pytest.approx(max(abs(mean - means[0]) for mean in means))
    moved = {id_ for of in rankings[1:] for id_ in of if of[id_] != rankings[0][id_]}
    assert found.moved == pytest.approx(len(moved) / len(small.QUERIES))
    assert found.deviation > 0


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
    main_of = ["noise", str(experiment), "--results", str(tmp_path / "out"), "--json", "--quiet"]
    with pytest.raises(SystemExit) as stopped:
        main(main_of)
    assert stopped.value.code == 0
    assert json.loads(capsys.readouterr().out)["noise"]["hashing"]["largest"] == 0
    folder = tmp_path / "out" / "small"
    manifest = records.read_manifest(folder)
    (floor,) = manifest.noise.values()
    records.rewrite_manifest(folder, replace(manifest, noise={"hashing": replace(floor, deviation=0.4)}))
    with pytest.raises(SystemExit):
        main(["noise", str(experiment), "--results", str(tmp_path / "out"), "--retriever", "bm25"])
    assert "'bm25' is no retriever that embeds and has answered" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["report", str(folder)])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "is below twice the floor of noise" in page


@pytest.mark.parametrize(
    ("retrievers", "arguments", "message"),
    [
        ('[[retrievers]]\nname = "bm25"\nkind = "bm25"\n', [], "no retriever embeds"),
        (ENCODED, ["--results", "elsewhere"], "holds no results of this experiment and this data"),
    ],
)
def test_where_nothing_can_be_measured_one_sentence_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], retrievers: str, arguments: list[str], message: str
) -> None:
    experiment, _ = ran(tmp_path, retrievers)
    assert ended("noise", experiment, *(arguments or ["--results", tmp_path / "out"])) == 2
    assert message in capsys.readouterr().err
