"""Every kind of ours that sends texts away or loads a model is shown before an experiment of somebody else is run."""

import inspect
from typing import get_args

import pytest

from harness.experiment import uses
from retrievers import ENCODERS, RERANKERS, encoder_class, reranker_class
from retrievers.errors import InputError
from retrievers.rerankers.http_reranker import Dialect

HARMLESS = {"hashing"}
SENDING = {"name": "other", "encoder": {"kind": "openai", "model": "m"}}
"""Models are shown where something could carry them, or what they read, away."""


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders(kind):
    shown = shown_of({"encoder": {"kind": kind, "model": "m"}})
    options = inspect.signature(encoder_class(kind)).parameters
    assert any(line.startswith("sends texts to") for line in shown) == ("rpm" in options)
    assert any(line.startswith("loads the model") for line in shown) == ("revision" in options)
    assert bool(shown) != (kind in HARMLESS)


@pytest.mark.parametrize("kind", [kind for kind in RERANKERS if kind != "http"])
def test_rerankers_that_are_loaded(kind):
    assert "revision" in inspect.signature(reranker_class(kind)).parameters
    assert [line for line in shown_of({"rerank": {"kind": kind, "model": "m"}}) if line.startswith("loads the model")]


@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_rerankers_of_services(dialect):
    block = {"kind": "http", "dialect": dialect, "model": "m"}
    try:
        reranker_class("http")(dialect, model="m", api_key="k")
    except InputError as without_address:
        assert "has no server of its own" in str(without_address)
        block["base_url"] = "http://localhost:8080"
    assert [line for line in shown_of({"rerank": block}) if line.startswith("sends texts to")]


def shown_of(block) -> list[str]:
    return [line for line in uses({"retrievers": [{"name": "a", **block}, SENDING]}) if "(retrievers[0]" in line]
