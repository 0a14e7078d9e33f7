"""One query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from retrievers.document import no_fields


class Claim(NamedTuple):
    """One statement of a reference answer, which can be checked by itself."""

    text: str
    vital: bool = True
    """Whether an answer without it would be no answer."""


class Reference(NamedTuple):
    """The right answers to a query; no retriever reads it."""

    answers: tuple[str, ...] = ()
    """Right answers, each complete by itself."""
    claims: tuple[Claim, ...] = ()


NO_REFERENCE = Reference()


@dataclass(frozen=True, slots=True)
class Query:
    """One query."""

    id: str
    text: str
    fields: Mapping[str, str] = field(default_factory=no_fields, hash=False)
    """Further values by name, for filters, slices and clusters."""
    reference: Reference = NO_REFERENCE
    history: tuple[str, ...] = ()
    """The earlier turns of the conversation, oldest first."""
    excluded: tuple[str, ...] = ()
    """Ids of documents that are left out of its ranking."""

    @property
    def text_with_history(self) -> str:
        """What a judge reads: the earlier turns, then the text, each on a line."""
        return "\n".join(self.words)

    @property
    def words(self) -> tuple[str, ...]:
        """The earlier turns and the text, by which a query without an id is known."""
        return (*self.history, self.text)

    @property
    def unanswerable(self) -> bool:
        """Whether the field `answerable` says that no document answers it."""
        return self.fields.get("answerable", "").lower() in ("false", "0", "no")

    def left_out(self, *, exclude_self: bool) -> frozenset[str]:
        """The ids of the documents that are left out of its ranking.

        Args:
            exclude_self: whether the document with the query's own id is, too: a query
                may itself be a document of the corpus.

        >>> sorted(Query("a", "", excluded=("b",)).left_out(exclude_self=True))
        ['a', 'b']
        """
        own_id = [self.id] if exclude_self else []
        return frozenset([*self.excluded, *own_id])
