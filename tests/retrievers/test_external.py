"""External retrievers: saved runs, functions, fakes of search endpoints."""

import asyncio
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from harness.console.results_text import print_results
from harness.dataset import load_dataset as load_dataset
from harness.dataset import parse_reference
from harness.experiment import load
from harness.labels.draw_pool import PoolOptions, draw_pool, read_material
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers.cache import Cache
from retrievers.errors import BackendError, InputError
from retrievers.external import order_hits_of_packages
from retrievers.files.trec_files import write_trec_run
from retrievers.function import Function
from retrievers.ids import KnownDocuments
from retrievers.meter import Meter
from retrievers.resources import Corpus, Resources
from retrievers.saved_run import SavedRun
from retrievers.search_endpoint import Endpoint
from retrievers.types import Document, Query, Trace, ranked
from tests.support import layouts, small
from tests.support.search_fakes import KEY, SERVICES, service
from tests.support.search_fakes import found as hits_of
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25

pytestmark = pytest.mark.usefixtures("in_tmp")

QUERIES = [Query(id_, text) for id_, text, _ in small.QUERIES]
SERVICE_BLOCK = """[[retrievers]]
name = "ours"
kind = "http"
url = "{url}"
body = {{ q = "{{query}}", n = "{{depth}}" }}
ids = "hits"
scores = "scores"
"""
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
    rows = [
        hit(q, scored.doc_id, scored.score)
        for q, ranking in hits.items()
        for scored in ranking
    ]
    layouts.parquet(tmp_path / "parquet.parquet", rows)
    write_trec_run(tmp_path / "trec.trec", hits, tag="x")
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
        assert provenance.origin.run == file and len(provenance.origin.sha256) == 64


@pytest.mark.parametrize("suffix", [".jsonl", ".JSONL", ".NDJSON"])
def test_a_saved_run_is_rows_of_json_by_its_suffix_in_any_case(suffix, tmp_path):
    path = tmp_path / f"r{suffix}"
    layouts.jsonl(path, [hit("q1", "d1")])
    (ranking,) = SavedRun(str(path)).search([Query("q1", "text")], 1, Meter())
    assert ranking.doc_ids == ("d1",)


def test_a_score_of_parquet_may_be_a_decimal(tmp_path):
    layouts.parquet(tmp_path / "r.parquet", [hit("q1", "d1", Decimal("1.5"))])
    run_of_decimals = SavedRun(str(tmp_path / "r.parquet"))
    (ranking,) = run_of_decimals.search([Query("q1", "text")], 1, Meter())
    assert ranking.scores.tolist() == [1.5]


def test_missing_queries_and_unknown_hits_of_a_saved_run_are_noted(tmp_path):
    layouts.jsonl(
        tmp_path / "r.jsonl",
        [hit("q-fruit", "apple", 2.0), hit("q-fruit", "ghost", 3.0)],
    )
    retriever = SavedRun(path=str(tmp_path / "r.jsonl"), unknown_hits="irrelevant")
    meter = Meter()
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
    ("name", "raw", "message"),
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
        ("none.trec", None, "cannot be read: No such file"),
        ("none.jsonl", None, "cannot be read: No such file"),
        ("none.parquet", None, "cannot be read: No such file"),
        ("r.trec", "a Q0 b 1 x t", "r.trec:1"),
    ],
)
def test_malformed_runs(tmp_path, name, raw, message):
    if raw is not None:
        (tmp_path / name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    with pytest.raises(InputError, match=message):
        SavedRun(path=str(tmp_path / name)).check()


def test_unknown_hits_are_reported_and_stop_rerankers_and_systems_without_others(
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
    failures = dict(results.manifest.failed)
    failure = failures["none"]
    assert failure.startswith(
        "12 of 12 hits have unknown ids, such as 'ghost 0'; "
        "ids of documents look like 'apple': "
    )
    assert (
        "hits have unknown ids, such as 'ghost 0'"
        in dict(results.manifest.failed)["re"]
    )
    assert results.manifest.ledger.retrievers["some"].notes["not-in-corpus"] == (
        "ghost 0",
        "ghost 1",
    )
    drawn = draw_pool(
        read_material([results.folder], 5), PoolOptions()
    )  # nobody is asked to judge them
    assert {
        document.id for query in drawn.queries for document in query.documents
    } == set(small.TEXTS)
    print_results(results, quiet=False, as_json=False)
    output = " ".join(capsys.readouterr().out.split())
    assert "some returned 12 of 18 hits with unknown ids (e.g. 'ghost 0')" in output


MODULE = """
def ids(queries, depth):
    return [["car", "train"] if "rails" in query else [] for query in queries]
async def pairs(queries, depth):
    return [[(d, -n) for n, d in enumerate(hits)] for hits in ids(queries, depth)]
"""


def answers_of(results, retriever):
    """Query -> its documents, for the queries that have any."""
    rankings = results.rankings(retriever)
    return {query: ranking.doc_ids for query, ranking in rankings.items() if ranking}


def test_a_users_function_may_be_async(tmp_path, monkeypatch):
    module = small.module(tmp_path, monkeypatch, MODULE)
    block = '[[retrievers]]\nname = "{1}"\nkind = "python"\ncall = "{0}:{1}"\n'
    blocks = block.format(module, "ids") + block.format(module, "pairs")
    results = run(
        small.experiment(tmp_path, retrievers=blocks), RunOptions(tmp_path / "out")
    )
    assert answers_of(results, "ids") == {"q-rails": ("car", "train")}
    assert answers_of(results, "pairs") == {"q-rails": ("car", "train")}
    assert results.costs[results.costs["stage"] == "search"]["calls"].tolist() == [1, 1]


async def search_rails(query, depth):
    await asyncio.sleep(0)
    return ["car", "train"][:depth] if "rails" in query else []


def test_a_function_given_in_python_may_be_async():
    rankings = Function(search_rails).search(QUERIES, 2, Meter())
    answers = [ranking.doc_ids for ranking in rankings if ranking.doc_ids]
    assert answers == [("car", "train")]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_async_function_is_called_where_an_event_loop_runs_as_in_a_notebook():
    async def cell():
        return Function(search_rails).search(QUERIES, 2, Meter())

    rankings = asyncio.run(cell())
    assert [ranking.doc_ids for ranking in rankings].count(("car", "train")) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "no_such_module_here:f",
            "cannot be imported: no_such_module_here: ModuleNotFoundError",
        ),
        ("json:lods", "did you mean 'loads'"),
        ("json", "is not a function"),
        ("search.py:f", "name the module, not its file"),
    ],
)
def test_missing_functions_are_reported(call, message):
    with pytest.raises(InputError, match=message):
        Function(call=call).check()


def documented(name: str, url: str) -> str:
    """The block of the documentation, asking the service at an address."""
    page = (
        Path(__file__).parents[2] / "docs" / "how-to" / "search-endpoint.md"
    ).read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if f'name = "{name}"' in block]
    table = re.sub(r'url = "https?://[^/"]+', f'url = "{url}', block)
    assert url in table
    return table


def test_the_blocks_of_the_documentation(tmp_path, monkeypatch, stack):
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    queries = [
        *QUERIES,
        Query("q-odd", 'rails & "roads" #1 a+b/ü?'),
        Query("q-none", "xyzzy"),
    ]
    rows = [
        {"id": query.id, "query": query.text, "relevant_documents": ["car"]}
        for query in queries
    ]
    (small.dataset(tmp_path / "data") / "queries.json").write_text(
        json.dumps(rows), encoding="utf-8"
    )
    running = {name: stack.enter_context(service(name)) for name in SERVICES}
    blocks = BM25 + "".join(documented(name, url) for name, (url, _) in running.items())
    path = small.experiment(tmp_path, retrievers=blocks)
    result = run(path, RunOptions(tmp_path / "out"))
    assert not result.manifest.failed
    for name, (url, handler) in running.items():
        rankings = result.rankings(name)
        for query in queries:
            assert sorted(rankings[query.id].doc_ids) == sorted(
                d for d, _ in hits_of(query.text, 5)
            )
        assert not rankings["q-none"].doc_ids
        assert len(handler.requests) == len(queries)
        origin = result.manifest.retrievers[name].provenance.origin
        assert origin.url.startswith(url) and origin.answered_at >= "2"
    run(
        small.experiment(tmp_path, retrievers=blocks, name="again"),
        RunOptions(tmp_path / "out"),
    )
    assert {len(handler.requests) for _, handler in running.values()} == {
        len(queries)
    }  # answers are kept
    run(path, RunOptions(tmp_path / "out", fresh=True))
    assert {len(handler.requests) for _, handler in running.values()} == {
        2 * len(queries)
    }
    assert KEY not in "".join(
        file.read_text() for file in (tmp_path / "out").rglob("*.json")
    )


def test_a_secret_in_a_header_is_refused(tmp_path):
    block = (
        '[[retrievers]]\nname = "a"\nkind = "http"\nurl = "http://x"\nids = "a"\n'
        'body = { q = "{query}" }\n'
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


def test_failures_that_pass_are_retried():
    with serving(Service(["503", "429"])) as provider:
        meter = Meter()
        assert search(provider, meter, patience=60).doc_ids == ("a", "b")
        assert meter.counts("search")["retries"] == 2


def test_a_query_is_put_in_as_data_and_never_as_json():
    with serving(Service()) as provider:
        search(provider)
    assert provider.requests[0]["body"] == {"q": ASKED.text, "n": 2}


def test_the_timeout_covers_the_whole_answer():
    with serving(Service(always="drip")) as provider:
        with pytest.raises(
            BackendError, match=r"no complete response within 0.3 s \(timeout\)"
        ):
            search(provider, timeout=0.3)
        assert provider.hung_up.wait(600)


@pytest.mark.parametrize(
    ("scores", "notes"),
    [
        ([1, 1], {"tied-run-query": ["q"]}),
        ([0.1, 0.2], {"rising-run-query": ["q"]}),
        ([2, 1], {}),
    ],
)
def test_scores_of_an_endpoint_that_contradict_its_order_are_noted_once(scores, notes):
    meter = Meter()
    with serving(Service(reply={"hits": ["a", "b"], "scores": scores})) as provider:
        retriever = endpoint(provider.url)
        retriever.search([Query("q", "a text")], 2, meter)
        retriever.search([Query("timed", "a text")], 2, meter)
    assert {kind: list(ids) for kind, ids in meter.notes().items()} == notes


def test_a_repeated_document_is_noted_also_where_the_answer_is_cached(tmp_path):
    queries = [Query("q", "a text"), Query("r", "a text")]
    with (
        Cache(tmp_path / "cache.sqlite") as cache,
        serving(Service(reply={"hits": ["a", "a"], "scores": [2, 1]})) as provider,
    ):
        for _ in range(2):
            retriever = endpoint(provider.url)
            retriever.setup(Resources(Corpus(list, 0, dict), cache))
            meter = Meter()
            retriever.search(queries, 2, meter)
            assert meter.notes() == {"repeated-hit-query": ("q", "r")}
    assert len(provider.requests) == 1


def test_a_path_that_finds_nothing_is_noted():
    meter = Meter()
    reply = {"hits": [{"id": "a"}]}
    with serving(Service(reply=reply)) as provider:
        misspelt = endpoint(provider.url, ids="hits[*].ids", scores=None)
        misspelt.search([Query("q", "a text")], 2, meter)
    assert meter.notes() == {"not-answered-query": ("q",)}


def test_of_more_hits_than_asked_for_the_best_by_score_count():
    reply = {"hits": ["a", "b", "c"], "scores": [1, 3, 2]}
    with serving(Service(reply=reply)) as provider:
        assert search(provider).doc_ids == ("b", "c")


def test_of_equal_hits_the_greatest_id_counts_at_the_depth():
    reply = {"hits": ["a", "b", "c"], "scores": [1, 1, 1]}
    with serving(Service(reply=reply)) as provider:
        assert search(provider).doc_ids == ("c", "b")


def test_distances_of_a_function_are_refused_over_all_queries():
    """A function that is given in Python is called with one query at a time."""
    function = Function(lambda text, depth: [("a", 0.1), ("b", 0.2), ("c", 0.3)])
    queries = [Query(f"q{i}", f"text {i}") for i in range(5)]
    with pytest.raises(BackendError, match="as distances do"):
        function.search(queries, 10, Meter())


@pytest.mark.parametrize(
    "odd_hits",
    [[("a", 2.0), ("ghost", 1.0)], [(str(i), float(i)) for i in range(12)]],
    ids=["unknown", "rising"],
)
def test_a_single_query_that_is_timed_need_not_be_as_all_together(odd_hits):
    """Few of all hits are unknown, and not all scores rise; of this query they do."""
    usual = [(str(i), float(-i)) for i in range(12)]
    function = Function(lambda text, depth: odd_hits if text == "odd" else usual)
    function.index([Document(id_, "", "") for id_, _ in usual + odd_hits[:1]], Meter())
    queries = [Query(text, text) for text in ("a", "b", "odd")]
    *_, expected = function.search(queries, 20, Meter())
    assert function.answer(queries[-1], 20, Meter()) == expected


def test_a_query_too_long_for_an_address_is_one_message():
    retriever = Endpoint("http://127.0.0.1:9/{query}", ids="hits")
    with pytest.raises(BackendError, match=r"^http://127\.0\.0\.1:9/.*: URL too long$"):
        retriever.search([Query("q", "a" * 70_000)], 2, Meter())


def test_a_foreign_ranking_keeps_what_an_agent_did():
    trace = Trace((), calls=1, tokens=2, usd=0.0, seconds=0.1, end="answer")
    ranking = ranked(["a", "b"], [1, 2]).with_trace(trace)
    ordered = order_hits_of_packages(
        {"q": ranking}, KnownDocuments({"a", "b"}), 1, Meter()
    )
    assert ordered["q"].trace == trace


def test_a_foreign_ranking_is_cut_once_spellings_of_one_document_are_joined():
    ranking = ranked(["a.md", "a", "b", "c"], [4, 3, 2, 1])
    ordered = order_hits_of_packages(
        {"q": ranking}, KnownDocuments({"a", "b", "c"}), 2, Meter()
    )
    assert ordered["q"].doc_ids == ("a", "b")


@pytest.mark.parametrize(
    ("reply", "options", "message"),
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
def test_an_answer_that_does_not_match_the_paths_is_one_message(
    reply, options, message
):
    """An id with control characters would break TREC files, and control terminals."""
    with serving(Service(reply=reply)) as provider:
        retriever = endpoint(provider.url, **options)
        retriever.index(
            [Document(letter, "", "one") for letter in "abcdefghijk"], Meter()
        )
        with pytest.raises(BackendError, match=message) as caught:
            retriever.search([ASKED], 11, Meter())
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


def test_ids_may_be_numbers_and_addresses_have_any_letter():
    with serving(Service(reply={"hits": [7, 10**30], "scores": [2, 1]})) as provider:
        retriever = endpoint(f"{provider.url}/süche?q={{query}}&n={{depth}}")
        assert retriever.search([ASKED], 2, Meter())[0].doc_ids == ("7", "1" + "0" * 30)


def cached_endpoint(provider, cache, **more):
    retriever = endpoint(provider.url, **more)
    retriever.setup(Resources(Corpus(lambda: iter(()), 0, lambda ids: {}), cache))
    return retriever


def test_answers_are_cached_and_latency_bypasses_the_cache(cache):
    with serving(Service()) as provider:
        retriever = cached_endpoint(provider, cache)
        for _ in range(2):
            retriever.search(QUERIES, 3, Meter())
        assert len(provider.requests) == len(QUERIES)
        retriever.answer(QUERIES[0], 3, Meter())
        assert len(provider.requests) == len(QUERIES) + 1


def test_answers_are_cached_by_header_and_not_by_key(cache, monkeypatch):
    requests = []
    with serving(Service()) as provider:
        for key, tenant in (
            ("today's", "a"),
            ("today's", "b"),
            ("today's", "${TENANT}"),
            ("tomorrow's", "${TENANT}"),
        ):
            monkeypatch.setenv("KEY", key)
            headers = {"Authorization": "ApiKey ${KEY}", "X-Tenant": tenant}
            cached_endpoint(provider, cache, headers=headers).search(
                QUERIES[:1], 3, Meter()
            )
            requests.append(len(provider.requests))
    assert requests == [1, 2, 3, 3]


def test_secrets_in_address_headers_and_body_are_sent_and_not_shown(
    monkeypatch,
):
    with serving(Service(always="expired")) as provider:
        monkeypatch.setenv(
            "SEARCH_URL", provider.url.replace("://", "://me:canary-user@")
        )
        monkeypatch.setenv("KEY", "canary-head")
        monkeypatch.setenv("SITE", "canary-body")
        headers = {"authorization": "ApiKey ${KEY}"}
        body = {"q": "{query}", "site": "${SITE}"}
        retriever = endpoint("${SEARCH_URL}", headers=headers, body=body)
        with pytest.raises(BackendError, match=r"\$\{SEARCH_URL\}: 401") as caught:
            retriever.search([ASKED], 2, Meter())
        sent = provider.requests[0]
    assert (
        sent["headers"]["authorization"] == "ApiKey canary-head"
    )  # what is given goes before the address's user
    assert sent["body"] == {"q": ASKED.text, "site": "canary-body"}
    assert retriever.provenance == {"url": "${SEARCH_URL}"}
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    ("bad_reply", "reason"),
    [
        ({"hits": ["ghost"], "scores": [1]}, "hits have unknown ids"),
        ({"hits": [], "scores": []}, "returned no document for any"),
        (
            {"hits": list(small.TEXTS), "scores": list(range(len(small.TEXTS)))},
            "its scores rise",
        ),
    ],
)
def test_a_mended_service_is_asked_again(tmp_path, bad_reply, reason, fresh):
    service = Service(reply=bad_reply)
    with serving(service) as provider:
        block = SERVICE_BLOCK.format(url=provider.url)
        path = small.experiment(tmp_path, retrievers=BM25 + block)
        failed = run(path, RunOptions(tmp_path / "out", fresh=fresh))
        assert reason in dict(failed.manifest.failed)["ours"]
        service.reply = {"hits": ["apple"], "scores": [1]}
        mended = run(path, RunOptions(tmp_path / "out"))
    assert not mended.manifest.failed
    assert {hits.doc_ids for hits in mended.rankings("ours").values()} == {("apple",)}


def test_the_headline_of_a_failed_service_closes_its_brackets(tmp_path, capsys):
    with serving(Service(always="503")) as provider:
        block = SERVICE_BLOCK.format(url=provider.url) + "patience = 0.1\n"
        path = small.experiment(tmp_path, retrievers=BM25 + block)
        results = run(path, RunOptions(tmp_path / "out"))
    assert "(tried " in dict(results.manifest.failed)["ours"]
    print_results(results, quiet=False, as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    headline = printed[printed.index("No recommendation") :].partition(" bm25 ")[0]
    assert headline.count("(") == headline.count(")") == 1, headline
