"""Blocks that share an encoder: built once, and every retriever's costs are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.pipeline import run
from harness.running.forecast import Options
from tests.support import small
from tests.support.servers import OpenAIProvider, serving

pytestmark = pytest.mark.usefixtures("own_cache")

PAID = 'encoder = {{ kind = "openai", model = "m", base_url = "{}", price = 1000, batch_size = 2 }}\n'


def test_costs_are_the_retrievers_own_where_blocks_share_an_encoder(tmp_path: Path) -> None:
    with serving(OpenAIProvider(["500"])) as provider:
        blocks = '[[retrievers]]\nname = "whole"\n' + PAID.format(provider.url)
        blocks += '[[retrievers]]\nname = "cut"\nchunk = { size = 20 }\n' + PAID.format(provider.url)
        results = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
        requests = len(provider.requests)
    costs = {(row["retriever"], row["stage"]): row for row in results.costs.to_dict("records")}
    whole, cut = costs["whole", "embed-documents"], costs["cut", "embed-documents"]
    assert (whole["texts"], whole["calls"]) == (6, 3)
    assert cut["texts"] > 6
    assert cut["calls"] == -(-(cut["texts"] - cut["cached"]) // 2)
    for row in (whole, cut):
        assert row["tokens"] > 0
        assert row["usd"] == pytest.approx(row["tokens"] * 1e-3)
    assert costs["cut", "embed-queries"]["calls"] == 0  # the queries are those of the first
    assert sum(row["calls"] for row in costs.values()) + 1 == requests  # one was tried again
    counts = {name: ledger.counts["embed-documents"] for name, ledger in results.manifest.ledger.retrievers.items()}
    assert (counts["whole"].get("retries"), counts["cut"].get("retries")) == (1, None)
