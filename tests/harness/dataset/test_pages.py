"""Pages of PDF as documents, and titles of what other programs wrote."""

import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness import RunOptions, run
from harness.dataset import DatasetReference, load_dataset
from harness.dataset.reference import declared_columns
from harness.wording.reading import reading_line
from tests.support.pdf_files import pdf
from tests.support.small import BM25, refusal, told

pytestmark = [
    pytest.mark.skipif(
        find_spec("markitdown") is None, reason="needs the extra `documents`"
    ),
    pytest.mark.usefixtures("one_cache", "kept_converter"),
]
PAGES = ("heat pump", "roof tiles", "garden fence")
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@pytest.fixture(scope="module")
def cache_of_this_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def one_cache(cache_of_this_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is converted once for all tests: a converter takes a second."""
    monkeypatch.setenv("HARNESS_CACHE", str(cache_of_this_file))


def houses(folder: Path, table: str) -> Path:
    folder.mkdir()
    (folder / "house.pdf").write_bytes(pdf(PAGES, "The house"))
    (folder / "barn.pdf").write_bytes(pdf(("straw", "cows")))
    (folder / "notes.md").write_text("# Notes\n\nmisc")
    (folder / "questions.csv").write_text(table)
    return folder


def relevant_in(folder: Path, **more) -> list[list[str]]:
    dataset = load_dataset(DatasetReference(folder, **more))
    return [sorted(labels.relevant) for labels in dataset.labels.values()]


def test_each_page_of_a_pdf_is_a_document(tmp_path):
    folder = houses(tmp_path / "d", "query,gold_id\nhow warm,house.pdf#1\n")
    documents = {
        document.id: document
        for document in load_dataset(DatasetReference(folder, pages=True)).documents()
    }
    pages = [f"house.pdf#{number}" for number in (1, 2, 3)]
    assert list(documents) == ["barn.pdf#1", "barn.pdf#2", *pages, "notes"]
    assert [documents[page].text for page in pages] == list(PAGES)
    assert documents["house.pdf#3"].title == "The house"
    assert documents["house.pdf#3"].fields == {"file": "house.pdf", "page": "3"}


@pytest.mark.parametrize(
    ("pages", "right"),
    [
        ("3", ["house.pdf#3"]),
        ('"[1, 3]"', ["house.pdf#1", "house.pdf#3"]),
        ('"1, 3"', ["house.pdf#1", "house.pdf#3"]),
    ],
)
def test_labels_name_pages_by_file_and_page(pages, right, tmp_path):
    folder = houses(tmp_path / "d", f"query,file,page\nhow,house.pdf,{pages}\n")
    columns = {"label_document": "file,page"}
    assert relevant_in(folder, pages=True, columns=declared_columns(columns)) == [right]
    match = ("file", "page")
    assert len(
        relevant_in(folder, pages=True, columns=declared_columns(columns), match=match)[
            0
        ]
    ) == len(right)


def test_a_page_that_is_not_there_is_named(tmp_path):
    folder = houses(tmp_path / "d", "query,file,page\nhow,barn.pdf,3\n")
    columns = {"label_document": "file,page"}
    reference = DatasetReference(folder, pages=True, columns=declared_columns(columns))
    assert "'barn.pdf#3', which does not exist" in str(refusal(load_dataset, reference))


@pytest.mark.parametrize("page", ["page", "pages", "evidence_pages", "page_no"])
def test_pages_beside_files_are_asked_about_with_what_to_type(page, tmp_path, capsys):
    folder = houses(tmp_path / "d", f"query,gold_file,{page}\nhow,house.pdf,3\n")
    option = f"--pages --columns label_document=gold_file,{page}"
    for command in (["init", folder], ["check", folder]):
        assert option in told(capsys, *command, code=2)
    path = tmp_path / "e.toml"
    words = ["init", folder, "--output", path, *option.split()]
    assert "6 documents, 1 labelled query" in told(capsys, *words)
    assert "pages = true" in path.read_text()
    told(capsys, "check", path)
    head, _, _ = path.read_text().partition("[[retrievers]]")
    path.write_text(head + BM25)
    results = run(path, RunOptions(tmp_path / "out"))
    assert results.queries["q0"].labels.relevant == ("house.pdf#3",)


def test_the_pages_of_a_file_count_as_one_file_that_is_read(tmp_path):
    folder = houses(tmp_path / "d", "query,gold_id\nhow warm,house.pdf#1\n")
    (folder / "plan.xyz").write_text("a plan")
    dataset = load_dataset(DatasetReference(folder, pages=True))
    assert reading_line(dataset) == "3 of 4 files are read; 1 is not (.xyz 1)"


def test_pages_without_a_pdf_are_refused(tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\nmisc")
    (tmp_path / "questions.csv").write_text("query,gold_id\nwhat,notes\n")
    reference = DatasetReference(tmp_path, pages=True)
    assert "there is no PDF" in str(refusal(load_dataset, reference))


def docx(path: Path, *, heading: str, title: str = "", prop: str = "") -> None:
    """A Word file (ECMA-376, part 1, 11.3) with a German style Title."""
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    kinds = "application/vnd.openxmlformats-officedocument.wordprocessingml"

    def paragraph(style: str, text: str) -> str:
        return (
            f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
            f"<w:r><w:t>{text}</w:t></w:r></w:p>"
        )

    body = paragraph("Titel", title) if title else ""
    body += paragraph("berschrift1", heading) + paragraph("Standard", "thirty days")
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kinds}.document.main'
        f'+xml"/><Override PartName="/word/styles.xml" ContentType="{kinds}.styles+xml"'
        "/></Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship '
        f'Id="r1" Type="{office}/officeDocument" Target="word/document.xml"/>'
        "</Relationships>",
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}/relationships'
        f'"><Relationship Id="r1" Type="{office}/styles" Target="styles.xml"/>'
        "</Relationships>",
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}"><w:style w:type="paragraph" '
        'w:styleId="Titel"><w:name w:val="Title"/></w:style><w:style '
        'w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/>'
        "</w:style></w:styles>",
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body>'
        "</w:document>",
    }
    if prop:
        files["docProps/core.xml"] = (
            f'<cp:coreProperties xmlns:cp="{package}/metadata/core-properties" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{prop}</dc:title>'
            "</cp:coreProperties>"
        )
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def titles_in(folder: Path) -> list[str]:
    first = next(path.name for path in sorted(folder.iterdir()))
    (folder / "queries.csv").write_text(f"query,gold_id\nwhat,{first}\n")
    return [document.title for document in load_dataset(folder).documents()]


@pytest.mark.parametrize(
    ("pages", "titles"),
    [
        (
            [{"title": "Leave", "prop": "x"}, {"title": "Pay", "prop": "y"}],
            ["Leave", "Pay"],
        ),
        ([{"prop": "Leave"}, {"prop": "Pay"}], ["Leave", "Pay"]),
        ([{}, {}], ["page 0", "page 1"]),
        ([{"prop": "ACME"}, {"prop": "ACME"}], ["page 0", "page 1"]),
        ([{"heading": "Leave"}, {"heading": "Pay"}], ["Leave", "Pay"]),
    ],
)
def test_a_page_of_word_has_the_title_that_tells_it_apart(pages, titles, tmp_path):
    for number, page in enumerate(pages):
        docx(tmp_path / f"page {number}.docx", **{"heading": "Scope", **page})
    assert titles_in(tmp_path) == titles


def test_a_pdf_has_the_title_of_its_properties(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf(PAGES, "Microsoft Word - The house"))
    (tmp_path / "b.pdf").write_bytes(pdf(PAGES, "untitled"))
    assert titles_in(tmp_path) == ["The house", ""]


@pytest.mark.parametrize(
    ("head", "title"),
    [("<title>Leave</title>", "Leave"), ("", "Days off")],
)
def test_navigation_of_a_page_is_no_text(head, title, tmp_path):
    (tmp_path / "leave.html").write_text(
        f"<html><head>{head}</head><body><header><h1>Days off</h1></header>"
        "<nav><a href='/'>Home</a></nav><main><p>25 days</p></main>"
        "<footer>Imprint</footer></body></html>"
    )
    (tmp_path / "queries.csv").write_text("query,gold_id\nwhat,leave.html\n")
    (document,) = load_dataset(tmp_path).documents()
    assert (document.title, document.text) == (title, "25 days")
