"""Embedding in shares: every text once, killed or not; from their files the same rankings, and smaller vectors too."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from harness import pipeline
from harness.evaluation.costs import costs_of
from harness.running.embed_shards import Shard, embed, import_vectors, parse_shard
from harness.running.options import Options
from retrievers.derived import PROOF
from retrievers.errors import BackendError, InputError
from tests import small, tiny
from tests.disks import small_disk
from tests.mortal import forking
from tests.servers import OpenAIProvider, serving
from tests.small import ended, ends
from tests.test_kill import DOCUMENTS, QUERIES, corpus, experiment
from tests.test_storage import refusing_store

pytestmark = pytest.mark.usefixtures("own_cache")

FEW, ASKED = 60, 12
"""Documents and queries, where nothing is killed."""


def hashed(folder: Path, vectors: str = "") -> Path:
    """An experiment whose encoder needs nothing; two blocks share it, one of them cuts documents."""
    corpus(folder / "data", FEW, ASKED) if not (folder / "data").exists() else None
    path = folder / f"hashed{len(vectors)}.toml"
    path.write_text(
        f'name = "hashed{len(vectors)}"\ndataset = "{(folder / "data").as_posix()}"\nprimary = "nDCG@10"\n'
        f'measures = ["nDCG@10"]\nreport = false\n{vectors}\n'
        '[[retrievers]]\nname = "whole"\nencoder = { kind = "hashing", dimensions = 64 }\n'
        '[[retrievers]]\nname = "cut"\nencoder = { kind = "hashing", dimensions = 64 }\nchunk = { size = 20 }\n'
    )
    return path


def test_what_shares_write_gives_the_rankings_of_one_run(tmp_path):
    path = hashed(tmp_path)
    alone = pipeline.run(path, Options(tmp_path / "alone"))
    os.environ["HARNESS_CACHE"] = str(tmp_path / "cold")
    url = (tmp_path / "parts").as_posix()
    totals = [embed(path, url, shard=Shard(number, 4)) for number in (1, 2, 3, 4)]
    os.environ["HARNESS_CACHE"] = str(tmp_path / "colder")
    again = hashed(tmp_path, f'[vectors]\nfrom = "{url}"')
    imported = pipeline.run(again, Options(tmp_path / "imported"))
    for name in ("whole", "cut"):
        assert (imported.folder / "rankings" / f"{name}.jsonl").read_bytes() == (
            alone.folder / "rankings" / f"{name}.jsonl"
        ).read_bytes()
    assert imported.scores["value"].tolist() == alone.scores["value"].tolist()
    documents = sum(share.written.texts for shares in totals for share in shares if share.role == "document")
    counts = imported.manifest.ledger.retrievers["whole"].counts
    assert counts["embed-documents"]["imported"] == FEW
    assert counts["embed-queries"]["imported"] == ASKED
    assert documents > FEW  # the passages too, each once
    assert imported.manifest.resolved.vectors == {"from": url}


def test_shares_of_a_model_that_runs_here_give_the_same_bits_as_one_run(tmp_path, monkeypatch):
    """Equal batches, equal vectors: requests are shared out whole."""
    model = tiny.bi_encoder(tmp_path / "model")
    path, url = hashed(tmp_path), (tmp_path / "parts").as_posix()
    options = f'kind = "sentence-transformers", model = "{model.as_posix()}", device = "cpu", batch_size = 8'
    path.write_text(path.read_text().replace('kind = "hashing", dimensions = 64', options))
    alone = pipeline.run(path, Options(tmp_path / "alone"))
    kept = rows_of(tmp_path / "cache")
    for number in (2, 1):
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / f"node{number}"))
        embed(path, url, shard=Shard(number, 2))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cold"))
    import_vectors(url)
    assert len(kept) > FEW + ASKED
    assert rows_of(tmp_path / "cold") == kept
    imported = pipeline.run(path, Options(tmp_path / "imported"))
    for name in ("whole", "cut"):
        ours, theirs = ((one.folder / "rankings" / f"{name}.jsonl").read_bytes() for one in (imported, alone))
        assert ours == theirs


def rows_of(cache: Path) -> list[tuple[bytes, int, int, bytes]]:
    """Key, tokens, lost tokens and the bytes of each vector."""
    with closing(sqlite3.connect(cache / "cache.sqlite")) as opened:
        return sorted(opened.execute("SELECT key, tokens, lost, value FROM rows"))


def test_the_place_of_vectors_is_kept_as_it_was_written(tmp_path, monkeypatch):
    secret = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab"
    path = hashed(tmp_path, '[vectors]\nfrom = "${PARTS}"')
    path.write_text(path.read_text() + '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n')
    with refusing_store() as store:
        there = f"127.0.0.1:{store.server_port}"
        monkeypatch.setenv("PARTS", f"s3://AKIAEXAMPLE:{secret}@bucket/x?endpoint_override={there}&scheme=http")
        results = pipeline.run(path, Options(tmp_path / "results"))
    assert results.manifest.retrievers["whole"].error.count("files cannot be listed") == 1
    kept = b"".join(file.read_bytes() for file in results.folder.rglob("*") if file.is_file())
    assert secret.encode() not in kept
    assert b"AKIAEXAMPLE" not in kept


def test_each_text_stands_in_one_share_and_a_share_is_one_file(tmp_path):
    path, url = hashed(tmp_path), str(tmp_path / "parts")
    first = embed(path, url)
    again = embed(path, url)
    for before, after in zip(first, again, strict=True):
        assert before.written.present == 0
        assert before.written.parts == 1
        assert after.written == (before.written.texts, before.written.texts, 0)
    shares = [embed(path, str(tmp_path / "others"), shard=Shard(number, 3)) for number in (3, 1, 2)]
    assert sum(share.written.texts for some in shares for share in some) == sum(one.written.texts for one in first)
    assert not any(share.written.present for some in shares for share in some)


def test_vectors_are_taken_over_into_a_cache(tmp_path, capsys):
    path, url = hashed(tmp_path), str(tmp_path / "parts")
    assert ended("embed", path, "--to", url, "--quiet") == 0
    os.environ["HARNESS_CACHE"] = str(tmp_path / "other")
    rows = json.loads(ends(capsys, 0, "cache", "import", url, "--json").out)["imported"]
    assert {row["role"]: row["rows"] for row in rows}["query"] == ASKED
    results = pipeline.run(path, Options(tmp_path / "results"))
    assert not results.manifest.ledger.retrievers["whole"].counts.get("embed-documents", {}).get("imported")
    costs = results.costs[results.costs["stage"] == "embed-documents"]
    assert (costs["texts"] == costs["cached"]).all()


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "1/0", "a/b", "1/4/2", "-1/4"])
def test_a_share_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="is not a share"):
        parse_shard(text)


def test_a_plan_says_what_a_share_takes(tmp_path, capsys, monkeypatch):
    corpus(tmp_path / "data", FEW, ASKED)
    with serving(OpenAIProvider()) as provider:
        path = priced(experiment(tmp_path, provider.url))
        pipeline.run(path, Options(tmp_path / "measured"))
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cold"))
        words = ["plan", str(path), "--results", str(tmp_path / "measured"), "--shards", "4"]
        told = json.loads(ends(capsys, 0, *words, "--json").out)
        assert "each of 4 shards: 36 texts" in ends(capsys, 0, *words).out  # by two encoders
        shares = [
            share for number in (1, 2, 3, 4) for share in embed(path, str(tmp_path / "p"), shard=Shard(number, 4))
        ]
    rows = [row for row in told["plan"] if row["stage"].startswith("embed-")]
    assert told["shard"]["shards"] == 4
    assert told["shard"]["texts"] == 2 * (FEW + ASKED) // 4
    assert told["shard"]["usd"] == pytest.approx(sum(row["usd"] for row in rows) / 4)
    assert told["shard"]["minutes"] == pytest.approx(sum(row["minutes"] for row in rows) / 4)
    paid = sum(share.usd for share in shares)
    assert 0 < paid <= 4 * told["shard"]["usd"] <= 3 * paid  # tokens are estimated


def test_ray_is_loaded_only_where_it_is_asked_for(tmp_path):
    code = (
        "import sys; from harness.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as ended:\n    print(ended.code, 'ray' in sys.modules, 'torch' in sys.modules)"
    )
    words = ["embed", str(hashed(tmp_path)), "--to", str(tmp_path / "parts"), "--quiet"]
    told = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert told.stdout == "0 False False\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--engine", "ray", "--shard", "1/2"], "--shard: is for machines with nothing between them"),
        (["--address", "auto"], "--address: is of a Ray cluster"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path, capsys, words, told):
    assert told in ends(capsys, 2, "embed", hashed(tmp_path), "--to", tmp_path / "parts", *words).err
    assert not (tmp_path / "parts").exists()


def test_what_came_from_parts_was_not_billed_by_the_run(tmp_path, monkeypatch):
    """Each text has as many tokens as any other, so that a query costs the same however many were asked."""
    corpus(tmp_path / "data", FEW, ASKED)
    url = str(tmp_path / "parts")
    with serving(OpenAIProvider()) as provider:
        path = priced(experiment(tmp_path, provider.url))
        embed(path, url, shard=Shard(1, 2))
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "whole"))
        whole = pipeline.run(path, Options(tmp_path / "whole"))
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "half"))
        half = pipeline.run(with_vectors(path, url), Options(tmp_path / "half"))
    assert 0 < half.manifest.ledger.retrievers["api"].counts["embed-queries"]["imported"] < ASKED
    assert costs_of(half)["api"].usd < costs_of(whole)["api"].usd
    assert costs_of(half)["api"].usd_per_million == pytest.approx(costs_of(whole)["api"].usd_per_million)


def test_a_limit_holds_for_all_shares(tmp_path):
    corpus(tmp_path / "data")
    with serving(OpenAIProvider()) as provider:
        path = priced(experiment(tmp_path, provider.url))
        with pytest.raises(BackendError, match="max-cost"):
            embed(path, str(tmp_path / "parts"), shard=Shard(1, 2), max_cost=0.0006)
        once = len(provider.embedded)
        assert 0 < once < (DOCUMENTS + QUERIES) // 2
        assert sum(len(text.split()) for text in provider.embedded) * 1e-6 <= 0.0003
    assert files(tmp_path / "parts") > 0  # what was answered is written


def priced(path: Path) -> Path:
    path.write_text(path.read_text().replace('model = "m"', 'model = "m", price = 1'))
    return path


def files(folder: Path) -> int:
    return len(list(folder.rglob("*.parquet")))


def embed_here(path: Path, url: str, cache: Path) -> None:
    os.environ["HARNESS_CACHE"] = str(cache)
    embed(path, url)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_at_twenty_instants_pays_again_for_requests_in_flight_only(tmp_path):
    """The cache of the machine remembers what was answered; the share writes its file at its end."""
    context = forking()
    corpus(tmp_path / "data")
    url = str(tmp_path / "parts")
    chance = random.Random(19)
    with serving(OpenAIProvider(latency=0.02)) as provider:
        path = experiment(tmp_path, provider.url)

        def start():
            process = context.Process(target=embed_here, args=(path, url, tmp_path / "node"))
            process.start()
            return process

        for _ in range(20):
            process = start()
            target = len(provider.requests) + chance.randrange(1, 6)
            while len(provider.requests) < target and process.is_alive():
                process.join(0.002)
            process.kill()
            process.join()
        process = start()
        process.join(600)
        assert process.exitcode == 0
        times = Counter(provider.embedded)
    assert len(times) == DOCUMENTS + QUERIES
    in_flight = 4 * (2 + 1)  # batch x (concurrency + what lies ready: retrievers.retrying)
    assert sum(times.values()) - len(times) <= 20 * in_flight
    result = pipeline.run(with_vectors(path, url), Options(tmp_path / "results"))
    assert result.manifest.ledger.retrievers["api"].counts["embed-documents"]["imported"] == DOCUMENTS


def test_what_a_full_disk_did_not_take_is_not_paid_again(tmp_path):
    """What was answered is in the cache."""
    corpus(tmp_path / "data")
    url = str(tmp_path / "parts")
    with serving(OpenAIProvider()) as provider:
        path = experiment(tmp_path, provider.url)
        with small_disk(tmp_path / "disk", "64k") as disk:
            with pytest.raises(BackendError, match="No space left"):
                embed(path, str(disk))
            assert not list(disk.rglob("*.part*"))
        assert 0 < len(provider.embedded) < DOCUMENTS + QUERIES
        embed(path, url)
        times = Counter(provider.embedded)
    assert len(times) == DOCUMENTS + QUERIES
    assert sum(times.values()) - len(times) <= 4 * (2 + 1)  # what was in flight, as above
    os.environ["HARNESS_CACHE"] = str(tmp_path / "cold")
    result = pipeline.run(with_vectors(path, url), Options(tmp_path / "results"))
    assert result.manifest.ledger.retrievers["api"].counts["embed-documents"]["imported"] == DOCUMENTS


def test_what_a_cache_holds_costs_a_share_nothing(tmp_path):
    corpus(tmp_path / "data", FEW, ASKED)
    with serving(OpenAIProvider()) as provider:
        path = priced(experiment(tmp_path, provider.url))
        embed(path, str(tmp_path / "first"))
        sent = len(provider.embedded)
        embed(path, str(tmp_path / "second"), max_cost=0)
        assert len(provider.embedded) == sent


def with_vectors(path: Path, url: str) -> Path:
    path.write_text(path.read_text().replace("[[retrievers]]", f'[vectors]\nfrom = "{url}"\n[[retrievers]]', 1))
    return path


def blocks(url):
    encoder = f'encoder = {{ kind = "openai", model = "m", base_url = "{url}", price = 1.0, query_prompt = "ask: " }}'
    more = 'variants = { plain = { query_prompt = "" } }\nderive = { dimensions = [32] }\n'
    return f'[[retrievers]]\nname = "paid"\n{encoder}\n{more}'


def test_nothing_is_sent_by_a_run_from_the_parts_of_all_shares(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "node"))
    parts = (tmp_path / "parts").as_posix()
    with serving(OpenAIProvider()) as provider:
        path = small.experiment(tmp_path, retrievers=blocks(provider.url))
        shares = [share for number in (1, 2) for share in embed(path, parts, shard=Shard(number, 2))]
        # Documents once for all, the proof's at the smaller size, queries with the prompt and without.
        texts = len(small.TEXTS) + min(PROOF, len(small.TEXTS)) + 2 * len(small.QUERIES)
        assert sum(share.written.texts for share in shares) == len(provider.embedded) == texts
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "another"))
        where = f'[vectors]\nfrom = "{parts}"\n'
        again = small.experiment(tmp_path, retrievers=blocks(provider.url), more=where, name="again")
        results = pipeline.run(again, Options(tmp_path / "results"))
        assert len(provider.embedded) == texts
    assert results.manifest.failed == {}
    assert results.run("paid-32").provenance["least_cosine_with_asked"] == "1.000000"
