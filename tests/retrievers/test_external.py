"""Retrievers of others in one experiment: saved runs, a function, search endpoints (fakes of the real protocols)."""

import json
import re
from pathlib import Path

import pytest

from harness.console.printing import print_results
from harness.experiment import load
from harness.pipeline import run
from harness.reproduce import reproduce
from harness.running.forecast import Options
from retrievers.cache import Cache
from retrievers.errors import BackendError, InputError
from retrievers.external import Function, SavedRun
from retrievers.meter import Meter
from retrievers.resources import Corpus, Resources
from retrievers.runs import write_run
from retrievers.search_endpoint import Endpoint
from retrievers.types import Document, Query, ranked
from tests.support import layouts, small, tiny
from tests.support.search_fakes import KEY, SERVICES, service
from tests.support.search_fakes import found as hits_of
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25

pytestmark = pytest.mark.usefixtures("in_tmp")

QUERIES = [Query(id_, text) for id_, text, _ in small.QUERIES]
NOTHING = Corpus(lambda: iter(()), 0, lambda ids: {})


def saved(folder: Path, suffix: str, hits: dict[str, dict[str, float]]) -> str:
    """A run in one of the forms that are read."""
    path = folder / f"theirs{suffix}"
    rows = [{"query_id": q, "doc_id": d, "score": s} for q, some in hits.items() for d, s in some.items()]
    if suffix == ".trec":
        write_run(path, [(q, ranked(list(some), list(some.values()))) for q, some in hits.items()], tag="x")
    elif suffix == ".jsonl":
        layouts.jsonl(path, rows)
    else:
        layouts.parquet(path, rows)
    return path.as_posix()


def block_of_run(name: str, path: str) -> str:
    return f'[[retrievers]]\nname = "{name}"\nkind = "run"\npath = "{path}"\n'


def test_saved_runs_of_bm25_score_as_bm25_itself(tmp_path, finished):
    hits = {q: dict(zip(r.doc_ids, r.scores.tolist(), strict=True)) for q, r in finished.rankings("bm25").items()}
    suffixes = {"trec": ".trec", "lines": ".jsonl", "parquet": ".parquet"}
    blocks = "".join(block_of_run(name, saved(tmp_path, suffix, hits)) for name, suffix in suffixes.items())
    blocks += '[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["bm25", "trec"]\n'
    again = run(small.experiment(tmp_path, retrievers=BM25 + blocks), Options(tmp_path / "out"))
    means = again.summary.pivot(index="measure", columns="retriever", values="mean")
    assert all(means[name].tolist() == means["bm25"].tolist() for name in (*suffixes, "both"))
    for name, suffix in suffixes.items():
        provenance = again.manifest.retrievers[name].provenance
        assert provenance["run"] == f"theirs{suffix}"
        assert len(provenance["sha256"]) == 64


def test_what_a_saved_run_lacks_and_has_beyond_is_noted(tmp_path):
    path = saved(tmp_path, ".jsonl", {"q-fruit": {"apple": 2.0, "ghost": 3.0}})
    retriever = SavedRun(path=path, unknown_hits="irrelevant")
    meter = Meter()
    documents = [*load_documents(tmp_path)]
    retriever.index(documents, meter)
    answers = retriever.search(QUERIES, 5, meter)
    assert answers[0].doc_ids == ("ghost", "apple")
    assert meter.notes()["not-in-corpus"] == ("ghost",)
    assert len(meter.notes()["not-answered-query"]) == len(QUERIES) - 1
    with pytest.raises(BackendError, match="answers none of the queries, but such as 'q-fruit'"):
        retriever.search([query for query in QUERIES if query.id != "q-fruit"], 5, meter)
    assert [retriever.search([query], 5, meter)[0].doc_ids for query in QUERIES].count(()) == len(QUERIES) - 1


def load_documents(folder: Path):
    from harness.dataset import load as load_dataset
    from harness.dataset import reference_of

    return load_dataset(reference_of(small.dataset(folder / "docs"))).documents()


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [("r.jsonl", "{", "r.jsonl:1: is not JSON"), ("r.jsonl", "[]", "r.jsonl:1: has no query, document or score"),
     ("r.jsonl", '{"query_id": "a", "doc_id": "b"}', "r.jsonl:1: has no query"), ("r.jsonl", "", "there is no line"),
     ("r.jsonl", '{"query_id": "a", "doc_id": "b", "score": "x"}', "'x' is not a score"),
     ("r.jsonl", '{"query_id": "a", "doc_id": "b", "score": 1}\n' * 2, "r.jsonl:2: document 'b' is ranked twice"),
     ("r.jsonl", "[" * 100_000, "r.jsonl:1: is not JSON: maximum recursion"), ("r.jsonl", b"\xff", "is not UTF-8"),
     ("r.parquet", "x", "cannot be read as Parquet"),
     ("r.trec", "a Q0 b 1 x t", "r.trec:1"), ("r.trec", "", "there is no line"), ("none.trec", None, "cannot be read"),
     ("none.jsonl", None, "cannot be read")],
)  # fmt: skip
def test_malformed_runs(tmp_path, name, raw, told):
    path = tmp_path / name
    if raw is not None:
        path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    with pytest.raises(InputError, match=told):
        SavedRun(path=str(path)).check()


MODULE = """
import asyncio
DOCS = {texts!r}

def ids(queries, depth):
    return [[d for d in DOCS if set(q.split()) & set(DOCS[d].split())][:depth] for q in queries]

async def pairs(queries, depth):
    await asyncio.sleep(0)
    return [[(d, 1.0 / n) for n, d in enumerate(found, 1)] for found in ids(queries, depth)]
"""


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    return small.module(tmp_path, monkeypatch, MODULE.format(texts=small.TEXTS))


def test_a_function_of_ones_own_sync_or_async(tmp_path, module):
    blocks = "".join(
        f'[[retrievers]]\nname = "{n}"\nkind = "python"\ncall = "{module}:{n}"\n' for n in ("ids", "pairs")
    )
    found = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
    first, second = found.rankings("ids"), found.rankings("pairs")
    assert {q: r.doc_ids for q, r in first.items()} == {q: r.doc_ids for q, r in second.items()}
    assert first["q-rails"].doc_ids == ("train",)
    assert found.costs[found.costs["stage"] == "search"]["calls"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "told"),
    [("no_such_module_here:f", "cannot be imported: no_such_module_here: ModuleNotFoundError"),
     ("json:lods", "did you mean 'loads'"), ("json", "is not a function")],
)  # fmt: skip
def test_functions_that_are_not_there(call, told):
    with pytest.raises(InputError, match=told):
        Function(call=call).check()


def page_blocks(name: str) -> list[str]:
    """The TOML blocks of a page of the documentation."""
    text = (Path(__file__).parents[2] / "docs" / "how-to" / name).read_text(encoding="utf-8")
    return re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def documented(name: str, url: str) -> str:
    """The block of the documentation, asking the service at an address."""
    [block] = [one for one in page_blocks("search-endpoint.md") if f'name = "{name}"' in one]
    written = re.sub(r'url = "https?://[^/"]+', f'url = "{url}', block)
    assert url in written
    return written


def test_the_blocks_of_the_documentation(tmp_path, monkeypatch, stack):
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    queries = [*QUERIES, Query("q-odd", 'rails & "roads" #1 a+b/ü?'), Query("q-none", "xyzzy")]
    rows = [{"id": one.id, "query": one.text, "relevant_documents": ["car"]} for one in queries]
    (small.dataset(tmp_path / "data") / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    running = {name: stack.enter_context(service(name)) for name in SERVICES}
    blocks = BM25 + "".join(documented(name, url) for name, (url, _) in running.items())
    place = small.experiment(tmp_path, retrievers=blocks)
    result = run(place, Options(tmp_path / "out"))
    assert not result.manifest.failed
    for name, (url, handler) in running.items():
        rankings = result.rankings(name)
        for query in queries:
            expected = [d for d, _ in hits_of(query.text, 5)]
            assert sorted(rankings[query.id].doc_ids) == sorted(expected)
        assert not rankings["q-none"].doc_ids
        assert len(handler.asked) == len(queries)
        facts = result.manifest.retrievers[name].provenance
        assert facts["url"].startswith(url)
        assert facts["answered_at"] >= "2"
    run(small.experiment(tmp_path, retrievers=blocks, name="again"), Options(tmp_path / "out"))
    assert {len(handler.asked) for _, handler in running.values()} == {len(queries)}  # answers are kept
    run(place, Options(tmp_path / "out", fresh=True))
    assert {len(handler.asked) for _, handler in running.values()} == {2 * len(queries)}
    everything = "".join(file.read_text() for file in (tmp_path / "out").rglob("*.json"))
    assert KEY not in everything


def test_a_service_without_the_right_key_fails_its_retriever_alone_in_its_own_words(tmp_path, monkeypatch, stack):
    monkeypatch.setenv("SEARCH_API_KEY", "another")
    urls = {name: stack.enter_context(service(name))[0] for name in SERVICES if name != "vespa"}
    blocks = BM25 + "".join(documented(name, url) for name, url in urls.items())
    result = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
    assert result.retrievers == ("bm25",)
    assert all(re.search(r": 40[13] ", result.manifest.failed[name]) for name in urls)


@pytest.mark.parametrize(
    ("name", "depth", "reason"),
    [("vespa", 401, "configured limit: 400"), ("typesense", 251, "Only upto 250 hits"),
     ("azure", 1001, "between 0 and 1000"), ("elasticsearch", 10_001, "Result window is too large")],
)  # fmt: skip
def test_a_depth_beyond_what_a_service_gives_is_told_in_its_own_words(tmp_path, monkeypatch, name, depth, reason):
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    with service(name) as (url, _):
        place = small.experiment(tmp_path, retrievers=BM25 + documented(name, url))
        place.write_text(re.sub(r"depth = \d+", f"depth = {depth}", place.read_text()))
        assert f"depth = {depth}" in place.read_text()
        assert reason in run(place, Options(tmp_path / "out")).manifest.failed[name]


def http(base: str, **more) -> Endpoint:
    body = {"size": "{depth}", "query": {"match": {"text": "{query}"}}}
    place = {"url": f"{base}/docs/_search", "headers": {"Authorization": f"ApiKey {KEY}"}}
    return Endpoint(**{**place, "body": body, "ids": "hits.hits[*]._id", **more})


def test_passing_failures_are_tried_again_and_lasting_ones_told_without_the_secret(monkeypatch):
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    with service("elasticsearch", 503, 429) as (url, _):
        meter = Meter()
        answers = http(url, scores="hits.hits[*]._score", concurrency=1).search(QUERIES[:1], 3, meter)
        assert answers[0].doc_ids
        assert meter.counts("search")["retries"] == 2
    with service("elasticsearch", 400) as (url, _):
        with pytest.raises(BackendError, match=r"docs/_search: 400 .*failure 400") as told:
            http(url, headers={"Authorization": "ApiKey ${SEARCH_API_KEY}"}).search(QUERIES[:1], 3, Meter())
        assert "secret-token" not in str(told.value)


def test_a_query_is_put_in_as_data_never_as_json():
    with service("elasticsearch") as (url, handler):
        http(url).search([Query("q", 'a"}, "x": {"{depth}')], 3, Meter())
        assert handler.asked[0][2]["query"] == {"match": {"text": 'a"}, "x": {"{depth}'}}
        assert handler.asked[0][2]["size"] == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [({"ids": "hits.none"}, "`ids` finds no list"), ({"scores": "hits.hits[*]._id"}, "`scores` does not find one"),
     ({"scores": "reverse(hits.hits[*]._score)"}, "as distances do"), ({"url": "{}/none"}, "404")],
)  # fmt: skip
def test_answers_that_are_not_as_described(options, told):
    with service("elasticsearch") as (url, _):
        changed = {key: value.replace("{}", url) for key, value in options.items()}
        with pytest.raises(BackendError, match=told):
            http(url, **changed).search([Query(str(n), " ".join(small.TEXTS.values())) for n in range(9)], 6, Meter())


def test_a_secret_in_a_header_is_refused(tmp_path):
    block = ('[[retrievers]]\nname = "a"\nkind = "http"\nurl = "http://x"\nids = "a"\nbody = { q = "{query}" }\n'
             'headers = { Authorization = "ApiKey abcdef123" }\n')  # fmt: skip
    with pytest.raises(InputError, match="a secret does not belong in a file"):
        load(small.experiment(tmp_path, retrievers=block))


def test_latency_asks_past_the_cache(tmp_path, monkeypatch):
    with service("elasticsearch") as (url, handler), Cache(tmp_path / "c.sqlite") as cache:
        retriever = http(url)
        retriever.use(Resources(NOTHING, cache))
        retriever.search(QUERIES, 3, Meter())
        retriever.search(QUERIES, 3, Meter())
        assert len(handler.asked) == len(QUERIES)
        retriever.answer(QUERIES[0], 3, Meter())
        assert len(handler.asked) == len(QUERIES) + 1
        for key, tenant in ((KEY, "a"), (KEY, "b"), (KEY, "${TENANT}"), ("tomorrow's", "${TENANT}")):
            monkeypatch.setenv("KEY", key)
            other = http(url, headers={"Authorization": "ApiKey ${KEY}", "X-Tenant": tenant})  # others' answers
            other.use(Resources(NOTHING, cache))
            other.search(QUERIES[:1], 3, Meter())
        assert len(handler.asked) == len(QUERIES) + 4


def test_a_saved_run_is_found_beside_the_experiment_and_reproduced(tmp_path, monkeypatch):
    folder = tmp_path / "there"
    path = small.experiment(folder, retrievers=BM25 + block_of_run("theirs", "r.jsonl"))
    layouts.jsonl(folder / "r.jsonl", [{"query_id": q.id, "doc_id": "car", "score": 1.0} for q in QUERIES])
    first = run(path, Options(tmp_path / "out"))
    assert first.rankings("theirs")["q-rails"].doc_ids == ("car",)
    monkeypatch.chdir(folder.parent)
    assert not reproduce(first.folder).differing


def test_hits_that_are_no_documents_stop_a_reranker_with_a_message(tmp_path):
    rows = [{"query_id": q.id, "doc_id": "ghost", "score": 1.0} for q in QUERIES]
    layouts.jsonl(tmp_path / "r.jsonl", [*rows, {"query_id": QUERIES[0].id, "doc_id": "apple", "score": 0.5}])
    model = tiny.cross_encoder(tmp_path / "model").as_posix()
    blocks = f"""{BM25}
[[retrievers]]
name = "theirs"
kind = "run"
path = "{(tmp_path / "r.jsonl").as_posix()}"
unknown_hits = "irrelevant"

[[retrievers]]
name = "better"
of = "theirs"
rerank = {{ kind = "cross-encoder", model = "{model}" }}
"""
    found = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
    assert found.manifest.ledger.retrievers["theirs"].notes["not-in-corpus"] == ("ghost",)
    assert "1 of its hits have unknown ids, such as 'ghost'" in found.manifest.failed["better"]


def test_an_experiment_with_a_saved_run_can_be_given_as_an_object(tmp_path):
    layouts.jsonl(tmp_path / "r.jsonl", [{"query_id": "q-rails", "doc_id": "train", "score": 1.0}])
    theirs = block_of_run("theirs", (tmp_path / "r.jsonl").as_posix())
    loaded = load(small.experiment(tmp_path, retrievers=BM25 + theirs))
    assert load(loaded.experiment).experiment.resolved() == loaded.experiment.resolved()


def test_a_system_whose_ids_are_all_foreign_fails_and_many_foreign_hits_are_told_with_the_verdict(tmp_path, capsys):
    rows = [{"query_id": q.id, "doc_id": f"ghost {n}", "score": 9.0 - n} for q in QUERIES for n in range(2)]
    layouts.jsonl(tmp_path / "none.jsonl", rows)
    layouts.jsonl(
        tmp_path / "some.jsonl", [*rows, *({"query_id": q.id, "doc_id": "apple", "score": 1.0} for q in QUERIES)]
    )
    names = ("none", "some")
    blocks = BM25 + "".join(
        block_of_run(name, (tmp_path / f"{name}.jsonl").as_posix()) + 'unknown_hits = "irrelevant"\n' * (name == "some")
        for name in names
    )
    results = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
    said = results.manifest.failed["none"]
    assert said.startswith("12 of 12 hits have unknown ids, such as 'ghost 0'; ids of documents look like 'apple': ")
    print_results(results, quiet=False, as_json=False)
    told = " ".join(capsys.readouterr().out.split())
    assert "some returned 12 of 18 hits with unknown ids (e.g. 'ghost 0')" in told


ASKED = Query("q", "wörter")


class Service(OpenAIProvider):
    """Answers every query with the same JSON."""

    def __init__(self, reply=None, **more):
        super().__init__(**more)
        self.reply = {"hits": ["a", "b"], "scores": [2, 1]} if reply is None else reply

    def answer(self, path, body, headers, fault):
        return self.reply, {}


def retriever(url, **more):
    options = {"url": url, "ids": "hits", "scores": "scores", "body": {"q": "{query}"}, "patience": 0.1}
    return Endpoint(**{**options, **more})


def search(endpoint, **more):
    return retriever(endpoint.url, **more).search([ASKED], 2, Meter())[0]


def test_the_time_limit_bounds_the_whole_answer():
    with serving(Service(always="drip")) as endpoint:
        with pytest.raises(BackendError, match=r"no complete response within 0.5 s \(timeout\)"):
            search(endpoint, timeout=0.5)
        assert endpoint.hung_up.wait(600)


@pytest.mark.parametrize(
    "reply",
    [
        {"hits": ["a", "b"], "scores": [1, 10**400]},
        {"hits": ["a", "b"], "scores": [-(10**400), 1]},
        {"hits": ["a", "b"], "scores": [1, float("nan")]},
        {"hits": ["a", "b"], "scores": [1, True]},
        {"hits": ["a", "b"], "scores": ["1", "2"]},
        {"hits": ["a", "b"], "scores": {"a": 1, "b": 2}},
        {"hits": ["a", "b"], "scores": [1]},
        {"hits": ["a", "b"]},
        {"hits": "ab", "scores": [1, 2]},
        {"hits": ["a", None], "scores": [1, 2]},
        [],
        None,
        "hits",
    ],
    ids=lambda reply: json.dumps(reply)[:40],
)
def test_an_answer_that_is_not_as_described_is_one_message(reply):
    with serving(Service({"none": 0} if reply is None else reply)) as endpoint, pytest.raises(BackendError) as caught:
        search(endpoint)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_path_that_does_not_fit_the_answer_is_one_message():
    with serving(Service({"hits": None})) as endpoint, pytest.raises(BackendError, match="sort\\(hits\\)"):
        search(endpoint, ids="sort(hits)")


def test_a_number_is_an_id_too():
    with serving(Service({"hits": [7, 10**30], "scores": [2, 1]})) as endpoint:
        assert search(endpoint).doc_ids == ("7", "1" + "0" * 30)


def test_a_secret_in_the_address_a_header_and_the_body_is_sent_and_not_shown(monkeypatch):
    with serving(Service(always="expired")) as endpoint:
        monkeypatch.setenv("SEARCH_URL", endpoint.url.replace("://", "://me:canary-user@"))
        monkeypatch.setenv("KEY", "canary-head")
        monkeypatch.setenv("SITE", "canary-body")
        headers, body = {"authorization": "ApiKey ${KEY}"}, {"q": "{query}", "site": "${SITE}"}
        own = retriever("${SEARCH_URL}", headers=headers, body=body)
        with pytest.raises(BackendError) as caught:
            own.search([ASKED], 2, Meter())
        sent = endpoint.requests[0]
    assert sent["headers"]["authorization"] == "ApiKey canary-head"  # what is given goes before the address's user
    assert sent["body"] == {"q": "wörter", "site": "canary-body"}
    assert own.provenance == {"url": "${SEARCH_URL}"}
    assert "${SEARCH_URL}: 401" in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("key", ["line\nbreak", "schlüssel", "\x00"])
def test_a_key_that_no_header_can_hold_is_said_at_once(key):
    with serving(Service()) as endpoint:
        with pytest.raises(BackendError, match="the header 'X-Key' holds a character") as caught:
            search(endpoint, headers={"X-Key": key}, patience=60)
        assert endpoint.requests == []
    assert key not in str(caught.value)


def test_an_address_may_hold_any_letter():
    with serving(Service()) as endpoint:
        own = retriever(f"{endpoint.url}/süche?q={{query}}&n={{depth}}")
        assert own.search([ASKED], 2, Meter())[0].doc_ids == ("a", "b")


@pytest.mark.parametrize("id_", ["", " ", "a\r\nb", "\x1b[31m", "\0", "\u2028"])
def test_an_id_that_no_document_can_have_is_refused(id_):
    """It would break the TREC files, and steer the terminal on which it is shown."""
    with serving(Service({"hits": ["a", id_], "scores": [2, 1]})) as endpoint:
        asked = retriever(endpoint.url)
        asked.index([Document("a", "", "one")], Meter())
        with pytest.raises(BackendError, match="is among the hits, which is not an id"):
            asked.search([ASKED], 2, Meter())
