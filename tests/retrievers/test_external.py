"""Retrievers of others in one experiment: saved runs, a function, search endpoints (fakes of the real protocols)."""

import json
import re
from pathlib import Path

import pytest

from harness.console.results_text import print_results
from harness.dataset import load_dataset as load_dataset
from harness.dataset import parse_reference
from harness.experiment import load
from harness.labels.draw_pool import PoolOptions, draw_pool, read_material
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers.errors import BackendError, InputError
from retrievers.files.trec_files import write_trec_run
from retrievers.function import Function
from retrievers.meter import Meter
from retrievers.resources import Corpus, Resources
from retrievers.saved_run import SavedRun
from retrievers.search_endpoint import Endpoint
from retrievers.types import Document, Query
from tests.support import layouts, small
from tests.support.search_fakes import KEY, SERVICES, service
from tests.support.search_fakes import found as hits_of
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25

pytestmark = pytest.mark.usefixtures("in_tmp")

QUERIES = [Query(id_, text) for id_, text, _ in small.QUERIES]
FOREIGN = 'unknown_hits = "irrelevant"\n'


def hit(query: str, document: str, score: float = 1.0) -> dict[str, object]:
    return {"query_id": query, "doc_id": document, "score": score}


def block_of_run(name: str, path: str) -> str:
    return f'[[retrievers]]\nname = "{name}"\nkind = "run"\npath = "{path}"\n'


def of_run(folder: Path, name: str, rows: list[dict[str, object]]) -> str:
    """The block of a saved run."""
    layouts.jsonl(folder / f"{name}.jsonl", rows)
    return block_of_run(name, (folder / f"{name}.jsonl").as_posix())


def test_saved_runs_of_bm25_score_as_bm25_itself_in_every_form(tmp_path, finished):
    hits = finished.rankings("bm25")
    rows = [hit(q, one.doc_id, one.score) for q, some in hits.items() for one in some]
    layouts.parquet(tmp_path / "parquet.parquet", rows)
    write_trec_run(tmp_path / "trec.trec", hits.items(), tag="x")
    files = {"jsonl": "jsonl.jsonl", "parquet": "parquet.parquet", "trec": "trec.trec"}
    blocks = of_run(tmp_path, "jsonl", rows)
    blocks += "".join(
        block_of_run(name, (tmp_path / files[name]).as_posix())
        for name in ("parquet", "trec")
    )
    blocks += '[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["bm25", "trec"]\n'
    again = run(
        small.experiment(tmp_path, retrievers=BM25 + blocks),
        RunOptions(tmp_path / "out"),
    )
    means = again.summary.pivot(index="measure", columns="retriever", values="mean")
    assert all(
        means[name].tolist() == means["bm25"].tolist() for name in (*files, "both")
    )
    for name, file in files.items():
        provenance = again.manifest.retrievers[name].provenance
        assert provenance["run"] == file and len(provenance["sha256"]) == 64


def test_what_a_saved_run_lacks_and_has_beyond_is_noted(tmp_path):
    layouts.jsonl(
        tmp_path / "r.jsonl",
        [hit("q-fruit", "apple", 2.0), hit("q-fruit", "ghost", 3.0)],
    )
    retriever, meter = (
        SavedRun(path=str(tmp_path / "r.jsonl"), unknown_hits="irrelevant"),
        Meter(),
    )
    retriever.index(
        load_dataset(parse_reference(small.dataset(tmp_path / "docs"))).documents(),
        meter,
    )
    assert retriever.search(QUERIES, 5, meter)[0].doc_ids == ("ghost", "apple")
    assert meter.notes()["not-in-corpus"] == ("ghost",)
    assert len(meter.notes()["not-answered-query"]) == len(QUERIES) - 1
    with pytest.raises(
        BackendError, match="answers none of the queries, but such as 'q-fruit'"
    ):
        retriever.search(
            [query for query in QUERIES if query.id != "q-fruit"], 5, meter
        )
    assert [retriever.search([query], 5, meter)[0].doc_ids for query in QUERIES].count(
        ()
    ) == len(QUERIES) - 1


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("r.jsonl", "{", "r.jsonl:1: is not JSON"),
        ("r.jsonl", "[]", "r.jsonl:1: has no query, document or score"),
        ("r.jsonl", "", "there is no line"),
        (
            "r.jsonl",
            '{"query_id": "a", "doc_id": "b", "score": "x"}',
            "'x' is not a score",
        ),
        (
            "r.jsonl",
            '{"query_id": "a", "doc_id": "b", "score": 1}\n' * 2,
            "r.jsonl:2: document 'b' is ranked twice",
        ),
        ("r.jsonl", "[" * 100_000, "r.jsonl:1: is not JSON: maximum recursion"),
        ("r.jsonl", b"\xff", "is not JSON: 'utf-8'"),
        ("r.parquet", "x", "cannot be read as Parquet"),
        ("none.trec", None, "cannot be read"),
        ("none.jsonl", None, "cannot be read"),
        ("r.trec", "a Q0 b 1 x t", "r.trec:1"),
    ],
)
def test_malformed_runs(tmp_path, name, raw, told):
    if raw is not None:
        (tmp_path / name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    with pytest.raises(InputError, match=told):
        SavedRun(path=str(tmp_path / name)).check()


def test_foreign_hits_are_told_and_stop_a_reranker_and_a_system_that_gives_only_these(
    tmp_path, capsys
):
    ghosts = [hit(q.id, f"ghost {n}", 9.0 - n) for q in QUERIES for n in range(2)]
    blocks = BM25 + of_run(tmp_path, "none", ghosts)
    blocks += (
        of_run(tmp_path, "some", [*ghosts, *(hit(q.id, "apple") for q in QUERIES)])
        + FOREIGN
    )
    reranker = (
        'rerank = { kind = "http", dialect = "tei", base_url = "http://127.0.0.1:9" }'
    )
    blocks += f'[[retrievers]]\nname = "re"\nof = "some"\n{reranker}\n'
    results = run(
        small.experiment(tmp_path, retrievers=blocks), RunOptions(tmp_path / "out")
    )
    said = results.manifest.failed["none"]
    assert said.startswith(
        "12 of 12 hits have unknown ids, such as 'ghost 0'; ids of documents look like 'apple': "
    )
    assert "hits have unknown ids, such as 'ghost 0'" in results.manifest.failed["re"]
    assert results.manifest.ledger.retrievers["some"].notes["not-in-corpus"] == (
        "ghost 0",
        "ghost 1",
    )
    drawn = draw_pool(
        read_material([results.folder], 5), PoolOptions()
    )  # nobody is asked to judge them
    assert {one.id for query in drawn.queries for one in query.documents} == set(
        small.TEXTS
    )
    print_results(results, quiet=False, as_json=False)
    told = " ".join(capsys.readouterr().out.split())
    assert "some returned 12 of 18 hits with unknown ids (e.g. 'ghost 0')" in told


MODULE = """
def ids(queries, depth): return [["car", "train"] if "rails" in query else [] for query in queries]
async def pairs(queries, depth): return [[(d, -n) for n, d in enumerate(found)] for found in ids(queries, depth)]
"""


def test_a_function_of_ones_own_sync_or_async(tmp_path, monkeypatch):
    module = small.module(tmp_path, monkeypatch, MODULE)
    block = '[[retrievers]]\nname = "{1}"\nkind = "python"\ncall = "{0}:{1}"\n'
    blocks = block.format(module, "ids") + block.format(module, "pairs")
    found = run(
        small.experiment(tmp_path, retrievers=blocks), RunOptions(tmp_path / "out")
    )
    for name in ("ids", "pairs"):
        answers = {
            q: ranking.doc_ids
            for q, ranking in found.rankings(name).items()
            if ranking.doc_ids
        }
        assert answers == {"q-rails": ("car", "train")}
    assert found.costs[found.costs["stage"] == "search"]["calls"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "no_such_module_here:f",
            "cannot be imported: no_such_module_here: ModuleNotFoundError",
        ),
        ("json:lods", "did you mean 'loads'"),
        ("json", "is not a function"),
    ],
)
def test_functions_that_are_not_there(call, told):
    with pytest.raises(InputError, match=told):
        Function(call=call).check()


def documented(name: str, url: str) -> str:
    """The block of the documentation, asking the service at an address."""
    page = (
        Path(__file__).parents[2] / "docs" / "how-to" / "search-endpoint.md"
    ).read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [block] = [one for one in blocks if f'name = "{name}"' in one]
    written = re.sub(r'url = "https?://[^/"]+', f'url = "{url}', block)
    assert url in written
    return written


def test_the_blocks_of_the_documentation(tmp_path, monkeypatch, stack):
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    queries = [
        *QUERIES,
        Query("q-odd", 'rails & "roads" #1 a+b/ü?'),
        Query("q-none", "xyzzy"),
    ]
    rows = [
        {"id": one.id, "query": one.text, "relevant_documents": ["car"]}
        for one in queries
    ]
    (small.dataset(tmp_path / "data") / "queries.json").write_text(
        json.dumps(rows), encoding="utf-8"
    )
    running = {name: stack.enter_context(service(name)) for name in SERVICES}
    blocks = BM25 + "".join(documented(name, url) for name, (url, _) in running.items())
    place = small.experiment(tmp_path, retrievers=blocks)
    result = run(place, RunOptions(tmp_path / "out"))
    assert not result.manifest.failed
    for name, (url, handler) in running.items():
        rankings = result.rankings(name)
        for query in queries:
            assert sorted(rankings[query.id].doc_ids) == sorted(
                d for d, _ in hits_of(query.text, 5)
            )
        assert not rankings["q-none"].doc_ids
        assert len(handler.requests) == len(queries)
        facts = result.manifest.retrievers[name].provenance
        assert facts["url"].startswith(url) and facts["answered_at"] >= "2"
    run(
        small.experiment(tmp_path, retrievers=blocks, name="again"),
        RunOptions(tmp_path / "out"),
    )
    assert {len(handler.requests) for _, handler in running.values()} == {
        len(queries)
    }  # answers are kept
    run(place, RunOptions(tmp_path / "out", fresh=True))
    assert {len(handler.requests) for _, handler in running.values()} == {
        2 * len(queries)
    }
    assert KEY not in "".join(
        file.read_text() for file in (tmp_path / "out").rglob("*.json")
    )


def test_a_secret_in_a_header_is_refused(tmp_path):
    block = (
        '[[retrievers]]\nname = "a"\nkind = "http"\nurl = "http://x"\nids = "a"\nbody = { q = "{query}" }\n'
        'headers = { Authorization = "ApiKey abcdef123" }\n'
    )
    with pytest.raises(InputError, match="a secret does not belong in a file"):
        load(small.experiment(tmp_path, retrievers=block))


ASKED = Query("q", 'wörter "}, {depth}')
TWO = {"hits": ["a", "b"], "scores": [2, 1]}


class Service(OpenAIProvider):
    """Answers every query with the same JSON."""

    def __init__(self, script=(), *, reply=None, **more):
        super().__init__(script, **more)
        self.reply = TWO if reply is None else reply

    def answer(self, path, body, headers, fault):
        return self.reply, {}


def endpoint(url, **more):
    body = {"q": "{query}", "n": "{depth}"}
    return Endpoint(
        **{
            "url": url,
            "ids": "hits",
            "scores": "scores",
            "body": body,
            "patience": 0.1,
            **more,
        }
    )


def search(provider, meter=None, queries=(ASKED,), **more):
    return endpoint(provider.url, **more).search(queries, 2, meter or Meter())[0]


def test_passing_failures_are_tried_again_and_the_time_limit_bounds_the_whole_answer():
    with serving(Service(["503", "429"])) as provider:
        meter = Meter()
        assert search(provider, meter, patience=60).doc_ids == ("a", "b")
        assert meter.counts("search")["retries"] == 2
        # A query is put in as data, never as JSON.
        assert provider.requests[0]["body"] == {"q": ASKED.text, "n": 2}
    with serving(Service(always="drip")) as provider:
        with pytest.raises(
            BackendError, match=r"no complete response within 0.3 s \(timeout\)"
        ):
            search(provider, timeout=0.3)
        assert provider.hung_up.wait(600)


@pytest.mark.parametrize(
    ("reply", "options", "told"),
    [
        *(
            (
                {"hits": ["a", "b"], "scores": scores},
                {},
                "`scores` does not find one number",
            )
            for scores in (
                [1, 10**400],
                [1, float("nan")],
                [1, True],
                ["1", "2"],
                {"a": 1, "b": 2},
                [1],
            )
        ),
        ({"hits": ["a", "b"]}, {}, "`scores` does not"),
        ({"hits": "ab"}, {}, "`ids` finds no list"),
        ({"hits": ["a", None]}, {}, "`ids` finds no list"),
        ([], {}, "`ids`"),
        ({"none": 0}, {}, "`ids`"),
        ("hits", {}, "`ids`"),
        ({"hits": None}, {"ids": "sort(hits)"}, r"sort\(\)"),
        ({"hits": list("abcdefghijk"), "scores": [*range(11)]}, {}, "as distances do"),
        *(
            (
                {"hits": ["a", id_], "scores": [2, 1]},
                {},
                "is among the hits, which is not an id",
            )
            for id_ in ("", " ", "a\r\nb", "\x1b[31m", "\0", "\u2028")
        ),
    ],
)
def test_an_answer_that_is_not_as_described_is_one_message(reply, options, told):
    """An id that no document can have would break the TREC files, and steer the terminal on which it is shown."""
    with serving(Service(reply=reply)) as provider:
        asked = endpoint(provider.url, **options)
        asked.index([Document(letter, "", "one") for letter in "abcdefghijk"], Meter())
        with pytest.raises(BackendError, match=told) as caught:
            asked.search([ASKED], 11, Meter())
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


def test_a_number_is_an_id_too_and_an_address_may_hold_any_letter():
    with serving(Service(reply={"hits": [7, 10**30], "scores": [2, 1]})) as provider:
        own = endpoint(f"{provider.url}/süche?q={{query}}&n={{depth}}")
        assert own.search([ASKED], 2, Meter())[0].doc_ids == ("7", "1" + "0" * 30)


def test_latency_asks_past_the_cache_and_answers_are_kept_by_header_and_by_what_it_stands_for(
    cache, monkeypatch
):
    with serving(Service()) as provider:
        own = endpoint(provider.url)
        own.setup(Resources(Corpus(lambda: iter(()), 0, lambda ids: {}), cache))
        for _ in range(2):
            own.search(QUERIES, 3, Meter())
        assert len(provider.requests) == len(QUERIES)
        own.answer(QUERIES[0], 3, Meter())
        assert len(provider.requests) == len(QUERIES) + 1
        for key, tenant in (
            ("today's", "a"),
            ("today's", "b"),
            ("today's", "${TENANT}"),
            ("tomorrow's", "${TENANT}"),
        ):
            monkeypatch.setenv("KEY", key)
            other = endpoint(
                provider.url,
                headers={"Authorization": "ApiKey ${KEY}", "X-Tenant": tenant},
            )
            other.setup(Resources(Corpus(lambda: iter(()), 0, lambda ids: {}), cache))
            other.search(QUERIES[:1], 3, Meter())
        assert len(provider.requests) == len(QUERIES) + 4


def test_a_secret_in_the_address_a_header_and_the_body_is_sent_and_not_shown(
    monkeypatch,
):
    with serving(Service(always="expired")) as provider:
        monkeypatch.setenv(
            "SEARCH_URL", provider.url.replace("://", "://me:canary-user@")
        )
        monkeypatch.setenv("KEY", "canary-head")
        monkeypatch.setenv("SITE", "canary-body")
        headers, body = (
            {"authorization": "ApiKey ${KEY}"},
            {"q": "{query}", "site": "${SITE}"},
        )
        own = endpoint("${SEARCH_URL}", headers=headers, body=body)
        with pytest.raises(BackendError, match=r"\$\{SEARCH_URL\}: 401") as caught:
            own.search([ASKED], 2, Meter())
        sent = provider.requests[0]
    assert (
        sent["headers"]["authorization"] == "ApiKey canary-head"
    )  # what is given goes before the address's user
    assert sent["body"] == {"q": ASKED.text, "site": "canary-body"}
    assert own.provenance == {"url": "${SEARCH_URL}"} and "canary" not in str(
        caught.value
    )
