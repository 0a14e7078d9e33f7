"""Attention text by text gives what torch's own gives, and gives way where it is not made for the case."""

from types import SimpleNamespace

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from retrievers.local import attention
from retrievers.local.attention import NAME, _attend, attend_text_by_text
from tests import tiny

BIDIRECTIONAL = SimpleNamespace(is_causal=False)


def heads(seed, tokens=7, heads=2):
    return torch.randn(3, heads, tokens, 4, generator=torch.Generator().manual_seed(seed))


def mask(*lengths):
    return (torch.arange(7) < torch.tensor(lengths)[:, None])[:, None, None, :]


@pytest.mark.parametrize("given", [None, mask(7, 2, 1), mask(7, 2, 1).expand(3, 1, 7, 7)])
@pytest.mark.parametrize("scaling", [None, 0.3])
def test_it_is_attention(given, scaling):
    query, key, value = heads(1), heads(2), heads(3)
    found, _ = _attend(BIDIRECTIONAL, query, key, value, given, scaling=scaling, dropout=0.0, position_ids=None)
    right, _ = sdpa_attention_forward(BIDIRECTIONAL, query, key, value, given, scaling=scaling)
    assert torch.allclose(found, right, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "kv_heads", "longest", "options"),
    [
        (SimpleNamespace(is_causal=True), 2, 512, {}),
        (SimpleNamespace(), 2, 512, {}),
        (SimpleNamespace(is_causal=False, num_key_value_groups=2), 1, 512, {}),
        (BIDIRECTIONAL, 2, 6, {}),
        (BIDIRECTIONAL, 2, 512, {"is_causal": True}),
        (BIDIRECTIONAL, 2, 512, {"position_bias": torch.ones(1, 2, 7, 7)}),
    ],
)
def test_all_but_the_plain_case_is_left_to_the_library(monkeypatch, module, kv_heads, longest, options):
    monkeypatch.setattr(attention, "LONGEST", longest)
    monkeypatch.setattr(torch, "baddbmm", None)
    given = heads(1), heads(2, heads=kv_heads), heads(3, heads=kv_heads), None
    found, _ = _attend(module, *given, **options)
    assert torch.equal(found, sdpa_attention_forward(module, *given, **options)[0])


def test_it_is_used_by_16_bit_models_on_a_processor_alone(tmp_path):
    from retrievers.local.models import Setup
    from retrievers.local.weights import Weights

    weights = Weights(str(tiny.bi_encoder(tmp_path)))
    for dtype, name in (("bfloat16", NAME), ("float32", "sdpa")):
        model = Setup(weights, dtype, "torch", trust_remote_code=False).load("SentenceTransformer", "cpu")
        assert model.transformers_model.config._attn_implementation == name


@pytest.mark.parametrize(
    ("supports", "implementation", "chosen"), [(True, "sdpa", [NAME]), (False, "sdpa", []), (True, "eager", [])]
)
def test_only_a_model_that_leaves_the_choice_is_changed(supports, implementation, chosen):
    told = []
    inside = SimpleNamespace(
        _supports_attention_backend=supports,
        config=SimpleNamespace(_attn_implementation=implementation),
        set_attn_implementation=told.append,
    )
    attend_text_by_text(SimpleNamespace(transformers_model=inside))
    attend_text_by_text(SimpleNamespace())  # no transformer inside: a static model
    assert told == chosen
