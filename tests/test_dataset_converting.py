"""The process that converts documents: what ends it, what is kept of that, what it is given, when it goes."""

import json
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.dataset import converted, converting, converting_process
from harness.dataset.converted import Converter
from harness.dataset.converting_process import ConvertingProcess, NotConverted
from harness.dataset.files import File
from harness.dataset.markdown import MarkdownSource
from harness.dataset.source import Findings
from tests.servers import PATIENCE

needs = pytest.mark.skipif(find_spec("markitdown") is None, reason="needs the extra `documents`")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
STUB = """
import json, os, signal, sys, time
print("{}", flush=True)
while head := sys.stdin.buffer.readline():
    sys.stdin.buffer.read(json.loads(head)["size"])
    """


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(converted, "version", lambda _: "1")
    monkeypatch.setattr(converted, "_installed", lambda: True)
    (tmp_path / "page.html").write_text("<title>T</title><p>text")
    return File(tmp_path / "page.html")


def converts_by(script: str, tmp_path: Path, monkeypatch) -> Path:
    """Have another script convert, which reads what is asked and then does this."""
    path = tmp_path / "stub.py"
    path.write_text(STUB + script)
    monkeypatch.setattr(converting, "__file__", str(path))
    return path


ANSWERS = "print(json.dumps({'title': 'T', 'text': 'text'}), flush=True)"


@posix
@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL, as by a machine that runs out of memory"),
        ("os.abort()", "SIGABRT"),
        ("sys.exit(7)", "exit code 7"),
        ("print(json.dumps({'undone': 'too little memory'}), flush=True)", "too little memory"),
    ],
)
def test_what_ends_the_process_from_outside_is_not_kept_as_the_document_s_fault(
    script, what, page, tmp_path, monkeypatch
):
    converts_by(script, tmp_path, monkeypatch)
    with pytest.raises(NotConverted, match=f"{what}.*tries it again"):
        Converter().convert(page)
    assert not (tmp_path / "cache").exists()
    converts_by(ANSWERS, tmp_path, monkeypatch)
    assert Converter().convert(page) == ("T", "text")


@posix
def test_a_document_that_takes_too_long_is_kept_as_such(page, tmp_path, monkeypatch):
    converts_by("os.kill(os.getpid(), signal.SIGPROF)", tmp_path, monkeypatch)
    converter = Converter()
    with pytest.raises(NotConverted, match="more than 120 s of the processor"):
        converter.convert(page)
    converts_by(ANSWERS, tmp_path, monkeypatch)
    with pytest.raises(NotConverted, match="more than 120 s of the processor"):
        converter.convert(page)


@posix
def test_every_pass_of_one_command_takes_the_same_files_for_documents(page, tmp_path, monkeypatch):
    (tmp_path / "other.htm").write_text("other")
    (tmp_path / "plain.md").write_text("plain")
    converts_by("os.kill(os.getpid(), signal.SIGKILL)", tmp_path, monkeypatch)
    source = MarkdownSource(tmp_path, ())
    first = [document.id for _, document in source.documents(Findings())]
    converts_by(ANSWERS, tmp_path, monkeypatch)
    assert [document.id for _, document in source.documents(Findings())] == first == ["plain"]
    again = [document.id for _, document in MarkdownSource(tmp_path, ()).documents(Findings())]
    assert again == ["other.htm", "page.html", "plain"]


@needs
@pytest.mark.parametrize("wrapped", [False, True])
def test_too_little_memory_is_the_document_s_fault_under_our_own_limit_alone(wrapped):
    from markitdown import FileConversionException
    from markitdown._exceptions import FailedConversionAttempt

    class Engine:
        def convert_stream(self, *_: object, **__: object) -> None:
            error = MemoryError()
            raise (
                FileConversionException(attempts=[FailedConversionAttempt(self, (MemoryError, error, None))])
                if wrapped
                else error
            )

    assert converting._converted(Engine(), b"", ".html", limited=True) == {"failed": "takes more than 4 GiB of memory"}
    assert "undone" in converting._converted(Engine(), b"", ".html", limited=False)


@pytest.mark.skipif(sys.platform != "linux", reason="others take the limit and do not heed it")
def test_a_lower_limit_of_the_machine_is_not_ours():
    code = (
        "import importlib.util, resource, sys; s = importlib.util.spec_from_file_location('c', sys.argv[1]); "
        "c = importlib.util.module_from_spec(s); s.loader.exec_module(c); "
        "resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), resource.RLIM_INFINITY)); "
        "print(c._limit_memory(), resource.getrlimit(resource.RLIMIT_AS)[0])"
    )
    for limit, told in ((2 << 30, f"False {2 << 30}"), (8 << 30, f"True {4 << 30}")):
        asked = [sys.executable, "-c", code, str(converting.__file__), str(limit)]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == told


@pytest.mark.parametrize("kept", ["{}", "[]", "null", '{"title": 1, "text": "a"}', '{"failed": 5}', "[" * 100_000])
def test_what_no_conversion_gives_is_not_taken(kept, page, tmp_path, monkeypatch):
    converts_by(ANSWERS, tmp_path, monkeypatch)
    assert Converter().convert(page).text == "text"
    [path] = (tmp_path / "cache" / "documents").iterdir()
    path.write_text(kept)
    assert Converter().convert(page).text == "text"
    assert json.loads(path.read_text()) == {"title": "T", "text": "text"}


def test_a_document_is_converted_where_nothing_can_be_kept(page, tmp_path, monkeypatch):
    converts_by(ANSWERS, tmp_path, monkeypatch)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "documents").write_text("a file")
    assert Converter().convert(page).text == "text"


def test_the_process_is_given_no_keys(page, tmp_path, monkeypatch):
    told = "print(json.dumps({'title': '', 'text': json.dumps(dict(os.environ))}), flush=True)"
    converts_by(told, tmp_path, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    given = json.loads(Converter().convert(page).text)
    assert given["PYTHONPATH"] == str(tmp_path)
    assert not [name for name in given if name not in (*converting_process.PASSED, "LC_CTYPE")]


@needs
def test_with_few_variables_it_finds_the_same_packages():
    assert ConvertingProcess().ask(b"<p>text", ".html")["text"] == "text"


@posix
def test_it_ends_soon_after_the_process_that_asked_was_killed(tmp_path):
    """The one that asked is killed in the midst of a document, when no end of the standard input is looked for."""
    busy = (
        "import importlib.util, sys; s = importlib.util.spec_from_file_location('c', sys.argv[1]); "
        "c = importlib.util.module_from_spec(s); s.loader.exec_module(c)\n"
        "c._end_with_parent(); print('busy', flush=True)\nwhile True: pass"
    )
    asks = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1]], "
        "stdout=subprocess.PIPE); print(p.stdout.readline().strip(), p.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", asks, str(converting.__file__), busy]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stderr is not None
        begun, child = parent.stdout.readline().split()
        parent.send_signal(signal.SIGKILL)
        timer = threading.Timer(PATIENCE, os.kill, (int(child), signal.SIGKILL))
        timer.start()
        parent.stderr.read()  # both hold it: it ends with the last of them
        by_itself = timer.is_alive()
        timer.cancel()
    assert begun == b"b'busy'"
    assert by_itself, "it outlived the process that asked"
