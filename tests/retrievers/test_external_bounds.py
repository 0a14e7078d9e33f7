"""A search endpoint is asked by the same client as every service, and its answer is read as it was described."""

import json

import pytest

from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.search_endpoint import Endpoint
from retrievers.types import Document, Query
from tests.support.servers import OpenAIProvider, serving

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
