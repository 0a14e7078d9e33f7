"""BM25 stems words where the documents share a language that Snowball has, says so, and leaves all others alone."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import records
from harness.cli import app
from harness.dataset import load, reference_of
from harness.pipeline import run
from harness.reproduce import reproduce
from harness.running.check import check
from harness.running.dataset_summary import dataset_summary
from harness.running.options import Options
from retrievers.bm25 import BM25
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.types import Document, Query
from tests.support import layouts, small

ENGLISH = [f"The {thing} of this house is not for sale before May." for thing in small.TEXTS]
GERMAN = [f"Der {thing} in diesem Haus ist vor Mai nicht zu verkaufen." for thing in small.TEXTS]
JAPANESE = ["一年に二十五日の有給休暇があります。", "休暇は前もって申し込みます。"]
UKRAINIAN = ["Договір не дійсний, і термін в один місяць вже минув.", "Що це для нас, і як його змінити?"]


def indexed(texts: Sequence[str], **options) -> BM25:
    retriever = BM25(**options)
    retriever.index([Document(str(number), "", text) for number, text in enumerate(texts)], Meter())
    return retriever


def hits(retriever: BM25, text: str) -> tuple[str, ...]:
    return retriever.search([Query("q", text)], 10, Meter())[0].doc_ids


@pytest.mark.parametrize(
    ("texts", "stemming", "words"),
    [
        (ENGLISH, "english", "stemmed as English"),
        (GERMAN, "german", "stemmed as German"),
        (ENGLISH * 9 + GERMAN, "english", "stemmed as English"),
        (ENGLISH * 8 + GERMAN * 2, "none", "not stemmed"),
        (ENGLISH + JAPANESE, "none", "not stemmed"),
        (JAPANESE, "none", "not stemmed"),
        (UKRAINIAN, "none", "not stemmed"),  # a language that Snowball has not
        (["vacation", "refund policy", "404"], "none", "not stemmed"),  # too short to tell
    ],
)
def test_left_out_it_follows_the_documents(texts: list[str], stemming: str, words: str) -> None:
    told = indexed(texts).provenance
    assert told["fingerprint"] == f"bm25 k1=0.9 b=0.4 words=uax29-3 stemming={stemming}"
    assert told["words"] == words


def test_stems_meet_and_words_as_they_stand_do_not() -> None:
    texts = ["Nobody may smoke in these houses.", "The train leaves at noon from the main station."]
    assert hits(indexed(texts), "smoking house") == ("0",)
    assert hits(indexed(texts, stemming="english"), "smoking house") == ("0",)
    assert hits(indexed(texts, stemming=""), "smoking house") == ()
    assert hits(indexed(texts, chunk={"size": 20}), "smoking house") == ("0",)


def test_the_order_of_the_documents_decides_nothing() -> None:
    """Of 2,200 documents 200 are looked at; those of one language stand together."""
    texts = [f"{number} {text}" for number, text in enumerate(ENGLISH * 200 + GERMAN * 20)]
    documents = [Document(str(number), "", text) for number, text in enumerate(texts)]
    there, back = BM25(), BM25()
    there.index(documents, Meter())
    back.index(documents[::-1], Meter())
    assert there.fingerprint == back.fingerprint
    assert there.provenance["words"] == "stemmed as English"


def test_a_language_that_is_given_asks_nobody() -> None:
    """The model of languages takes half a second and 60 MB."""
    code = (
        "import sys; from retrievers.bm25 import BM25; from retrievers.meter import Meter;"
        "from retrievers.types import Document; retriever = BM25(stemming='english');"
        "retriever.index([Document('a', '', 'The train leaves at noon.')], Meter()); print('py3langid' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_terminal_page_and_manifest_say_it(tmp_path: Path) -> None:
    path = small.experiment(tmp_path, report=True)
    told = CliRunner().invoke(app, ["run", str(path), "--results", str(tmp_path / "out"), "--explain"])
    assert "bm25: words stemmed as English" in told.stdout
    folder = tmp_path / "out" / "small"
    facts = records.read_manifest(folder).retrievers["bm25"].provenance
    assert facts["words"] == "stemmed as English"
    assert facts["fingerprint"].endswith("stemming=english")
    assert "<small>words</small> <bdi>stemmed as English</bdi>" in (folder / "report.html").read_text(encoding="utf-8")


def as_before(folder: Path) -> Path:
    """A folder of a run with stemming = "", as versions wrote it for which that was the default."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for table in manifest["experiment"]["retrievers"]:
        table.pop("stemming", None)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def test_results_of_before_keep_their_meaning_and_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    words = small.RETRIEVERS.replace('"bm25"\n\n', '"bm25"\nstemming = ""\n\n', 1)
    folder = as_before(run(small.experiment(tmp_path, retrievers=words), Options(tmp_path / "out")).folder)
    assert records.read_manifest(folder).experiment["retrievers"][0]["stemming"] == ""
    assert "the same to the byte" in reproduce(folder).sentence()
    stems = small.experiment(tmp_path)
    with pytest.raises(InputError, match="holds no results of this experiment"):
        run(stems, Options(tmp_path / "out", only=("hashing",)))
    run(stems, Options(tmp_path / "out"))
    assert (tmp_path / "out" / "small.1" / "manifest.json").is_file()
    assert records.read_manifest(folder).retrievers["bm25"].provenance["words"] == "stemmed as English"
    run(stems, Options(tmp_path / "out", only=("hashing",)))  # and new ones are


def test_a_language_is_named_only_where_it_is_sure(tmp_path: Path) -> None:
    """Function words alone made Czech of English: "do", "to", "a" and "o" are words of both."""
    texts = ["To do: a letter to A. Smith", "What to do about a broken line?", *ENGLISH]
    layouts.jsonl(tmp_path / "corpus.jsonl", [{"_id": str(i), "text": text} for i, text in enumerate(texts)])
    layouts.jsonl(tmp_path / "queries.jsonl", [{"_id": "q", "text": "What is for sale?"}])
    layouts.table(tmp_path / "qrels" / "test.tsv", [{"query-id": "q", "corpus-id": "2", "score": 1}], delimiter="\t")
    found = dataset_summary(load(reference_of(tmp_path)))
    assert dict(found.languages) == {"english": len(texts) - 1, "latin script": 1}
    assert "languages: english 88 %, latin script 12 %" in "\n".join(check(tmp_path).lines())
