"""Where the key of a service comes from."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from retrievers.errors import InputError, Problem


def key_of(given: str, *variables: str) -> str:
    """Return the key that an experiment gives, else the first environment variable that is set.

    Args:
        given: the experiment's `api_key`, its `${NAME}` replaced.
        variables: names of environment variables, in the order in which they are looked at.

    Raises:
        InputError: there is none.
    """
    if given:
        return given
    for name in variables:
        if key := os.environ.get(name):
            return key
    remedy = f"export {variables[0]}=…, or give api_key"
    raise InputError(Problem(" or ".join(variables), "is not set in the environment", remedy))


def is_server_of(url: str, own: str) -> bool:
    """Return whether an address is of the server of another: only there does a key of the environment go.

    >>> is_server_of("https://api.cohere.com/v2/", "https://api.cohere.com"), is_server_of("http://a.b", "https://a.b")
    (True, False)
    """
    parts = urlsplit(url), urlsplit(own)
    return len({(one.scheme, one.hostname, one.port) for one in parts}) == 1
