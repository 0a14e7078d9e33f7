"""Whatever a retriever raises is that retriever's failure: one message, exit code 3,
the others kept.
"""

import pytest

from harness import records
from tests.support import small
from tests.support.small import BM25, ends

FAULTS = {
    "exits": ("sys.exit()", "SystemExit"),
    "stops": ('raise StopIteration("over")', "StopIteration: over"),
    "cancelled": ('raise asyncio.CancelledError("over")', "CancelledError: over"),
    "odd": ('raise type("Odd", (BaseException,), {})("over")', "Odd: over"),
    "unwritable": (r'raise ValueError("over \ud800")', r"ValueError: over \ud800"),
    "surrogate": (
        r'return [["\ud800", "apple"] for _ in queries]',
        r"'\ud800' is among the hits, which is not an id",
    ),
    "large": ('return [[("apple", 10 ** 400)] for _ in queries]', "cannot be read"),
    "bytes": ('return [[b"apple", b"boat"] for _ in queries]', "cannot be read"),
    "short": ("return []", "returned 0 lists for 6 queries"),
    "twice": ('return [["apple", "apple"] for _ in queries]', "has a document twice"),
    "number": (
        "return [[3] for _ in queries]",
        "6 of 6 hits have unknown ids, such as '3'",
    ),
    "deep": (
        'return json.loads("{")',
        "JSONDecodeError",
    ),  # raised in the standard library
}
"""What a user's function does, and what is told of it."""
MODULE = "import asyncio, json, sys\n" + "".join(
    f"{'async ' * (name == 'cancelled')}def {name}(queries, depth):\n    {body}\n"
    for name, (body, _) in FAULTS.items()
)


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    return small.module(tmp_path, monkeypatch, MODULE)


def failed_of(folder) -> dict[str, str]:
    return dict(records.read_results(folder / "results" / "small").manifest.failed)


def test_functions_fail_alone_whatever_they_raise_and_file_and_line_are_named(
    tmp_path, module, capsys
):
    block = '[[retrievers]]\nname = "{1}"\nkind = "python"\ncall = "{0}:{1}"\n'
    blocks = {name: block.format(module, name) for name in FAULTS}
    first = ends(
        capsys,
        3,
        "run",
        small.experiment(tmp_path, retrievers="".join(blocks.values()) + BM25),
    ).err
    path = small.experiment(
        tmp_path, name="debug", retrievers=blocks["exits"] + blocks["deep"] + BM25
    )
    output = ends(
        capsys, 3, "run", path, "--debug"
    ).err  # a lone surrogate in its log would end pytest-xdist
    failed = failed_of(tmp_path)
    assert [
        name for name, (_, message) in FAULTS.items() if message not in failed[name]
    ] == [], failed
    assert records.read_results(tmp_path / "results" / "small").retrievers == ("bm25",)
    assert "Traceback" not in first and "Traceback" in output
    for name in ("exits", "deep"):
        line = 3 + 2 * [*FAULTS].index(name)
        assert (
            f"({module}.py:{line})" in first
            and f'{module}.py", line {line}, in' in output
        )


def test_a_module_that_exits_when_it_is_imported_is_one_message(
    tmp_path, module, capsys
):
    (tmp_path / f"{module}.py").write_text("import sys\nsys.exit()\n")
    block = f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:ask"\n'
    path = small.experiment(tmp_path, retrievers=block + BM25)
    assert (
        f"cannot be imported: {module}: SystemExit ({module}.py:2)"
        in ends(capsys, 2, "run", path).err
    )
