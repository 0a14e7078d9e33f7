"""Headers of requests to services."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from retrievers.errors import BackendError
from retrievers.options.placeholders import expand, hide_values

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A name that HTTP allows (RFC 9110)."""


class Header(NamedTuple):
    """One header of a request."""

    name: str
    content: str
    """It may have `${NAME}`."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers of all requests to a service; the case of their names does not count.

    In an experiment they are a table: name = "content".
    """

    lines: tuple[Header, ...] = ()

    @classmethod
    def read(cls, table: Mapping[str, str]) -> Headers:
        """Return the headers in a table.

        Raises:
            ValueError: a name has a character that no header's name may have.
        """
        for name in table:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header")
        return cls(tuple(Header(*header) for header in table.items()))

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read a table, and write it again."""
        return core_schema.no_info_after_validator_function(
            cls.read,
            handler.generate_schema(dict[str, str]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls.as_table
            ),
        )

    def as_table(self) -> dict[str, str]:
        """Return the headers as an experiment has them."""
        return dict(self.lines)

    def has_any(self, *names: str) -> bool:
        """Whether there is a header with one of these names.

        >>> Headers.read({"API-Key": "${KEY}"}).has_any("api-key", "authorization")
        True
        """
        names_here = {header.name.lower() for header in self.lines}
        return not names_here.isdisjoint(map(str.lower, names))

    def with_first(self, header: Header) -> Headers:
        """Return these headers behind another, which one of the same name replaces."""
        return Headers((header, *self.lines))

    def in_request(self, url: str) -> dict[str, str]:
        """Return the headers of a request to a service that speaks JSON.

        Args:
            url: its address; a user in it becomes the header Authorization.

        >>> NO_HEADERS.in_request("https://me:word@example.org")["Authorization"]
        'Basic bWU6d29yZA=='

        Raises:
            BackendError: a header has a character that is not allowed.
        """
        hide_values(self.as_table())
        # The spelling of a name here takes the place of the first one.
        header_by_lower: dict[str, Header] = {}
        for header in (*_own_headers(url), *self.lines):
            content = expand(header.content).strip()
            header_by_lower[header.name.lower()] = Header(header.name, content)
        for header in header_by_lower.values():
            if not (header.content.isascii() and header.content.isprintable()):
                raise BackendError(
                    f"the header {header.name!r} holds a character that no header "
                    "may have, such as a line break: look at the environment variable "
                    "that it is from"
                )
        return dict(header_by_lower.values())


NO_HEADERS = Headers()


def _own_headers(url: str) -> list[Header]:
    """Return the headers of all requests to an address."""
    headers = [
        Header("Content-Type", "application/json"),
        Header("Accept", "application/json"),
    ]
    parts = urlsplit(expand(url))
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        encoded_user = base64.b64encode(user.encode()).decode()
        headers.append(Header("Authorization", f"Basic {encoded_user}"))
    return headers
