"""How many small faults the fast tests catch: `python -m tests.mutations [--count 150]
[--seed 0]`, run by hand.

One fault at a time is put into a copy of the project: an operator, a constant, a
comparison or a returned value, drawn in turn by a seed from the modules that figures
and ids pass through. The test files that run the changed line (told by coverage) are
tried, those that spend most of their tests on it first, until one fails. What no test
sees is printed with its place; each is to be looked at.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[1]
ROOMS = (
    "harness/measures",
    "harness/stats",
    "harness/evaluation",
    "harness/dataset",
    "harness/records",
    "retrievers/calling.py",
    "retrievers/clients.py",
    "retrievers/stores",
    "retrievers/ids.py",
    "retrievers/ranking.py",
)
SWAPS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.And: "or",
    ast.Or: "and",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
FILES = 24
"""Test files that are tried for a fault, at most."""
PATIENCE = 240
"""Seconds after which the tests of a fault are stopped: it counts as caught, since they
end without it.
"""


class Fault(NamedTuple):
    """A change of one place."""

    kind: str
    file: str
    line: int
    before: str
    after: str
    start: int
    end: int
    """Where the text that is changed begins and ends, in bytes."""


class Operation(NamedTuple):
    """An operator between two expressions."""

    kind: str
    left: ast.expr
    operator: ast.AST
    right: ast.expr


def operation_of(node: ast.AST) -> Operation | None:
    """Return a node's operation; None if it has none or several."""
    match node:
        case ast.BinOp(left=left, op=operator, right=right):
            return Operation("operator", left, operator, right)
        case ast.BoolOp(op=operator, values=[left, right]):
            return Operation("operator", left, operator, right)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return Operation("comparison", left, operator, right)
    return None


def faults(path: Path) -> Iterator[Fault]:  # noqa: C901 - a table of kinds
    """Yield every change that could be made to a file."""
    source = path.read_bytes()
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    name = path.relative_to(PROJECT).as_posix()

    def place(node: ast.AST) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[
            node.end_lineno - 1
        ] + node.end_col_offset

    def fault(kind: str, node: ast.AST, start: int, end: int, after: str) -> Fault:
        return Fault(
            kind, name, node.lineno, source[start:end].decode(), after, start, end
        )

    for node in walk(tree):
        swapped = operation_of(node)
        if swapped is not None and type(swapped.operator) in SWAPS:
            yield fault(
                swapped.kind,
                node,
                place(swapped.left)[1],
                place(swapped.right)[0],
                f" {SWAPS[type(swapped.operator)]} ",
            )
        match node:
            case ast.Constant(value=bool(value)):
                yield fault("constant", node, *place(node), str(not value))
            case ast.Constant(value=int(value) | float(value)):
                yield fault("constant", node, *place(node), repr(value + 1))
            case ast.Return(value=ast.expr() as value) if not isinstance(
                value, ast.Constant
            ):
                yield fault("value", node, *place(value), "None")


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what is run: no annotations and no f-strings, whose parts have no place
    before Python 3.12.
    """
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from walk(inner)


def applied(source: bytes, fault: Fault) -> bytes | None:
    """The source with a fault; None where brackets between the operands make it another
    program than was meant.
    """
    between = source[fault.start : fault.end]
    changed = source[: fault.start] + fault.after.encode() + source[fault.end :]
    if fault.kind in ("operator", "comparison"):
        signs = between.strip()
        while signs[:1] in (b")", b"]"):
            signs = signs[1:].strip()
        while signs[-1:] in (b"(", b"["):
            signs = signs[:-1].strip()
        at = source.index(signs, fault.start)
        changed = source[:at] + fault.after.strip().encode() + source[at + len(signs) :]
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed


def drawn(count: int, seed: int, lines: dict[str, dict[int, list[str]]]) -> list[Fault]:
    """Draw faults, the kinds in turn, among those in lines that any test runs."""
    paths = [
        path
        for room in ROOMS
        for path in sorted(
            (PROJECT / room).rglob("*.py")
            if (PROJECT / room).is_dir()
            else [PROJECT / room]
        )
    ]
    sites: dict[str, list[Fault]] = {}
    for path in paths:
        source = path.read_bytes()
        for fault in faults(path):
            if (
                fault.line in lines.get(fault.file, {})
                and applied(source, fault) is not None
            ):
                sites.setdefault(fault.kind, []).append(fault)
    draw = random.Random(seed)
    for line_sites in sites.values():
        draw.shuffle(line_sites)
    kinds = sorted(sites)
    return [sites[kinds[i % len(kinds)]][i // len(kinds)] for i in range(count)]


def covered(copy: Path) -> dict[str, dict[int, list[str]]]:
    """Run the fast tests once: file -> line -> the tests that run it; what is run while
    importing is left out.
    """
    (copy / "contexts.py").write_text(
        "import coverage, pytest\n"
        "@pytest.hookimpl(hookwrapper=True)\n"
        "def pytest_runtest_protocol(item):\n"
        "    coverage.Coverage.current().switch_context(item.nodeid)\n"
        "    yield\n"
    )
    (copy / "cover.ini").write_text("[run]\nsource = harness, retrievers\n")
    run = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        "--rcfile=cover.ini",
        "-m",
        "pytest",
        "-q",
        "-p",
        "contexts",
    ]
    subprocess.run(
        [*run, "-p", "no:xdist", "-m", "not slow"],
        cwd=copy,
        env=surroundings(copy),
        check=False,
    )
    subprocess.run(
        [
            sys.executable,
            "-m",
            "coverage",
            "json",
            "--rcfile=cover.ini",
            "--show-contexts",
            "-q",
        ],
        cwd=copy,
        check=True,
    )
    covered_files = json.loads((copy / "coverage.json").read_text())["files"]
    return {
        Path(name).as_posix(): line_tests(file["contexts"])
        for name, file in covered_files.items()
    }


def line_tests(contexts: dict[str, list[str]]) -> dict[int, list[str]]:
    """The tests that run each line that a test runs."""
    tests = {int(line): list(filter(None, all_)) for line, all_ in contexts.items()}
    return {line: names for line, names in tests.items() if names}


def surroundings(copy: Path) -> dict[str, str]:
    """The environment in which the copy is what is imported."""
    return {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


def catches(copy: Path, changed: str, tests: list[str], sizes: Counter[str]) -> bool:
    """Whether any test fails: the file's own examples, then those that spend the
    largest share of their tests on it.
    """
    share = Counter(test.partition("::")[0] for test in tests)
    files = sorted(share, key=lambda file: (-share[file] / sizes[file], file))[:FILES]
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not slow",
    ]
    try:
        ended = subprocess.run(
            [*run, changed, *files],
            cwd=copy,
            env=surroundings(copy),
            timeout=PATIENCE,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


def main() -> None:
    """Draw, try, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(
            PROJECT,
            copy,
            ignore=shutil.ignore_patterns(".git", ".venv", "build", "__pycache__"),
        )
        lines = covered(copy)
        all_tests: set[str] = set()
        for tests_by_line in lines.values():
            all_tests.update(*tests_by_line.values())
        sizes = Counter(test.partition("::")[0] for test in all_tests)
        caught: Counter[tuple[str, bool]] = Counter()
        for fault in drawn(options.count, options.seed, lines):
            path = copy / fault.file
            source = path.read_bytes()
            changed = applied(source, fault)
            assert changed is not None
            path.write_bytes(changed)
            is_caught = catches(copy, fault.file, lines[fault.file][fault.line], sizes)
            path.write_bytes(source)
            caught[fault.kind, is_caught] += 1
            if not is_caught:
                sys.stdout.write(
                    f"survives: {fault.file}:{fault.line}: {fault.before!r} -> "
                    f"{fault.after!r}\n"
                )
                sys.stdout.flush()
        for kind in sorted({kind for kind, _ in caught}):
            sys.stdout.write(
                f"{kind}: {caught[kind, True]} of "
                f"{caught[kind, True] + caught[kind, False]} caught\n"
            )
        sys.stdout.write(
            f"all: {sum(n for (_, is_caught), n in caught.items() if is_caught)} of "
            f"{options.count} caught\n"
        )


if __name__ == "__main__":
    main()
