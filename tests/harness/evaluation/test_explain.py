"""Why one retriever loses: properties of queries, slices, and the command."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness import records
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.explain import (
    Silence,
    describes_others,
    explain_results,
    explain_scores,
)
from harness.evaluation.property_slices import Condition, SliceName, property_slices
from harness.evaluation.query_properties import text_script
from harness.evaluation.shown_slices import split_in_halves
from harness.evaluation.suggestion import Suggestion, suggestion_for
from harness.records import QueryProperty, Results, RetrieverQuality
from harness.scoring.stored_scores import stored_scores
from harness.stats.settings import Settings
from harness.stats.units import cluster_units, single_units
from harness.wording.explanation import finding_sentence, slice_phrase
from retrievers.types import Query
from tests.support import small
from tests.support.planted import QUERIES, QUOTED, planted_results


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results with a slice on which `bad` loses."""
    return planted_results(tmp_path_factory.mktemp("planted"))


def values_of(results: Results, name: str) -> dict[str, object]:
    """Query -> the value of one property."""
    return {
        row.query_id: row.value for row in results.query_properties if row.name == name
    }


def test_queries_are_those_on_which_all_retrievers_are_compared(
    planted: Results,
) -> None:
    scores = stored_scores(planted)
    columns = scores.values[scores.primary]
    third = np.array([np.nan, *columns["bad"][1:]])
    values = {**scores.values, scores.primary: {**columns, "third": third}}
    settings = read_or_evaluate(planted).settings
    explanation = explain_scores(
        planted, replace(scores, values=values), settings, "bad", b="good"
    )
    assert explanation.n == QUERIES - 1


def test_a_run_writes_the_properties_of_every_query(finished: Results) -> None:
    lengths = values_of(finished, "query length")
    assert lengths == {id_: float(len(text)) for id_, text, _ in small.QUERIES}
    assert values_of(finished, "labels") == {
        id_: float(len(docs)) for id_, _, docs in small.QUERIES
    }
    # "rails" is a word of train alone; "grows" of no document.
    rarest = values_of(finished, "rarest word")
    assert (rarest["q-rails"], rarest["q-fruit"]) == (1.0, 0.0)
    # Of "green trees" both documents have both words; of "fruit that grows on trees"
    # apple and pear have two of five: "on" and "trees".
    shared = values_of(finished, "shared words")
    assert (shared["q-green"], shared["q-fruit"]) == (1.0, 0.4)


def test_the_length_of_a_document_is_the_mean_of_the_relevant_ones(
    finished: Results,
) -> None:
    documents = [finished.documents[name].content for name in ("pear", "apple")]
    expected = sum(map(len, documents)) / 2
    assert values_of(finished, "document length")["q-green"] == expected


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("antenna 2.4 GHz", "Latin"),
        ("顧客の声", "Japanese"),
        ("顧客満足", "Han"),
        ("что это", "Cyrillic"),
        ("شكرا", "Arabic"),
        ("404 !", "none"),
        ("ｱﾝｹｰﾄ", "Japanese"),
    ],
)
def test_the_script_is_that_of_most_letters(text: str, script: str) -> None:
    assert text_script(text) == script


def test_properties_are_a_frame_of_query_property_and_value(finished: Results) -> None:
    frame = finished.properties
    assert list(frame.columns) == ["query", "property", "value"]
    rows = frame.set_index(["property", "query"])["value"]
    assert rows["digits", "q-rails"] is False
    assert rows["query length", "q-rails"] == 5.0


def test_the_planted_slice_is_the_strongest_sentence(
    planted: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = small.told(capsys, "explain", planted.folder, "bad", "good").splitlines()
    assert lines[0].startswith(
        f"bad loses to good where the query has quotation marks: {QUOTED} queries, "
    )
    assert lines[0].endswith("confirmed on the other half).")
    assert len(lines) <= 5


def test_the_json_has_what_the_sentences_say(
    planted: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    output = small.told(capsys, "explain", planted.folder, "good", "bad", "--json")
    explanation = json.loads(output)
    [first, *_] = explanation["slices"]
    assert (explanation["a"], explanation["n"]) == ("good", QUERIES)
    assert (first["loser"], first["property"], first["value"]) == (
        "bad",
        "quotation marks",
        True,
    )
    assert (first["queries"], first["other_queries"]) == (QUOTED, QUERIES - QUOTED)
    assert first["confirmed"] is True
    assert first["ci_low"] < first["gap"] < first["ci_high"] < 0
    assert first["gap"] == first["difference"] - first["other_difference"]
    assert len(explanation["sentences"]) == len(explanation["slices"])


def test_a_difference_is_that_of_the_scores_of_the_slice(planted: Results) -> None:
    finding = explain_results(planted, "bad", "good").findings[0]
    scores = planted.scores
    scores = scores[scores["measure"] == "nDCG@3"]
    table = scores.pivot(index="query_id", columns="retriever", values="value")
    is_quoted = [planted.queries[q].query.text.startswith('"') for q in table.index]
    differences = table["bad"] - table["good"]
    inside = differences[is_quoted].mean()
    outside = differences[[not quoted for quoted in is_quoted]].mean()
    assert finding.difference == pytest.approx(inside, abs=1e-12)
    assert finding.other_difference == pytest.approx(outside, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "inside", "outside", "expected"),
    [
        (SliceName("digits", Condition.IS, True), -0.1, 0.2, False),
        (SliceName("digits", Condition.IS, True), 0.1, 0.2, True),
        (SliceName("labels", Condition.AT_MOST, 1.0), -0.1, 0.2, True),
        (SliceName("labels", Condition.AT_MOST, 1.0), -0.2, 0.1, False),
    ],
    ids=["another wins", "the same wins", "a number", "more inside"],
)
def test_a_finding_is_about_the_side_that_says_more(
    name: SliceName, inside: float, outside: float, expected: bool
) -> None:
    assert describes_others(name, inside, outside) is expected


def test_tests_csv_has_the_slices_of_explain_with_their_p(planted: Results) -> None:
    explanation = explain_results(planted, "good", "bad")
    rows = planted.tests
    rows = rows[(rows["a"] == "good") & (rows["b"] == "bad")].set_index(
        ["family", "note"]
    )
    assert explanation.findings
    for finding in explanation.findings:
        row = rows.loc[finding.name.property_name, finding.name.label]
        assert row["p_adjusted"] == finding.p_adjusted
        assert row["n"] == finding.queries
        assert row["mean_difference"] == pytest.approx(-finding.difference)
        assert row["p_value"] <= row["p_adjusted"]


@pytest.mark.parametrize(
    ("texts", "sides"),
    [
        (["fact", "how"], [("fact", 10), ("how", 10)]),
        (["fact", "how", "why"], [("fact", 10), ("how", 10), ("why", 10)]),
        (["fact", ""], [("fact", 10)]),
    ],
)
def test_the_other_queries_are_a_slice_if_they_have_one_value(
    texts: Sequence[str], sides: Sequence[tuple[str, int]]
) -> None:
    queries = [
        Query(f"{text}{i}", "", {"type": text}) for text in texts for i in range(10)
    ]
    slices = property_slices(queries, [], ())
    labels = [
        (side.name.label, int(side.mask.sum()))
        for each in slices
        for side in each.sides
    ]
    assert labels == sides


def test_a_folder_evaluated_again_has_the_same_slices(
    planted: Results, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(planted.folder, copy)
    file = copy / "evaluation.json"
    file.write_text(file.read_text(encoding="utf-8") + " ", encoding="utf-8")
    again = read_or_evaluate(records.read_results(copy))
    assert again.recomputed
    assert again.tests == read_or_evaluate(planted).tests


def test_the_order_of_the_two_changes_nothing(planted: Results) -> None:
    one_way = explain_results(planted, "bad", "good")
    other_way = explain_results(planted, "good", "bad")
    assert [finding_sentence(f, one_way) for f in one_way.findings] == [
        finding_sentence(f, other_way) for f in other_way.findings
    ]


def test_without_a_slice_that_differs_no_property_explains_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = planted_results(tmp_path, loss=0)
    output = small.told(capsys, "explain", results.folder, "good", "bad")
    assert "no property explains the difference" in output


def test_below_120_queries_nothing_is_said_of_halves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = planted_results(tmp_path, queries=110)
    output = small.told(capsys, "explain", results.folder, "good", "bad")
    assert "where the query has quotation marks: 22 queries" in output
    assert "half" not in output


@pytest.mark.parametrize(
    ("settings", "silence"),
    [
        (Settings(judged_by_people=False), Silence.MODEL_ALONE),
        (Settings(alpha_spent=True), Silence.ALPHA_SPENT),
    ],
    ids=["a model's labels", "spent looks"],
)
def test_what_may_decide_nothing_explains_nothing(
    planted: Results, settings: Settings, silence: Silence
) -> None:
    scores = stored_scores(planted)
    explanation = explain_scores(planted, scores, settings, "bad", b="good")
    assert (explanation.silence, explanation.findings) == (silence, ())


def test_few_queries_make_no_slices(
    finished: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    output = small.told(capsys, "explain", finished.folder, "bm25", "hashing")
    assert "no property divides the queries into two parts of ten or more" in output


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("bm25", "bm26"), "no retriever is called 'bm26' (did you mean 'bm25'?)"),
        (("bm25", "bm25"), "A and B are the same retriever, 'bm25' (name two)"),
    ],
    ids=["unknown", "the same"],
)
def test_a_pair_that_is_none_is_refused(
    finished: Results,
    capsys: pytest.CaptureFixture[str],
    pair: Sequence[str],
    message: str,
) -> None:
    output = small.ends(capsys, 2, "explain", finished.folder, *pair)
    assert message in output.err


def test_without_labels_there_is_nothing_to_explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.dataset(tmp_path / "data", labelled=False)
    results = small.ran(tmp_path)
    output = small.ends(capsys, 2, "explain", results.folder, "bm25", "hashing")
    assert "holds no scores: no query has labels" in output.err


@pytest.fixture
def older(finished: Results, tmp_path: Path) -> Path:
    """A folder that an earlier version wrote."""
    folder = Path(shutil.copytree(finished.folder, tmp_path / "older"))
    (folder / "properties.csv").unlink()
    return small.signed_anew(folder)


def test_an_older_folder_opens_without_properties(older: Path) -> None:
    results = records.read_results(older)
    assert results.query_properties == ()
    assert results.properties.empty


def test_an_older_folder_is_reported_as_before(
    older: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.ends(capsys, 0, "report", older)
    page = (older / "report.html").read_text(encoding="utf-8")
    assert "Where it fails" in page


def test_an_older_folder_cannot_be_explained(
    older: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = small.ends(capsys, 2, "explain", older, "bm25", "hashing")
    assert f"{older}: has no properties.csv: an earlier version wrote it" in output.err


def numbered(values: Sequence[float | None]) -> list[QueryProperty]:
    """The property `labels` of queries q0, q1, …"""
    return [
        QueryProperty(f"q{i}", "labels", value)
        for i, value in enumerate(values)
        if value is not None
    ]


def slices_of(values: Sequence[float | None]) -> dict[SliceName, int]:
    """Slice -> its number of queries."""
    queries = [Query(f"q{i}", "x") for i in range(len(values))]
    slices = property_slices(queries, numbered(values), ())
    return {each.name: int(each.mask.sum()) for each in slices}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([float(i) for i in range(30)], {(Condition.AT_MOST, 14.0): 15}),
        ([0.5] * 12 + [1.0] * 18, {(Condition.AT_MOST, 0.5): 12}),
        ([1.0] * 18 + [2.0] * 12, {(Condition.AT_MOST, 1.0): 18}),
        ([1.0] * 21 + [2.0] * 9, {}),
        ([1.0] * 30, {}),
        (
            [1.0] * 11 + [2.0] * 10 + [None] * 5,
            {(Condition.AT_MOST, 1.0): 11, (Condition.ABOVE, 1.0): 10},
        ),
    ],
    ids=["the median", "below it", "ties", "nine", "equal", "some have none"],
)
def test_numbers_are_divided_at_the_median(
    values: Sequence[float | None], expected: dict[tuple[Condition, float], int]
) -> None:
    assert slices_of(values) == {
        SliceName("labels", condition, limit): count
        for (condition, limit), count in expected.items()
    }


def test_slices_that_divide_the_queries_alike_are_one() -> None:
    queries = [Query(f"q{i}", "x", {"kind": "a" if i < 12 else "b"}) for i in range(30)]
    flags = [QueryProperty(f"q{i}", "digits", i >= 12) for i in range(30)]
    slices = property_slices(queries, flags, ())
    name = SliceName("field kind", Condition.IS, "a")
    assert [each.name for each in slices] == [name]


def test_a_declared_field_of_numbers_is_divided_at_the_median() -> None:
    queries = [Query(f"q{i}", "x", {"year": str(1990 + i)}) for i in range(20)]
    [only] = property_slices(queries, [], ())
    assert only.name == SliceName("field year", Condition.AT_MOST, 1999.0)


def test_truncation_by_another_retriever_makes_no_slice() -> None:
    queries = [Query(f"q{i}", "x") for i in range(30)]
    rows = [QueryProperty(f"q{i}", "truncated by c", i < 15) for i in range(30)]
    assert property_slices(queries, rows, ("a", "b")) == []
    assert len(property_slices(queries, rows, ("a", "c"))) == 1


def test_the_halves_are_equal_and_keep_clusters_whole() -> None:
    ids = [f"q{i}" for i in range(120)]
    units = cluster_units([f"c{i // 3}" for i in range(120)])
    is_first = split_in_halves(ids, units, 0)
    assert is_first.sum() == 60
    assert {len(set(is_first[i : i + 3])) for i in range(0, 120, 3)} == {1}


def test_the_halves_do_not_depend_on_the_order_of_the_queries() -> None:
    ids = [f"q{i}" for i in range(20)]
    is_first = split_in_halves(ids, single_units(20), 0)
    assert (split_in_halves(ids[::-1], single_units(20), 0)[::-1] == is_first).all()


CHUNK = Suggestion.CHUNK
DENSE = Suggestion.DENSE
LEXICAL = Suggestion.LEXICAL
LONG_QUERIES = Suggestion.LONG_QUERIES
SUGGESTIONS = {
    "no shared word": (
        "shared words",
        Condition.AT_MOST,
        0.5,
        "bm25",
        DENSE,
    ),
    "many shared words": ("shared words", Condition.ABOVE, 0.5, "bm25", None),
    "vectors, few shared": ("shared words", Condition.AT_MOST, 0.5, "hashing", None),
    "rare words": (
        "rarest word",
        Condition.AT_MOST,
        3.0,
        "hashing",
        LEXICAL,
    ),
    "rare words, hybrid": ("rarest word", Condition.AT_MOST, 3.0, "hybrid", None),
    "digits": ("digits", Condition.IS, True, "hashing", LEXICAL),
    "truncated": (
        "truncated by hashing",
        Condition.IS,
        True,
        "hybrid",
        CHUNK,
    ),
    "the other's": ("truncated by hashing", Condition.IS, True, "bm25", None),
    "long documents": ("document length", Condition.ABOVE, 900.0, "hashing", None),
    "long": ("query length", Condition.ABOVE, 50.0, "bm25", LONG_QUERIES),
    "a field": ("field type", Condition.IS, "fact", "bm25", None),
}


@pytest.mark.parametrize(
    ("name", "condition", "value", "loser", "suggestion"),
    SUGGESTIONS.values(),
    ids=SUGGESTIONS,
)
def test_what_follows_depends_on_the_kind_of_the_loser(
    finished: Results,
    name: str,
    condition: Condition,
    value: float | bool | str,
    loser: str,
    suggestion: Suggestion | None,
) -> None:
    slice_name = SliceName(name, condition, value)
    assert suggestion_for(slice_name, loser, finished.manifest) is suggestion


def test_long_documents_are_cut_if_the_model_truncated_any(finished: Results) -> None:
    name = SliceName("document length", Condition.ABOVE, 900.0)
    quality = finished.manifest.ledger
    notes = RetrieverQuality(notes={"truncated": ("apple",)})
    manifest = replace(
        finished.manifest,
        ledger=replace(quality, retrievers={**quality.retrievers, "hashing": notes}),
    )
    assert suggestion_for(name, "hybrid", manifest) is CHUNK
    assert suggestion_for(name, "bm25", manifest) is None


PHRASES = [
    (
        "query length",
        Condition.ABOVE,
        45.0,
        "the query is longer (more than 45 characters)",
    ),
    (
        "shared words",
        Condition.AT_MOST,
        0.0,
        "the query shares no word with its document",
    ),
    (
        "rarest word",
        Condition.AT_MOST,
        0.0,
        "the query has a word that no document has",
    ),
    (
        "rarest word",
        Condition.ABOVE,
        1.0,
        "the query's rarest word is less rare (in more than 1 document)",
    ),
    ("labels", Condition.AT_MOST, 1.0, "the query has at most 1 relevant document"),
    ("script", Condition.IS_NOT, "Han", "the query's script is not Han"),
    ("field year", Condition.ABOVE, 1990.0, "the field year is above 1,990"),
    (
        "truncated by e5",
        Condition.IS,
        True,
        "e5's model read only the start of every relevant document",
    ),
]


@pytest.mark.parametrize(("name", "condition", "value", "phrase"), PHRASES)
def test_a_slice_has_a_phrase(
    name: str, condition: Condition, value: float | bool | str, phrase: str
) -> None:
    assert slice_phrase(SliceName(name, condition, value)) == phrase


def test_a_long_mean_length_has_its_digits() -> None:
    name = SliceName("document length", Condition.AT_MOST, 12345.5)
    assert "(at most 12,346 characters on average)" in slice_phrase(name)


def test_letters_of_marks_or_without_a_name_have_a_script() -> None:
    assert text_script("\N{ARABIC LIGATURE SHADDA WITH DAMMATAN ISOLATED FORM}") == (
        "Arabic"
    )
    # Older tables of Unicode have no names of Tangut letters.
    assert text_script(chr(0x17000)) in ("none", "Tangut")


def test_names_of_digits_with_an_underscore_are_no_numbers() -> None:
    releases = ["2024_01", "2024_10", "2025_01"]
    queries = [Query(str(i), "", {"release": releases[i % 3]}) for i in range(36)]
    labels = {group.name.label for group in property_slices(queries, [], [])}
    assert labels == set(releases)
