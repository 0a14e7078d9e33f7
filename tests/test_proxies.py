"""Proxies as companies write them into the environment: asked with their user, or refused in one message."""

import base64
import sys

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


@pytest.mark.parametrize(
    ("name", "user", "scheme"),
    [*((name, f"us%40er:{PASSWORD}%21@", "http://") for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY")),
     ("http_proxy", f"us%40er:{PASSWORD}%21@", ""), ("all_proxy", "", "http://"), ("http_proxy", "", "")],
)  # fmt: skip
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


INVALID = r"^HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: holds an invalid"


@pytest.mark.parametrize(
    ("proxy", "error", "told"),
    [(f"ftp://us:{PASSWORD}@127.0.0.1:9", InputError, INVALID),
     (f"http://us:{PASSWORD}@host:notaport", InputError, INVALID), (f"http://us:{PASSWORD}@[::1", InputError, INVALID),
     (f"socks5://us:{PASSWORD}@127.0.0.1:9", InputError, "pip install socksio"),
     ("127.0.0.1:9", HarnessError, r"127\.0\.0\.1:9"), (f"us:{PASSWORD}@127.0.0.1:9", HarnessError, r"127\.0\.0\.1:9")],
)  # fmt: skip
def test_a_proxy_that_cannot_be_asked_is_one_message_without_its_password(monkeypatch, proxy, error, told):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(error, match=told) as refused:
        asked()
    assert PASSWORD not in str(refused.value)


def test_a_file_of_certificates_that_is_not_there_is_one_message(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(InputError, match="SSL_CERT_FILE: cannot be read: No such"):
        asked()


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
    assert "holds an invalid address of a proxy" in errors["far"]
