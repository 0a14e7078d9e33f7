"""The words that the program can print, taken from its code and templates; what the documentation says it prints."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, nodes

ROOT = Path(__file__).parents[1]
NO_SENTENCES = {"charts.py", "costs.py", "figures.py", "page.py", "theme.py", "write.py"}
"""Of the report: axes, drawings, style, what is written where."""
SHOWN = (
    *(ROOT / "harness/stats" / name for name in ("words.py", "sentences.py", "equivalence.py", "verdicts.py")),
    *(ROOT / "harness/scoring" / f"{name}.py" for name in ("outcome", "plans", "combined", "folders", "labellers")),
    *sorted(path for path in (ROOT / "harness/report").rglob("*.py") if path.name not in NO_SENTENCES),
    *(ROOT / "harness/console" / name for name in ("ahead.py", "scoreboards.py", "tables.py", "scoring.py")),
)
"""Files of code that make sentences of the report, of `compare`, `plan` and `gate`."""
TEMPLATES = sorted((ROOT / "harness/report/templates").glob("*.html"))
SCRIPTS = sorted((ROOT / "harness/report/templates/scripts").glob("*.js"))
UNSAID = {"Problem", "InputError", "refuse", "Option", "Argument", "compile", "getattr"}
"""Calls whose words are messages of errors and helps, or no words: these are documented elsewhere."""
HEADS = {
    "Query by query", "a against b =", "a and b", "wins/ties/ losses", "as the data has them, else by position",
    "against the baseline", "ideal of what was retrieved", "Skip to the decision", "Skip to the tests",
    "Skip to the browser of queries", "Skip to the lens",
    "Relevant documents and where they stood", "Rankings side by side", "Mean of these rows",
    "Copy or save", "Before and after",
}  # fmt: skip
"""Names of parts and columns, which say nothing."""
GAP = "\0"
"""Where a value stands."""


def in_code(path: Path) -> Iterator[str]:
    """The strings of a file without docstrings, messages of errors and helps; values are gaps."""
    tree = ast.parse(path.read_text("utf-8"))
    unsaid: set[int] = set()
    for node in ast.walk(tree):
        called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else called
        bare = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Raise) or called in UNSAID or bare:
            unsaid |= {id(part) for part in ast.walk(node)}
        for names, value in bound(node):
            if names & {"what", "remedy"}:
                unsaid |= {id(part) for part in ast.walk(value)}
        if isinstance(node, ast.JoinedStr):
            unsaid |= {id(part) for part in node.values if isinstance(part, ast.Constant)}
            formats = [part.format_spec for part in node.values if isinstance(part, ast.FormattedValue)]
            unsaid |= {id(part) for spec in formats if spec is not None for part in ast.walk(spec)}
    for node in ast.walk(tree):
        if id(node) in unsaid:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def bound(node: ast.AST) -> Iterator[tuple[set[str], ast.AST]]:
    """The names that a node gives values to, with these values."""
    if isinstance(node, ast.Assign | ast.For):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        yield names, node.value if isinstance(node, ast.Assign) else node.iter


def in_template(path: Path) -> Iterator[str]:
    """The text of a template outside tags, tables, headings and scripts, and the strings of its expressions."""
    tree = Environment().parse(path.read_text("utf-8"))
    text = "".join(_flat(tree))
    text = re.sub(r"(?s)<(table|script|style|pre|svg|head|h[1-4]|button|label|summary|dt)\b.*?</\1>", "\n", text)
    text = re.sub(r"(?s)<[a-zA-Z/!][^>]*>", "\n", re.sub(r"(?s)</?(b|i|small|bdi|code|a|span)\b[^>]*>", "", text))
    for line in text.split("\n"):
        if not line.lstrip().startswith(("|", "#")):
            yield html.unescape(line)
    for constant in tree.find_all(nodes.Const):
        if isinstance(constant.value, str):
            yield constant.value


def _flat(node: nodes.Node) -> Iterator[str]:
    """Text as it is and a gap for each expression, in the order of the template."""
    if isinstance(node, nodes.TemplateData):
        yield node.data
    elif isinstance(node, nodes.Expr) and not isinstance(node, nodes.TemplateData):
        yield GAP
    else:
        for part in node.iter_child_nodes(exclude=("test", "iter", "target", "args", "defaults")):
            if isinstance(node, nodes.If | nodes.For):
                yield GAP
            yield from _flat(part)
        if isinstance(node, nodes.If | nodes.For):
            yield GAP


def phrases(text: str) -> Iterator[str]:
    """The runs of three and more words between two values."""
    for part in text.split(GAP):
        phrase = plain(part).strip(" .,;:()|-−–·")
        if (
            len(re.findall(r"[A-Za-z][A-Za-z'’-]*", phrase)) >= 3
            and " " in phrase
            and "{" not in phrase
            and phrase not in HEADS
        ):
            yield phrase


def plain(text: str) -> str:
    """Text without the marks of Markdown, in one line."""
    return " ".join(text.replace("`", "").replace("**", "").split())


def documented() -> str:
    """The part of the documentation that lists the sentences, values as gaps."""
    text = (ROOT / "docs/statistics.md").read_text("utf-8")
    start = text.index("## Every sentence, and when it stands")
    end = text.index("\n## ", start + 1)
    return plain(re.sub(r"[‹›]", "", text[start:end]))


def templates(first: str = "## Every sentence, and when it stands", last: str = "\n## ") -> list[re.Pattern[str]]:
    """The documented sentences as patterns: values in braces, what stands sometimes between ‹ and ›.

    Args:
        first: the heading after which they begin.
        last: what they end before.
    """
    text = (ROOT / "docs/statistics.md").read_text("utf-8")
    start = text.index(first)
    quoted = re.findall(r'"([^"]+)"', plain(text[start : text.index(last, start + 1)]))
    return [re.compile(_pattern(sentence), re.DOTALL) for sentence in quoted]


def _pattern(sentence: str) -> str:
    marks = {"‹": "(?:", "›": ")?"}
    parts = re.split(r"(\{[^}]*\}|[‹›])", sentence)
    return "".join(marks.get(part, ".+?" if part.startswith("{") else re.escape(part)) for part in parts)


def in_script(path: Path) -> Iterator[str]:
    """The words between the quotes of a script; values are gaps."""
    code = re.sub(r"(?m)//.*$", "", path.read_text("utf-8").replace("\\u2212", "−"))
    code = re.sub(r"\$\{[^{}`\"]*\}", GAP, code)
    for words in re.split(r"[\"`\n{}]", code):
        prose = re.search(r"[A-Za-z’“”]+ [a-z’“”]+ [a-z]+", words) and not re.match(
            r"\s*(for|if|const|return)\b", words
        )
        if prose and not re.search(r"[=;<>\[\]&#/]|\.\w", words):
            yield words
