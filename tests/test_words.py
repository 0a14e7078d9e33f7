"""No struck word is in messages, help, docstrings, templates or pages."""

import ast
import re
from itertools import chain
from pathlib import Path

PROJECT = Path(__file__).parents[1]
STRUCK = re.compile(
    r"\b(?:made of|held (?:to|against)|goe?s? by|taken for|leaves out 0|(?:nobody|nothing) can (?:say|tell)"
    r"|not to be had|thereof|befell|aside|whoever|whomever|told apart|tells? \w+ apart|cannot tell|wings?"
    r"|the house|mend(?:s|ed)?|caveats?|wins and losses|lies (?:in|at|where|there|beside|below|above))\b",
    re.IGNORECASE,
)
"""Turns that cost a second reading, as far as they are safe to search for."""
PROMPTS = {"answers/chat_judge.py", "labels/drafts.py", "labels/model_grades.py", "labels/pool.py"}
"""What models and judges are told: another word would be another question, and void what is cached."""


def test_no_struck_word_is_anywhere() -> None:
    code = chain.from_iterable((PROJECT / room).rglob("*") for room in ("harness", "retrievers"))
    for file in (*code, PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")):
        texts = []
        if file.suffix == ".py" and "/".join(file.parts[-2:]) not in PROMPTS:
            tree = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            texts = [(n.lineno, n.value) for n in tree if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        elif file.suffix in {".md", ".html", ".tex", ".j2"}:
            texts = list(enumerate(file.read_text(encoding="utf-8").splitlines(), 1))
        found = [(line, STRUCK.findall(" ".join(text.split()))) for line, text in texts]
        assert [one for one in found if one[1]] == [], file
