"""The process that converts documents: what ends it, what is kept of that, what it is given, when it goes."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from harness.dataset import converting
from harness.dataset.converting import Converter, NotConverted
from harness.dataset.files import File
from harness.dataset.markdown_folder import MarkdownSource
from harness.dataset.source import Findings

needs = pytest.mark.skipif(find_spec("markitdown") is None, reason="needs the extra `documents`")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
STUB = """
import json, os, signal, sys, time
while head := sys.stdin.buffer.readline():
    sys.stdin.buffer.read(json.loads(head)["size"])
    """


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(converting, "version", lambda _: "1")
    monkeypatch.setattr(converting, "installed", lambda: True)
    (tmp_path / "page.html").write_text("<title>T</title><p>text")
    return File(tmp_path / "page.html")


def converts_by(script: str, monkeypatch) -> None:
    """Have another script convert, which reads what is asked and then does this."""
    monkeypatch.setattr(converting, "CHILD", STUB + script)


ANSWERS = "print(json.dumps({'title': 'T', 'text': 'text'}), flush=True)"


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
def test_what_does_not_begin_as_its_format_is_not_taken_for_text(name, page, tmp_path):
    (tmp_path / name).write_text("an error page, saved under a wrong name")
    with pytest.raises(NotConverted, match="whatever its name says"):
        Converter().convert(File(tmp_path / name))


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
    converts_by(script, monkeypatch)
    with pytest.raises(NotConverted, match=f"{what}.*tries it again"):
        Converter().convert(page)
    assert not (tmp_path / "cache").exists()
    converts_by(ANSWERS, monkeypatch)
    assert Converter().convert(page) == ("T", "text")


@posix
def test_a_document_that_takes_too_long_is_kept_as_such(page, tmp_path, monkeypatch):
    converts_by("os.kill(os.getpid(), signal.SIGPROF)", monkeypatch)
    converter = Converter()
    with pytest.raises(NotConverted, match="more than 120 s of the processor"):
        converter.convert(page)
    converts_by(ANSWERS, monkeypatch)
    with pytest.raises(NotConverted, match="more than 120 s of the processor"):
        converter.convert(page)


@posix
def test_every_pass_of_one_command_takes_the_same_files_for_documents(page, tmp_path, monkeypatch):
    (tmp_path / "other.htm").write_text("other")
    (tmp_path / "plain.md").write_text("plain")
    converts_by("os.kill(os.getpid(), signal.SIGKILL)", monkeypatch)
    source = MarkdownSource(tmp_path, ())
    first = [document.id for _, document in source.documents(Findings())]
    converts_by(ANSWERS, monkeypatch)
    assert [document.id for _, document in source.documents(Findings())] == first == ["plain"]
    again = [document.id for _, document in MarkdownSource(tmp_path, ()).documents(Findings())]
    assert again == ["other.htm", "page.html", "plain"]


@needs
@pytest.mark.parametrize("wrapped", [False, True])
def test_too_little_memory_is_not_kept_as_the_document_s_fault(wrapped):
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

    assert "more than 4 GiB of memory" in converting._converted(Engine(), b"", ".html")["undone"]


@pytest.mark.skipif(sys.platform != "linux", reason="others take the limit and do not heed it")
@pytest.mark.parametrize(("limit", "then"), [(2 << 30, 2 << 30), (8 << 30, 4 << 30)])
def test_a_lower_limit_of_the_machine_stays(limit, then):
    code = (
        "import resource, sys; from harness.dataset import converting; "
        "resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY)); "
        "converting._limit_memory(); print(resource.getrlimit(resource.RLIMIT_AS)[0])"
    )
    asked = [sys.executable, "-c", code, str(limit)]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == str(then)


@pytest.mark.parametrize("kept", ["{}", "[]", "null", '{"title": 1, "text": "a"}', '{"failed": 5}', "[" * 100_000])
def test_what_no_conversion_gives_is_not_taken(kept, page, tmp_path, monkeypatch):
    converts_by(ANSWERS, monkeypatch)
    assert Converter().convert(page).text == "text"
    [path] = (tmp_path / "cache" / "documents").iterdir()
    path.write_text(kept)
    assert Converter().convert(page).text == "text"
    assert json.loads(path.read_text()) == {"title": "T", "text": "text"}


def test_a_document_is_converted_where_nothing_can_be_kept(page, tmp_path, monkeypatch):
    converts_by(ANSWERS, monkeypatch)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "documents").write_text("a file")
    assert Converter().convert(page).text == "text"


def test_the_process_is_given_no_keys(page, tmp_path, monkeypatch):
    told = "print(json.dumps({'title': '', 'text': json.dumps(dict(os.environ))}), flush=True)"
    converts_by(told, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    given = json.loads(Converter().convert(page).text)
    assert not [name for name in given if name not in (*converting.PASSED, "PYTHONPATH", "LC_CTYPE")]


@needs
def test_with_few_variables_it_finds_the_same_packages():
    assert Converter().convert_bytes(b"<p>text", ".html")["text"] == "text"
