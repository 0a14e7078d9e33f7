"""Whatever a retriever raises is that retriever's failure: one message, exit code 3, the others kept."""

import json

import pytest

from harness import records
from tests.retrievers.test_remote import BLOCKS as SERVICES
from tests.support import small
from tests.support.small import BM25, ended, ends

MODULE = '''
import asyncio
import sys

class Odd(BaseException):
    """No Exception."""

def exits(queries, depth):
    sys.exit()

def exits_with_one(queries, depth):
    sys.exit(1)

def generator(queries, depth):
    raise GeneratorExit("over")

def stops(queries, depth):
    raise StopIteration("over")

async def cancelled(queries, depth):
    raise asyncio.CancelledError("over")

def odd(queries, depth):
    raise Odd("over")

def unwritable(queries, depth):
    raise ValueError("over \\ud800")

def surrogate(queries, depth):
    return [["\\ud800", "apple"] for _ in queries]

def large(queries, depth):
    return [[("apple", 10 ** 400)] for _ in queries]

def short(queries, depth):
    return []

def twice(queries, depth):
    return [["apple", "apple"] for _ in queries]

def number(queries, depth):
    return [[3] for _ in queries]

def deep(queries, depth):
    return helped(queries)

def helped(queries):
    import json
    return json.loads("{")  # raised in the standard library
'''
FAULTS = {
    "exits": "SystemExit",
    "exits_with_one": "SystemExit: 1",
    "generator": "GeneratorExit: over",
    "stops": "StopIteration: over",
    "cancelled": "CancelledError: over",
    "odd": "Odd: over",
    "unwritable": r"ValueError: over \ud800",
    "surrogate": r"'\ud800' is among the hits, which is not an id",
    "large": "a score that is no finite number",
    "short": "returned 0 lists for 6 queries",
    "twice": "has a document twice",
    "number": "6 of 6 hits have unknown ids, such as '3'",
}


RAISED = {"exits": "    sys.exit()", "deep": "raised in the standard library"}


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    return small.module(tmp_path, monkeypatch, MODULE)


def failed_of(folder) -> dict[str, str]:
    return records.read(folder / "results" / "small").manifest.failed


def test_functions_fail_alone_whatever_they_raise(tmp_path, module):
    blocks = "".join(f'[[retrievers]]\nname = "{name}"\nkind = "python"\ncall = "{module}:{name}"\n' for name in FAULTS)
    assert ended("run", small.experiment(tmp_path, retrievers=blocks + BM25)) == 3
    failed = failed_of(tmp_path)
    assert [name for name, told in FAULTS.items() if told not in failed[name]] == [], failed
    assert records.read(tmp_path / "results" / "small").retrievers == ("bm25",)


def test_a_failure_names_file_and_line_of_the_users_code_and_debug_shows_all(tmp_path, module, capsys):
    blocks = "".join(f'[[retrievers]]\nname = "{name}"\nkind = "python"\ncall = "{module}:{name}"\n' for name in RAISED)
    path = small.experiment(tmp_path, retrievers=blocks + BM25)
    lines = [1 + next(n for n, said in enumerate(MODULE.splitlines()) if raised in said) for raised in RAISED.values()]
    first = ends(capsys, 3, "run", path).err
    assert all(f"({module}.py:{line})" in first for line in lines)
    assert "Traceback" not in first
    assert "Traceback" in (told := ends(capsys, 3, "run", path, "--debug").err)
    assert all(f'{module}.py", line {line}, in' in told for line in lines)


def test_a_module_that_exits_when_it_is_imported_is_one_message(tmp_path, module, capsys):
    (tmp_path / f"{module}.py").write_text("import sys\nsys.exit()\n")
    block = f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:ask"\n'
    path = small.experiment(tmp_path, retrievers=block + BM25)
    assert f"cannot be imported: {module}: SystemExit ({module}.py:2)" in ends(capsys, 2, "run", path).err


@pytest.mark.parametrize("hit", [{"doc_id": "\ud800", "score": 1}, {"doc_id": "apple", "score": 10**400}])
def test_a_saved_run_with_such_a_hit_is_one_message(tmp_path, monkeypatch, hit):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs.jsonl").write_text(json.dumps({"query_id": "q-rails", **hit}) + "\n")
    block = '[[retrievers]]\nname = "theirs"\nkind = "run"\npath = "theirs.jsonl"\n'
    assert ended("run", small.experiment(tmp_path, retrievers=block + BM25)) in (2, 3)


def test_certificates_that_are_not_there_fail_what_needs_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0000000000000000")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "0123456789abcdefghijklmnopqrst")
    blocks = "".join(f'[[retrievers]]\nname = "{name}"\n{one}\n' for name, one in SERVICES.items())
    blocks = blocks.replace("http://", "https://")
    assert ended("run", small.experiment(tmp_path, retrievers=blocks + BM25)) == 3
    failed = failed_of(tmp_path)
    assert failed.keys() == SERVICES.keys()
    spoken = {name: told for name, told in failed.items() if name not in ("bedrock", "store")}  # SDKs of their own
    assert all("SSL_CERT_FILE: no connection can be made" in told for told in spoken.values()), failed
