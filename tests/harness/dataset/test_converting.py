"""Documents as companies have them, converted by markitdown.

They are converted once, failures are listed, and a conversion runs in its own process.
"""

import json
import os
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.console.check_text import check_lines
from harness.dataset import conversion_process, convert, load_dataset, parse_reference
from harness.dataset.conversion_process import CONVERSIONS
from harness.dataset.readers import text_documents
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.report.sections.decision import first_screen
from harness.report.view import build_view
from harness.running.options import RunOptions
from harness.wording.reading import reading_line
from retrievers.errors import InputError
from tests.support import small

needs = pytest.mark.skipif(
    find_spec("markitdown") is None, reason="needs the extra `documents`"
)
pytestmark = pytest.mark.usefixtures("own_cache")


HTML = (
    "<html><head><title>Leave</title></head>"
    "<body><h1>Days</h1><p>25 days a year</p></body></html>"
)


def pdf(text: str) -> bytes:
    """Return a PDF of one page (PDF 32000-1:2008, 7.5) without its table of offsets.

    Readers rebuild that table.
    """
    stream = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    objects = "".join(
        f"{number} 0 obj\n{part}\nendobj\n" for number, part in enumerate(parts, 1)
    )
    return f"%PDF-1.4\n{objects}trailer\n<< /Size 6 /Root 1 0 R >>\n%%EOF".encode()


def docx(path: Path, text: str) -> None:
    """The smallest Word file: ECMA-376, part 1, 11.3.10."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    kind = (
        "application/vnd.openxmlformats-officedocument"
        ".wordprocessingml.document.main+xml"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}" Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{word}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r>'
            f"</w:p></w:body></w:document>",
        )


def folder(path: Path, relevant: str) -> Path:
    path.mkdir()
    texts = {
        "plain.md": "# Plain\n\ntext",
        "guide.rst": "Guide\n=====\n\nhow to",
        "leave.html": HTML,
        "logo.png": "",
        "broken.docx": "PK\3\4 cut",
    }
    for name, text in texts.items():
        (path / name).write_text(text)
    (path / "price.pdf").write_bytes(pdf("twelve euros"))
    docx(path / "terms.docx", "thirty days")
    (path / "queries.json").write_text(
        json.dumps([{"query": "how much?", "relevant_documents": [relevant]}])
    )
    return path


@needs
@pytest.mark.usefixtures("kept_converter")
def test_what_companies_have_becomes_documents_and_is_converted_once(
    tmp_path, monkeypatch
):
    folder_path = folder(tmp_path / "d", "price.pdf")
    dataset = load_dataset(parse_reference(folder_path))
    documents = {document.id: document for document in dataset.documents()}
    assert list(documents) == [
        "guide",
        "leave.html",
        "plain",
        "price.pdf",
        "terms.docx",
    ]
    assert (documents["leave.html"].title, documents["leave.html"].text) == (
        "Leave",
        "# Days\n\n25 days a year",
    )
    assert (
        "twelve euros" in documents["price.pdf"].text
        and "thirty days" in documents["terms.docx"].text
    )
    assert [
        failed.partition(":")[0] for failed in dataset.data_quality["unconverted-file"]
    ] == ["broken.docx"]
    assert dataset.data_quality["unread-file"] == ("logo.png",)
    assert (
        reading_line(dataset)
        == "5 of 7 files are read; 1 is not (.png 1); 1 could not be converted"
    )
    with monkeypatch.context() as patch:
        patch.setattr(CONVERSIONS, "convert", lambda *_: pytest.fail("it was kept"))
        assert load_dataset(parse_reference(folder_path)).digest == dataset.digest
    (folder_path / "leave.html").write_text(HTML.replace("25", "30"))
    assert load_dataset(parse_reference(folder_path)).digest != dataset.digest
    with pytest.raises(
        InputError,
        match=r"'broken.docx', which could not be converted: .*write the file again",
    ):
        load_dataset(parse_reference(folder(tmp_path / "e", "broken.docx")))


@needs
def test_files_in_an_archive_are_converted(tmp_path):
    folder_path = folder(tmp_path / "d", "price.pdf")
    archive = tmp_path / "d.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder_path.iterdir():
            file.write(path, path.name)
    in_archive = load_dataset(parse_reference(archive))
    assert in_archive.digest == load_dataset(parse_reference(folder_path)).digest


@needs
def test_files_that_cannot_be_converted_are_a_warning_of_check_and_verdict(tmp_path):
    # given a folder with a broken file, and the lock of one that is open in Office
    path = folder(tmp_path / "data", "price.pdf")
    (path / "~$terms.docx").write_bytes(b"lock")
    # when
    lines = check_lines(check_target(path))
    experiment = small.experiment(tmp_path, retrievers=small.BM25)
    view = build_view(run(experiment, RunOptions(tmp_path / "out")))
    # then the broken file is a warning of both
    sentence = "1 file could not be converted and is no document: broken.docx"
    assert f"warning: {sentence}" in lines
    assert lines[-1] == "no error; 1 warning"
    assert f"{sentence}." in first_screen(view).warnings


@needs
@pytest.mark.usefixtures("kept_converter")
def test_a_label_without_suffix_is_told_that_its_file_could_not_be_converted(tmp_path):
    path = folder(tmp_path / "d", "broken")
    with pytest.raises(
        InputError, match=r"'broken', but broken.docx could not be converted: "
    ):
        load_dataset(parse_reference(path))


@needs
@pytest.mark.usefixtures("kept_converter")
def test_labels_that_name_only_files_that_could_not_be_converted_say_so(tmp_path):
    for name in ("a.docx", "b.docx"):
        (tmp_path / name).write_bytes(b"broken")
    (tmp_path / "x.md").write_text("# A page")
    (tmp_path / "queries.csv").write_text("query,relevant\none,a.docx\ntwo,b.docx\n")
    with pytest.raises(InputError) as refused:
        load_dataset(parse_reference(tmp_path))
    assert str(refused.value).count("which could not be converted: ") == 2


def test_without_markitdown_the_files_that_are_not_read_are_told_first(
    tmp_path, monkeypatch, in_tmp, call
):
    for room in (
        convert,
        text_documents,
        import_module("harness.wording.reading"),
    ):
        monkeypatch.setattr(room, "can_convert", lambda: False)
    dataset = load_dataset(parse_reference(folder(tmp_path / "data", "plain")))
    assert [document.id for document in dataset.documents()] == ["guide", "plain"]
    line = (
        "2 of 7 files are read; 5 are not (.docx 2, .html 1, .pdf 1, .png 1); "
        "pip install 'retriever-harness[documents]'"
    )
    assert line in call("init", "data", code=0).out
    path = small.experiment(tmp_path, retrievers=small.BM25)
    assert call("run", path).err.startswith(line)
    assert line in call("check", path).out.split("\n")[1]


CHILD_IN_MARKITDOWN = '''
"""A converter that does to its process what a hostile file would."""

import os
import time


class StreamInfo:
    def __init__(self, extension):
        self.extension = extension


class MarkItDown:
    def __init__(self, **options):
        self.options = options

    def register_converter(self, converter):
        pass

    def convert_stream(self, stream, stream_info):
        content = stream.read().decode()
        if content == "crash":
            os.abort()
        if content == "hang":
            time.sleep(600)
        if content == "memory":
            bytearray(1 << 40)
        if content == "keys":
            return Converted(repr(dict(os.environ)))
        return Converted(content)


class Converted:
    title = ""

    def __init__(self, markdown):
        self.markdown = markdown
'''


@pytest.fixture
def hostile_converter(tmp_path, monkeypatch):
    """A package `markitdown` that is found before the real one in the child process."""
    package = tmp_path / "packages" / "markitdown"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(CHILD_IN_MARKITDOWN)
    (package / "converters.py").write_text(
        "def __getattr__(name):\n    return object\n"
    )
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr(convert, "version", lambda _: "of a test")
    monkeypatch.setattr(text_documents, "can_convert", lambda: True)
    monkeypatch.setattr(convert, "_reason_by_digest", {})
    CONVERSIONS.stop()
    yield
    CONVERSIONS.stop()


def converted_folder(path: Path, content: str):
    """Return the data set of a folder with one such file and an ordinary one."""
    path.mkdir()
    (path / "a.html").write_text(content)
    (path / "b.html").write_text("an ordinary text")
    (path / "queries.json").write_text(
        json.dumps([{"query": "what?", "relevant_documents": ["b.html"]}])
    )
    return load_dataset(parse_reference(path))


@pytest.mark.usefixtures("hostile_converter")
@pytest.mark.parametrize(
    ("content", "seconds", "reason"),
    [
        ("crash", 120.0, "the converter crashed (exit status -6)"),
        # The ordinary file needs the start of a process within it, on a busy machine.
        ("hang", 8.0, "the conversion takes more than 8 s"),
        ("memory", 120.0, "it needs more than 4,096 MB of memory"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="signals and RLIMIT_AS are POSIX")
def test_a_file_that_harms_its_converter_is_named_and_the_others_are_read(
    tmp_path, monkeypatch, content, seconds, reason
):
    monkeypatch.setattr(conversion_process, "MAX_SECONDS", seconds)
    dataset = converted_folder(tmp_path / "d", content)
    assert dataset.data_quality["unconverted-file"] == (f"a.html: {reason}",)
    monkeypatch.setattr(CONVERSIONS, "convert", lambda *_: pytest.fail("tried again"))
    assert [document.text for document in dataset.documents()] == ["an ordinary text"]


@pytest.mark.usefixtures("hostile_converter")
def test_the_converter_has_no_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-this-test")
    dataset = converted_folder(tmp_path / "d", "keys")
    environment = next(iter(dataset.documents())).text
    assert "PYTHONPATH" in environment
    assert "a-key-of-this-test" not in environment
