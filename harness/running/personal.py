"""Queries that hold what looks like personal data: logs of searches do, and reports are sent around."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.stats.words import counted
from retrievers.types import Query

LONGEST = 10_000
"""Characters of a query that are looked at."""
EMAIL = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,63}){1,5}")
IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", re.IGNORECASE)
PHONE = re.compile(
    r"(?<![\w.,+-])(?:"
    r"\+[1-9][0-9]{0,2}(?:[ ()/.-]{0,2}[0-9]){6,12}"  # international: +49 (170) 1234567
    r"|00[1-9][0-9]{0,2}[ /-](?:[ ()/.-]{0,2}[0-9]){6,12}"
    r"|\(?0[1-9][0-9]{0,4}\)?[ /-]?[0-9]{3,4}[ -]?[0-9]{2,5}"  # with the zero before a town: 030 123456, 03-1234-5678
    r"|\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[.-][0-9]{4}"  # North America: (555) 123-4567
    r")(?![\w])"
)
DIGITS = 8
"""Of a number that is taken for one of a telephone, at least."""


def personal_data(queries: Iterable[Query]) -> str:
    """Say how many queries hold what looks like an e-mail address, an IBAN or a phone number; "" where none does.

    What was found is not shown, since the warning may be sent around as well.
    """
    found = [kinds for query in queries if (kinds := kinds_in(" \n ".join((query.text, *query.fields.values()))))]
    if not found:
        return ""
    named = ", ".join(f"{kind} {n:,}" for kind in KINDS if (n := sum(kind in one for one in found)))
    hold = "holds" if len(found) == 1 else "hold"
    return (f"{counted(len(found), 'query')} {hold} what looks like personal data ({named}): results and reports show "
            f"them, and services are sent them; mask them, or leave them out")  # fmt: skip


def kinds_in(text: str) -> frozenset[str]:
    """Return the kinds of personal data that a text seems to hold.

    >>> sorted(kinds_in("IBAN DE89 3704 0044 0532 0130 00 of a.b@example.org, +49 170 1234567"))
    ['IBAN', 'e-mail address', 'phone number']
    """
    text = text[:LONGEST]
    return frozenset(kind for kind, held in KINDS.items() if held(text))


def _email(text: str) -> bool:
    return "@" in text and EMAIL.search(text) is not None


def _iban(text: str) -> bool:
    return any(_checks(match[0].replace(" ", "").upper()) for match in IBAN.finditer(text))


def _checks(iban: str) -> bool:
    """Whether the two check digits are right: ISO 13616 by ISO 7064, MOD 97-10."""
    return 15 <= len(iban) <= 34 and int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1


def _phone(text: str) -> bool:
    return any(sum(one.isdigit() for one in match[0]) >= DIGITS for match in PHONE.finditer(text))


KINDS = {"e-mail address": _email, "IBAN": _iban, "phone number": _phone}
