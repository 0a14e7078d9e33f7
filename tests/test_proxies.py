"""Proxies as companies write them into the environment: asked with their user, or refused in one message."""

import base64

import pytest

from harness.pipeline import run
from harness.running.options import Options
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, HarnessError, InputError
from retrievers.meter import single_call
from tests import small
from tests.servers import OpenAIProvider, Refusal, serving

PASSWORD = "sEcretPw123"
FAR = "http://example.invalid:9/v1"


class Strict(OpenAIProvider):
    """A proxy that knows nobody."""

    def refusal(self, fault, headers):
        return Refusal(407, "", "Proxy Authentication Required")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def asked(url=FAR):
    return OpenAIEncoder("m", base_url=url, price=0, patience=0.1, timeout=60).embed(
        ["a text"], "document", single_call()
    )


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("user", ["", f"us%40er:{PASSWORD}%21@"])
@pytest.mark.parametrize("scheme", ["http://", "", " http://"])
def test_a_proxy_is_asked_with_its_user(monkeypatch, name, user, scheme):
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv(name, f"{scheme}{user}{provider.url.removeprefix('http://').partition('/')[0]}")
        assert len(asked().vectors) == 1
    (request,) = provider.requests
    told = base64.b64encode(f"us@er:{PASSWORD}!".encode()).decode()
    assert request["headers"].get("proxy-authorization") == (f"Basic {told}" if user else None)


def test_a_proxy_of_the_scheme_goes_before_the_one_for_all(monkeypatch):
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("http_proxy", provider.url.removeprefix("http://").partition("/")[0])
        monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
        assert len(asked().vectors) == 1


def test_an_address_that_needs_no_proxy_is_asked_directly(monkeypatch):
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(OpenAIProvider()) as provider:
        assert len(asked(provider.url).vectors) == 1


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        (f"socks5://us:{PASSWORD}@127.0.0.1:9", "needs socksio"),
        (f"ftp://us:{PASSWORD}@127.0.0.1:9", "of the kind 'ftp'"),
        (f"http://us:{PASSWORD}@host:notaport", "is no address of a proxy"),
        (f"us:{PASSWORD}@host:99999", "is no address of a proxy"),
        (f"http://us:{PASSWORD}@[::1", "is no address of a proxy"),
        (f"http://us:{PASSWORD}@", "is no address of a proxy"),
    ],
)
def test_a_proxy_that_is_none_is_one_message_without_its_password(monkeypatch, proxy, told):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(InputError, match=rf"^HTTP_PROXY: .*{told}") as refused:
        asked()
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize("proxy", ["127.0.0.1:9", f"us:{PASSWORD}@127.0.0.1:9"])
def test_a_proxy_that_is_not_there_is_one_message_without_its_password(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(HarnessError, match=r"127\.0\.0\.1:9") as refused:
        asked()
    assert PASSWORD not in str(refused.value)


def test_a_proxy_that_asks_for_another_user_says_where_to_look(monkeypatch):
    with serving(Strict()) as provider:
        monkeypatch.setenv("http_proxy", f"us:{PASSWORD}@{provider.url.removeprefix('http://').partition('/')[0]}")
        with pytest.raises(BackendError, match="HTTP_PROXY") as refused:
            asked()
    assert PASSWORD not in str(refused.value)


def test_a_proxy_that_is_none_stops_only_what_needs_it(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("http_proxy", "http://host:notaport")
    encoder = f'encoder = {{ kind = "openai", model = "m", base_url = "{FAR}" }}'
    retrievers = f'[[retrievers]]\nname = "far"\n{encoder}\n[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'
    results = run(small.experiment(tmp_path, retrievers=retrievers), Options(tmp_path / "results"))
    errors = {name: facts.error for name, facts in results.manifest.retrievers.items()}
    assert errors["bm25"] == ""
    assert errors["far"].startswith("HTTP_PROXY: is no address of a proxy")
