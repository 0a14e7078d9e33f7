"""A Qdrant server that answers with more, later or elsewhere than asked: one message, in bounded time and size."""

import threading
from http.server import BaseHTTPRequestHandler

import pytest

from retrievers import insisting
from retrievers.errors import BackendError
from retrievers.stores import connection
from tests.qdrant_fake import store_at
from tests.servers import running


@pytest.fixture
def hostile(monkeypatch):
    """A server that does to each request what `hostile.behave` says, and counts them."""
    monkeypatch.setattr(insisting, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(insisting, "PATIENCE", 0.1)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked += 1
            self.server.behave(self)

        def log_message(self, *args):
            pass

    with running(Handler, asked=0) as server:
        yield server


def refused(server):
    store = store_at(f"http://127.0.0.1:{server.server_address[1]}")
    with pytest.raises(BackendError) as error:
        store.finished()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_redirection_is_named_and_not_followed(hostile):
    elsewhere = f"http://127.0.0.1:{hostile.server_address[1]}/elsewhere"

    def redirect(request):
        request.send_response(307)
        request.send_header("Location", elsewhere)
        request.send_header("Content-Length", "0")
        request.end_headers()

    hostile.behave = redirect
    told = refused(hostile)
    assert f"redirects to {elsewhere}" in told
    assert "start the server" not in told
    assert hostile.asked == 1


def test_an_answer_that_drips_ends_with_the_time_of_a_whole_one(hostile, monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT", 0.3)
    monkeypatch.setattr(insisting, "PATIENCE", 0.5)
    ended = threading.Event()

    def drip(request):
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        while not ended.wait(0.05):
            request.wfile.write(b" ")

    hostile.behave = drip
    assert "no whole answer came within 0.3 s" in refused(hostile)  # a byte each 0.05 s would take 14 hours
    ended.set()
    assert hostile.asked >= 2
