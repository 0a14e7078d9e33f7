"""From the parts of all shares a run with smaller vectors sends nothing: the texts of the proof are in them too."""

from harness import pipeline
from harness.running.embed_shards import Shard, embed
from harness.running.options import Options
from retrievers.derived import PROOF
from tests import small
from tests.servers import OpenAIProvider, serving


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
