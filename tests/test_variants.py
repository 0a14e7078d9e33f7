"""Prompts and instructions as named variants of one model: what is sent, what is shared, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.experiment import parse, uses
from harness.pipeline import run
from harness.running.embed_shards import embed
from harness.running.options import Options
from harness.running.plan import plan
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.errors import InputError
from tests import small, tiny
from tests.servers import OpenAIProvider, serving

PROMPTS = {"query": "query: ", "fast": "the fast ", "document": "passage: "}
BASE: dict[str, Any] = {"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts=PROMPTS).as_posix()


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KEY", "test-key-0123456789")


def local(model: str, variants: str) -> str:
    encoder = f'{{ kind = "sentence-transformers", model = "{model}", device = "cpu" }}'
    return f'[[retrievers]]\nname = "m"\nencoder = {encoder}\n{variants}\n'


def test_a_variant_is_the_encoder_with_its_options(tmp_path: Path, model: str) -> None:
    variants = (
        'variants = { plain = { query_prompt = "", document_prompt = "" }, fast = { query_prompt_name = "fast" } }'
    )
    path = small.experiment(tmp_path, retrievers=local(model, variants))
    planned = {(row.retriever, row.stage): row.texts for row in plan(path, results=tmp_path).rows}
    assert planned == {  # the documents of "fast" are those of "m"
        ("m", "embed-documents"): 6, ("m", "embed-queries"): 6,
        ("m-plain", "embed-documents"): 6, ("m-plain", "embed-queries"): 6, ("m-fast", "embed-queries"): 6,
    }  # fmt: skip
    shares = embed(path, (tmp_path / "parts").as_posix())
    assert sum(share.written.texts for share in shares) == 30
    results = run(path, Options(tmp_path / "out"))
    facts = {name: results.manifest.retrievers[name].provenance for name in ("m", "m-plain", "m-fast")}
    sent = {name: (one.get("query_prompt"), one.get("document_prompt")) for name, one in facts.items()}
    assert sent == {"m": ("query: ", "passage: "), "m-plain": ("", ""), "m-fast": ("the fast ", "passage: ")}
    own = small.experiment(
        tmp_path, retrievers=local(model, "").replace("device", 'query_prompt = "the fast ", device'), name="own"
    )
    assert run(own, Options(tmp_path / "out")).rankings("m") == results.rankings("m-fast")
    assert results.rankings("m") != results.rankings("m-fast")


def test_another_instruction_pays_for_its_queries_alone(tmp_path: Path) -> None:
    with serving(OpenAIProvider()) as provider:
        encoder = (
            f'{{ kind = "openai", model = "m", base_url = "{provider.url}", document_prompt = "doc: ", price = 1 }}'
        )
        variants = (
            'variants = { task = { query_prompt = "Find: " }, typed = { query_extra = { input_type = "query" } } }'
        )
        block = f'[[retrievers]]\nname = "m"\nencoder = {encoder}\n{variants}\n'
        path = small.experiment(tmp_path, retrievers=block)
        calls = plan(path, results=tmp_path).total()["calls"]
        results = run(path, Options(tmp_path / "out"))
        bodies = [request["body"] for request in provider.requests]
    assert len(bodies) == calls == 4  # the documents, and three times the queries
    beginnings = [{text.split(": ")[0] for text in body["input"]} for body in bodies]
    assert [names for names in beginnings if names == {"doc"}] == [{"doc"}]
    assert [names for names in beginnings if names == {"Find"}] == [{"Find"}]
    assert [body.get("input_type") for body in bodies].count("query") == 1
    assert results.manifest.retrievers["m-task"].provenance["query_prompt"] == "Find: "
    assert json.loads(results.manifest.retrievers["m-typed"].provenance["query_extra"]) == {"input_type": "query"}


def three(cls: Any, option: str, value: Any) -> tuple[Any, Any, Any]:
    """One as it is, one with another query side, one with another document side."""
    where = {"model": "m", "base_url": "http://127.0.0.1:9"}
    return cls(**where), cls(**where, **{f"query_{option}": value}), cls(**where, **{f"document_{option}": value})


@pytest.mark.parametrize(
    ("plain", "asking", "writing"),
    [three(OpenAIEncoder, "prompt", "p"), three(OpenAIEncoder, "extra", {"a": 1}), three(GeminiEncoder, "prompt", "p")],
)
def test_vectors_are_shared_where_a_role_is_alike(plain: Any, asking: Any, writing: Any) -> None:
    assert plain.fingerprint != asking.fingerprint != writing.fingerprint != plain.fingerprint
    assert plain.fingerprint_for("document") == asking.fingerprint_for("document")
    assert plain.fingerprint_for("query") == writing.fingerprint_for("query")
    assert plain.fingerprint_for("document") != writing.fingerprint_for("document")
    assert plain.fingerprint_for("query") != asking.fingerprint_for("query")


def test_of_a_local_model_too_and_old_names_stay(model: str) -> None:
    plain, asking = SentenceTransformerEncoder(model), SentenceTransformerEncoder(model, query_prompt="q: ")
    named = SentenceTransformerEncoder(model, document_prompt_name="fast")
    assert plain.fingerprint == plain.fingerprint_for("document") == plain.fingerprint_for("query")
    assert asking.fingerprint_for("document") == plain.fingerprint == named.fingerprint_for("query")
    assert len({one.fingerprint for one in (plain, asking, named)}) == 3
    assert named.fingerprint_for("document") != plain.fingerprint


def test_a_prompt_that_the_model_has_not_is_told_with_those_that_it_has(model: str) -> None:
    with pytest.raises(InputError, match=r"query_prompt_name.*no prompt 'slow'.*it has 'document', 'fast', 'query'"):
        SentenceTransformerEncoder(model, query_prompt_name="slow")
    with pytest.raises(InputError, match="stands beside a name"):
        SentenceTransformerEncoder(model, query_prompt_name="fast", query_prompt="x")


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ({"v": {"kind": "openai"}}, "has a kind of its own"),
        ({"v": {"dimension": 3}}, "retrievers[0].variants.v.encoder.dimension: unknown key 'dimension'"),
        ({"not a name": {}}, "a name has letters"),
        ({"v": 3}, "variants"),
    ],
)
def test_what_makes_no_sense_is_refused_once(variants: Any, message: str) -> None:
    blocks = [{"name": "m", "encoder": {"kind": "hashing"}, "variants": variants}]
    with pytest.raises(InputError) as refused:
        parse({**BASE, "retrievers": blocks})
    assert message in str(refused.value)
    assert len(refused.value.problems) == 1


def test_code_in_a_variant_is_told_and_refused() -> None:
    encoder = {"kind": "sentence-transformers", "model": "a/b"}
    tables = {**BASE, "retrievers": [{"name": "m", "encoder": encoder, "variants": {"v": {"trust_remote_code": True}}}]}
    assert "runs code: encoder.trust_remote_code (retrievers[0].variants.v)" in uses(tables)
    with pytest.raises(InputError, match=r"variants\.v.*runs code"):
        parse(tables, code=False)


def test_variants_and_derived_retrievers_stand_side_by_side() -> None:
    block = {"name": "m", "encoder": {"kind": "hashing"}, "color": "#0b6e4f",
             "variants": {"wide": {"dimensions": 1024}}, "derive": {"quantization": ["int8"]}}  # fmt: skip
    experiment = parse({**BASE, "retrievers": [block]})
    assert [one.name for one in experiment.retrievers] == ["m", "m-wide", "m-int8"]
    assert [one.color for one in experiment.retrievers] == ["#0b6e4f", "", ""]
    assert experiment.resolved()["retrievers"][1]["encoder"] == {"kind": "hashing", "dimensions": 1024}
