"""What a fake provider takes for a client's end, and what for a defect."""

import socket
from urllib.parse import urlsplit

import pytest

from tests.servers import OpenAIProvider, serving

HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: here\r\n"


def send(url: str, sent: bytes) -> None:
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # empty when the server has hung up, too


@pytest.mark.parametrize(
    "sent",
    [
        b"PO",
        HEAD + b"Content-Le",
        HEAD + b"Content-Length: ",
        HEAD + b"Content-Length: 9\r\n\r\n",
        HEAD + b"Content-Length: 9\r\n\r\n{",
    ],
)
def test_half_a_request_of_a_killed_client_is_no_defect(sent):
    with serving(OpenAIProvider()) as provider:
        send(provider.url, sent)
    assert provider.requests == []


@pytest.mark.parametrize("sent", [HEAD + b"Content-Length: 1\r\n\r\n{", HEAD + b"\r\n{}"])
def test_a_whole_request_that_cannot_be_read_is_a_defect(sent):
    with pytest.raises(ExceptionGroup, match="does not expect"), serving(OpenAIProvider()) as provider:
        send(provider.url, sent)
