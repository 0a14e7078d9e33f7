"""Reference answers and claims: in data sets, measured, and in the files of judges."""

from __future__ import annotations

import json
import math

import pytest

from harness import records
from harness.answers.judge import Inquiry
from harness.answers.local_judges import LexicalJudge
from harness.dataset import DatasetReference, load_dataset
from harness.measures import QueryClaims, measure_rankings, measure_run, parse_measure
from harness.records import judge_files
from harness.records.judge_readings import ClaimPassage, JudgeIdentity, JudgeReadings
from harness.records.labels_file import labelled_query_from_json
from retrievers.errors import InputError
from retrievers.types import Claim, Reference
from tests.support import layouts
from tests.support.small import refusal

FEE = QueryClaims(
    ("monthly", "in advance", "half for students"),
    {
        "a": (True, False, False),
        "b": (False, False, False),
        "c": (True, True, False),
        "d": (False, None, False),
    },
)


@pytest.mark.parametrize(
    ("name", "ranking", "value"),
    [
        ("ClaimRecall@1", "bac", 0),
        ("ClaimRecall@2", "bac", 1 / 3),
        ("ClaimRecall@3", "bac", 2 / 3),
        ("ClaimRecall", "bac", 2 / 3),
        ("ClaimRecall@3", "", 0),
        ("ClaimPrecision@3", "bac", 2 / 3),
        ("ClaimPrecision@3", "", math.nan),
        ("ContextPrecision(by='claims')@3", "bac", (1 / 2 + 2 / 3) / 2),
        ("ContextPrecision(by='claims')@1", "b", 0),
        # A missing verdict is not a no: of d, "in advance" has none, and x was never
        # judged.
        ("ClaimRecall@1", "d", math.nan),
        ("ClaimRecall@2", "dc", 2 / 3),
        ("ClaimRecall@2", "ax", math.nan),
        ("ClaimPrecision@1", "d", math.nan),
        ("ContextPrecision(by='claims')@2", "da", math.nan),
        ("ContextPrecision(by='claims')@2", "ad", 1),  # either verdict makes it 1
    ],
)
def test_measures_by_claims(name: str, ranking: str, value: float) -> None:
    score = measure_rankings(
        [parse_measure(name)], {"q": {}}, {"q": [*ranking]}, claims={"q": FEE}
    ).values[0, 0]
    assert score == pytest.approx(value, abs=1e-15, nan_ok=True)


def test_measures_by_claims_need_claims() -> None:
    measure = parse_measure("ClaimRecall@5")
    error = refusal(measure_rankings, [measure], {"q": {"a": 1}}, {"q": ["a"]})
    assert "claims of reference" in str(error)
    measure = parse_measure("ContextPrecision(by='claims')@5")
    error = refusal(measure_run, [measure], {"q": {"a": 1}}, {"q": {"a": 1.0}})
    assert "claims of reference" in str(error)


def test_context_precision_by_claims_has_no_other_parameter() -> None:
    error = refusal(parse_measure, "ContextPrecision(by='claims', rel=2)@5")
    assert "no other parameter" in str(error)


def test_context_precision_is_by_ids_by_default() -> None:
    assert str(parse_measure("ContextPrecision(by='ids')@5")) == "ContextPrecision@5"


PASSAGE = "Guests rate the cleanliness of the room, the breakfast and the staff."


@pytest.mark.parametrize(
    ("claim", "passage", "word"),
    [
        pytest.param(
            "guests rate the pool and the room", PASSAGE, "entailed", id="5 of 6"
        ),
        pytest.param(
            "guests rate the lobby and the pool", PASSAGE, "neutral", id="4 of 6"
        ),
        pytest.param("…", PASSAGE, None, id="no token"),
        pytest.param(
            "宿泊客が部屋の清潔さを評価する",
            "部屋の清潔さを宿泊客が評価する。",
            "entailed",
            id="Japanese",
        ),
    ],
)
def test_the_lexical_judge_counts_distinct_tokens(claim, passage, word) -> None:
    verdicts = LexicalJudge().verdicts([ClaimPassage(claim, passage)])
    assert dict(verdicts) == {0: word}


def test_a_lower_threshold_entails_more() -> None:
    pair = ClaimPassage("guests rate the lobby and the pool", PASSAGE)
    assert dict(LexicalJudge(threshold=0.6).verdicts([pair])) == {0: "entailed"}


def test_the_lexical_judge_finds_helpful_sentences() -> None:
    inquiries = [
        Inquiry("rate the staff", PASSAGE),
        Inquiry("price of parking", PASSAGE),
    ]
    assert dict(LexicalJudge().helps(inquiries)) == {0: True, 1: False}


def test_the_lexical_judge_gives_no_ratings_and_no_questions() -> None:
    judge = LexicalJudge()
    assert list(judge.relevance([])) == []
    assert list(judge.questions([])) == []


def test_a_threshold_of_0_is_refused() -> None:
    assert "threshold" in str(refusal(LexicalJudge, threshold=0))


LEXICAL = JudgeIdentity("lexical 0.8")
NLI = JudgeIdentity("nli x", "abc")
ENTAILED = ClaimPassage("a claim", "a passage\u2028with a separator")
UNREADABLE = ClaimPassage("未読", "文")


@pytest.fixture
def stored(tmp_path):
    """A folder with the replies of two judges."""
    verdicts = {ENTAILED: "entailed", UNREADABLE: None}
    claims = {"A text.": ["one", "two"], "unreadable": None}
    judge_files.append_verdicts(tmp_path, LEXICAL, verdicts)
    judge_files.append_verdicts(tmp_path, NLI, {ENTAILED: "contradicted"})
    judge_files.append_claims(tmp_path, LEXICAL, claims)
    judge_files.append_opinions(tmp_path, LEXICAL, "helps", {("c", "t"): True})
    return tmp_path


def test_replies_are_read_by_judge(stored) -> None:
    readings = judge_files.read_readings(stored, LEXICAL)
    assert readings.verdict_word(*ENTAILED) == "entailed"
    assert readings.is_entailed(*ENTAILED) is True
    assert readings.verdict_word(*UNREADABLE) is None
    assert readings.claims == {"A text.": ("one", "two"), "unreadable": None}
    assert readings.opinion("helps", "c", "t") is True
    assert readings.opinion("helps", "t", "c") is None
    of_nli = judge_files.read_readings(stored, NLI)
    assert of_nli.verdict_word(*ENTAILED) == "contradicted"


def test_a_missing_folder_has_no_replies(tmp_path) -> None:
    readings = judge_files.read_readings(tmp_path / "absent", LEXICAL)
    assert readings == JudgeReadings()


def test_a_half_written_line_is_removed_before_the_next_one(stored) -> None:
    file = stored / judge_files.VERDICTS_FILE
    with file.open("a", encoding="utf-8") as verdicts:
        verdicts.write('{"claim": "half a li')
    new_pair = ClaimPassage("d", "t")
    judge_files.append_verdicts(stored, LEXICAL, {new_pair: "entailed"})
    assert len(file.read_text(encoding="utf-8").split("\n")) == 5
    readings = judge_files.read_readings(stored, LEXICAL)
    assert readings.verdict_word("d", "t") == "entailed"


BY = {"judge": "j", "prompt": ""}
ROW = {**BY, "claim": "c", "passage": "p", "verdict": None}
FAULTS = [
    *(
        (judge_files.VERDICTS_FILE, line, "verdicts.jsonl:2: is")
        for line in (
            b"nonsense",
            b"[]",
            b"\xff{}",
            b"[" * 100_000,
            b"9" * 5_000,
            b'{"claim": 1e999}',
        )
    ),
    (
        judge_files.VERDICTS_FILE,
        json.dumps({**ROW, "verdict": "maybe"}).encode(),
        "verdicts.jsonl:2: ",
    ),
    # A text in the place of claims would be read as its letters, a claim each.
    *(
        (
            judge_files.CLAIMS_FILE,
            json.dumps({**BY, "text": "t", "claims": claims}).encode(),
            "not a list of texts",
        )
        for claims in ("One claim.", [1], {"a": 1}, ["one", None])
    ),
]


GOOD_ROWS = {
    judge_files.VERDICTS_FILE: ROW,
    judge_files.CLAIMS_FILE: {**BY, "text": "a", "claims": ["a"]},
}


@pytest.mark.parametrize(("file", "line", "message"), FAULTS)
def test_a_wrong_line_is_refused_with_its_number(tmp_path, file, line, message) -> None:
    good_line = json.dumps(GOOD_ROWS[file]).encode()
    bad_line = line.replace(b'{"round', good_line[:-1] + b', "round')
    (tmp_path / file).write_bytes(b"%s\n%s\n" % (good_line, bad_line))
    error = refusal(judge_files.read_readings, tmp_path, JudgeIdentity("j", ""))
    assert message in str(error)
    assert f"{file}:2: " in str(error)


WHOLE = {
    "reference": "A monthly fee, paid in advance.",
    "claims": ["monthly", {"text": "in advance", "vital": False}],
}
READ = Reference(
    (WHOLE["reference"],), (Claim("monthly"), Claim("in advance", vital=False))
)


def load_rows(folder, *rows):
    """A data set of some queries, of which the first has labels."""
    (folder / "d1.md").write_text("# Fees\nThe fee is monthly.", encoding="utf-8")
    full_rows = []
    for index, row in enumerate(rows):
        query = {"id": f"q{index}", "query": f"fee {index}"}
        if index == 0:
            query = {"id": "q", "query": "fees", "relevant_documents": ["d1"]}
        full_rows.append({**query, **row})
    (folder / "queries.json").write_text(json.dumps(full_rows), encoding="utf-8")
    return load_dataset(DatasetReference(folder))


def test_a_query_may_have_several_reference_answers(tmp_path) -> None:
    dataset = load_rows(tmp_path, {"reference": ["one", "two"]})
    assert dataset.queries[0].reference.answers == ("one", "two")


def test_references_and_claims_are_part_of_the_digest(tmp_path) -> None:
    bare = load_rows(tmp_path, {})
    dataset = load_rows(tmp_path, WHOLE)
    assert bare.queries[0].reference == Reference()
    assert bare.digest != dataset.digest


def test_references_and_claims_are_stored_in_labels_jsonl(tmp_path) -> None:
    dataset = load_rows(tmp_path, WHOLE)
    records.write_labels_and_documents(tmp_path, dataset, [])
    text = (tmp_path / "labels.jsonl").read_text(encoding="utf-8")
    (line,) = text.splitlines()
    assert dataset.queries[0].reference == READ
    assert labelled_query_from_json(line).query.reference == READ


@pytest.mark.parametrize(
    "answer",
    [{"reference": WHOLE["reference"]}, {"claims": ["monthly"]}, WHOLE],
    ids=["a reference", "claims", "both"],
)
def test_a_query_with_a_reference_or_claims_needs_no_labels(tmp_path, answer) -> None:
    dataset = load_rows(tmp_path, {}, answer, {})
    assert [query.id for query in dataset.queries] == ["q", "q1"]
    assert set(dataset.labels) == {"q"}
    assert dataset.data_quality["unjudged-query"] == ("q2",)


@pytest.mark.parametrize(
    "row",
    [
        {"reference": 7},
        {"reference": ["", "x"]},
        {"claims": {"a": 1}},
        {"claims": ["x", 3]},
        {"claims": '{"text": "x"'},
        {"claims": [{"text": "x", "vital": "yes"}]},
        {"claims": [{"text": "x", "important": True}]},
    ],
)
def test_an_invalid_reference_is_refused_with_its_query(tmp_path, row) -> None:
    (key,) = row
    with pytest.raises(InputError, match=rf"queries.json\[0\].*{key}"):
        load_rows(tmp_path, row)


def test_rows_of_beir_have_references_and_claims(tmp_path) -> None:
    folder = layouts.beir(tmp_path / "beir")
    rows = [{**row, **WHOLE} for row in layouts.queries()]
    layouts.jsonl(folder / "queries.jsonl", rows)
    query = load_dataset(DatasetReference(folder)).queries[0]
    assert query.reference == READ
    assert "reference" not in query.fields


def test_rows_of_tables_have_references_and_claims(tmp_path) -> None:
    documents = [{"id": "d1", "text": "The fee is monthly."}]
    rows = [
        {
            "query_id": "q",
            "query": "fees",
            "relevant_documents": "d1",
            "reference": "A fee.",
            "claims": "a\nb",
        },
        {
            "query_id": "r",
            "query": "more",
            "relevant_documents": "d1",
            "reference": "",
            "claims": json.dumps(["monthly"]),
        },
    ]
    layouts.table(tmp_path / "documents.csv", documents)
    layouts.table(tmp_path / "queries.csv", rows)
    first, second = load_dataset(DatasetReference(tmp_path)).queries
    assert first.reference == Reference(("A fee.",), (Claim("a"), Claim("b")))
    assert second.reference == Reference((), (Claim("monthly"),))
