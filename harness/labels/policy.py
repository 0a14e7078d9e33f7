"""What a judge is asked to do, person and model alike."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.dataset.rows import read_text
from retrievers.errors import InputError, Problem

GRADE_WORDS = {
    0: "nothing to do with the question",
    1: "related, but does not answer it",
    2: "answers it in part, or the answer is unclear or hidden among other things",
    3: "dedicated to the question and answers it",
}
"""The four grades of TREC's passage tracks, in our words."""

DEFAULT = """\
Somebody typed the question into a search box. Grade each document by how far it would help that person.

Judge only what the document says, not how well it is written, how long it is, or whether you like it.
A document that shares words with the question and serves another purpose gets grade 0 or 1.
Read spelling mistakes as they were meant. Where you cannot tell, skip the document and write a note."""


def read_policy(path: Path | None) -> str:
    """Read the labelling policy of a file; the default one where none is named.

    Raises:
        InputError: the file cannot be read, or is blank.
    """
    if path is None:
        return DEFAULT
    text = read_text(path).strip()
    if not text:
        raise InputError(Problem(str(path), "holds no policy", "say when a document deserves which grade"))
    return text


def digest_of(*parts: str) -> str:
    """Return a short digest of texts, such as a policy or a prompt.

    >>> digest_of("a", "b") == digest_of("ab")
    False
    """
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
