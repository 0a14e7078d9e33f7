"""The blocks of docs/how-to/providers.md, moved to fakes, and what each of them must
do.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from harness.experiment import parse_experiment
from retrievers import encoder_class, reranker_class
from retrievers.cache import Cache
from retrievers.embedder import Embedder
from retrievers.meter import Meter
from retrievers.types import model_facts as described
from tests.support.dialects import KEY
from tests.support.servers import real_vectors, resized, serving

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "providers.md"
BLOCKS = dict(
    re.findall(
        r"^### (.+?)\n.*?```toml\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)
TEXTS = [f"passage number {i} of the wing" for i in range(40)]
LONG = "many words of a long text " * 20
"""120 of the servers' tokens."""


def set_keys(monkeypatch):
    """Give every variable that the blocks name the key that the fakes ask for."""
    variables = re.findall(r"\$\{(\w+)\}", PAGE.read_text(encoding="utf-8"))
    for name in {
        *variables,
        "OPENAI_API_KEY",
        "CO_API_KEY",
        "GEMINI_API_KEY",
        "VOYAGE_API_KEY",
        "JINA_API_KEY",
    }:
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def at(block, part, url):
    """The part of a block, moved to a fake's address; what parsing fills in is left as
    it is.
    """
    table = tomllib.loads(
        "name = 'x'\ndataset = 'd'\nprimary = 'P@5'\nmeasures = ['P@5']\n" + block
    )
    if part == "rerank":
        table["retrievers"].insert(0, {"name": "lexical", "kind": "bm25"})
    kind = getattr(parse_experiment(table).retrievers[-1], part)
    options = dict(kind.options)
    base_url = urlsplit(options["base_url"])
    fake = urlsplit(url)
    if base_url.netloc:
        assert (base_url.path, base_url.query) == (fake.path, fake.query)
    else:
        options["api_key"] = "${OPENAI_API_KEY}"
    options["base_url"] = urlunsplit(
        (fake.scheme, fake.netloc, fake.path, fake.query, "")
    )
    find = encoder_class if part == "encoder" else reranker_class
    return find(kind.kind)(**options)


def check_embeddings(name, fake, folder):
    """See that a block embeds documents and queries as its provider does, each text
    once.
    """
    with serving(fake()) as provider, Cache(folder / "c") as cache:
        encoder = at(BLOCKS[name], "encoder", provider.url)
        embedder = Embedder(encoder, cache)
        meter = Meter()
        width = encoder.provenance.get("dimensions")
        sent = set()
        for role, texts in (("document", TEXTS), ("query", TEXTS[:1])):
            prompted = [
                encoder.provenance.get(f"{role}_prompt", "") + text for text in texts
            ]
            expected = resized(real_vectors(prompted), int(width) if width else 0)
            assert np.allclose(
                embedder.embed(texts, role, meter).vectors, expected, atol=1e-6
            )
            sent.update(prompted)
        assert meter.counts("")["texts"] == 41
        assert set(provider.embedded) == sent
        assert KEY not in str(described(encoder))
