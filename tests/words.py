"""How many words a reader meets (terminal, first screen, pages), and the struck words
that are still there.

python -m tests.words
"""

# ruff: noqa: T201 - it prints
import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tests.support.browser import NO_BROWSER, chromium

PROJECT = Path(__file__).parents[1]
STRUCK = re.compile(
    r"\b(?:made of|held (?:to|against)|goe?s? by|taken for|leaves out 0"
    r"|(?:nobody|nothing) can (?:say|tell)|not to be had|thereof|befell|aside"
    r"|whoever|whomever|told apart|tells? \w+ apart|cannot tell|wings?|the house"
    r"|mend(?:s|ed)?|caveats?|wins and losses"
    r"|lies (?:in|at|where|there|beside|below|above))\b",
    re.IGNORECASE,
)
"""Turns that cost a second reading, as far as they are safe to search for."""
PROMPTS = {
    "answers/chat_judge.py",
    "labels/drafts.py",
    "labels/model_grades.py",
    "labels/pool.py",
}
"""What models and judges are told: another word would be another question, and void
what is cached.
"""
TEMPLATES = {".html", ".tex", ".j2"}
RUNS = {
    "quickstart": "experiments/quickstart.toml",
    "sweep": "experiments/bm25-grid.toml",
}
SEEN = """
const seen = new Map();
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const closest = (node, found) =>
  node && !found(getComputedStyle(node)) ? closest(node.parentElement, found) : node;
for (let node; (node = walk.nextNode());) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect(), parent = node.parentElement;
  const style = getComputedStyle(parent);
  const shown = parent.checkVisibility({opacityProperty: true})
    && style.visibility != "hidden" && box.width > 2
    && !closest(parent, (style) => style.clipPath != "none");
  if (!shown || box.top >= innerHeight || box.bottom <= 0 || box.right <= 0) continue;
  const block = closest(node.parentElement, (style) => style.display != "inline");
  seen.set(block, (seen.get(block) ?? "") + node.textContent);
}
return [...seen.values()].join(" ");
"""
"""The text of what is inside the window; words that only a screen reader says are not
seen.
"""


class Found(NamedTuple):
    """A struck word, and where it is."""

    file: str
    line: int
    word: str


def pages() -> list[Path]:
    """README and every page of the documentation."""
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def count(text: str) -> int:
    """Words as `wc -w` counts them, signs and the bars of tables among them."""
    return len(text.split())


def struck() -> Iterator[Found]:
    """Struck words in messages, help and docstrings, in templates, and in pages."""
    code = [
        file
        for room in ("harness", "retrievers")
        for file in sorted((PROJECT / room).rglob("*"))
    ]
    for file in chain(code, pages()):
        if file.suffix == ".py" and "/".join(file.parts[-2:]) not in PROMPTS:
            tree = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            texts = [
                (n.lineno, n.value)
                for n in tree
                if isinstance(n, ast.Constant) and isinstance(n.value, str)
            ]
        elif file.suffix in {".md", *TEMPLATES}:
            texts = [(1, file.read_text(encoding="utf-8"))]
        else:
            continue
        for line, text in texts:
            for match in STRUCK.finditer(
                " ".join(text.split()) if file.suffix == ".py" else text
            ):
                at = (
                    line
                    if file.suffix == ".py"
                    else text.count("\n", 0, match.start()) + 1
                )
                yield Found(file.relative_to(PROJECT).as_posix(), at, match[0])


def terminal(experiment: str, results: str) -> str:
    """What a run prints on a terminal of 80 columns."""
    command = [sys.executable, "-m", "harness", "run", experiment, "--results", results]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout  # progress goes to stderr


def first_screen(report: Path) -> str:
    """The text that a browser of 1280 x 800 shows of a page before anything is
    scrolled.
    """
    with (
        tempfile.TemporaryDirectory() as profile,
        chromium(Path(profile), width=1280, height=800) as driver,
    ):
        driver.get(report.as_uri())
        return str(driver.execute_script(SEEN))


def main() -> None:
    with tempfile.TemporaryDirectory() as results:
        for name, experiment in RUNS.items():
            print(f"{count(terminal(experiment, results)):7,}  terminal, {name}")
            report = Path(results) / Path(experiment).stem / "report.html"
            print(
                NO_BROWSER or f"{count(first_screen(report)):7,}  first screen, {name}"
            )
    words = {
        page.relative_to(PROJECT).as_posix(): count(page.read_text(encoding="utf-8"))
        for page in pages()
    }
    for name, number in sorted(words.items(), key=lambda item: -item[1]):
        print(f"{number:7,}  {name}")
    readme = words.pop("README.md")
    print(f"{sum(words.values()):7,}  docs, in {len(words)} pages; README: {readme}")
    occurrences = list(struck())
    print(
        *(
            f"{occurrence.file}:{occurrence.line}: {occurrence.word}"
            for occurrence in occurrences
        ),
        sep="\n",
    )
    print(f"{len(occurrences):7,}  struck words")


if __name__ == "__main__":
    main()
