"""Rankings measured by claims, and the files that keep what judges said."""

import json
import math

import pytest

from harness import records
from harness.answers import judging
from harness.answers.judging import Inquiry, LexicalJudge
from harness.measures import Claimed, parse, score, score_run
from harness.records import By, ClaimPassage, Readings, readings
from retrievers.errors import InputError

FEE = Claimed(
    ("monthly", "in advance", "half for students"),
    {"a": (True, False, False), "b": (False, False, False), "c": (True, True, False), "d": (False, None, False)},
)


def measured(name: str, ranking: list[str], claimed: Claimed = FEE) -> float:
    return float(score([parse(name)], {"q": {}}, {"q": ranking}, claims={"q": claimed}).values[0, 0])


def test_recall_counts_a_claim_once_wherever_it_stands() -> None:
    assert measured("ClaimRecall@1", ["b", "a", "c"]) == 0
    assert measured("ClaimRecall@2", ["b", "a", "c"]) == 1 / 3
    assert measured("ClaimRecall@3", ["b", "a", "c"]) == measured("ClaimRecall", ["b", "a", "c"]) == 2 / 3
    assert measured("ClaimRecall@3", []) == 0


def test_precision_by_claims() -> None:
    assert measured("ClaimPrecision@3", ["b", "a", "c"]) == 2 / 3
    assert measured("ContextPrecision(by='claims')@3", ["b", "a", "c"]) == (1 / 2 + 2 / 3) / 2
    assert measured("ContextPrecision(by='claims')@1", ["b"]) == 0
    assert math.isnan(measured("ClaimPrecision@3", []))


def test_a_missing_verdict_is_not_a_no() -> None:
    assert math.isnan(measured("ClaimRecall@1", ["d"]))  # "in advance" has no readable verdict
    assert measured("ClaimRecall@2", ["d", "c"]) == 2 / 3  # c entails it, whatever d says
    assert math.isnan(measured("ClaimRecall@2", ["a", "never judged"]))
    assert math.isnan(measured("ClaimPrecision@1", ["d"]))
    assert math.isnan(measured("ContextPrecision(by='claims')@2", ["a", "d"]))


def test_a_query_without_claims_is_undefined_and_the_mean_is_of_the_others() -> None:
    found = score([parse("ClaimRecall@1")], {"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a"], "r": ["a"]}, claims={"q": FEE})
    assert found.values[0, 0] == 1 / 3 and math.isnan(found.values[0, 1])
    assert found.means() == {parse("ClaimRecall@1"): 1 / 3}


def test_labels_alone_are_refused() -> None:
    with pytest.raises(InputError, match="claims of reference answers"):
        score([parse("ClaimRecall@5")], {"q": {"a": 1}}, {"q": ["a"]})
    with pytest.raises(InputError, match="claims of reference answers"):
        score_run([parse("ContextPrecision(by='claims')@5")], {"q": {"a": 1}}, [("q", {"a": 1.0})])
    with pytest.raises(InputError, match="no other parameter"):
        parse("ContextPrecision(by='claims', rel=2)@5")
    assert str(parse("ContextPrecision(by='ids')@5")) == "ContextPrecision@5"


def test_the_lexical_judge_counts_distinct_tokens() -> None:
    judge = LexicalJudge()
    passage = "Guests rate the cleanliness of the room, the breakfast and the staff."
    pairs = [
        ClaimPassage("guests rate the cleanliness of their room", passage),  # 6 of 7
        ClaimPassage("guests rate the pool and the room", passage),  # 5 of 6, 'pool' missing
        ClaimPassage("guests rate the lobby and the pool", passage),  # 4 of 6
        ClaimPassage("…", passage),
    ]
    assert dict(judge.verdicts(pairs)) == {0: "entailed", 1: "entailed", 2: "neutral", 3: None}
    assert dict(LexicalJudge(threshold=0.6).verdicts(pairs))[2] == "entailed"
    assert dict(judge.helps([Inquiry("rate the staff", passage), Inquiry("price of parking", passage)])) == {
        0: True,
        1: False,
    }
    assert list(judge.relevance([])) == list(judge.questions([])) == []
    assert dict(
        judge.verdicts([ClaimPassage("宿泊客が部屋の清潔さを評価する", "部屋の清潔さを宿泊客が評価する。")])
    ) == {0: "entailed"}
    with pytest.raises(InputError, match="threshold"):
        LexicalJudge(threshold=0)


def test_verdicts_are_kept_by_judge_and_read_back(tmp_path) -> None:
    judge, other = By("lexical 0.8"), By("nli x", "abc")
    one, two = ClaimPassage("a claim", "a passage\u2028with a separator"), ClaimPassage("未読", "文")
    records.append_verdicts(tmp_path, judge, {one: "entailed", two: None})
    records.append_verdicts(tmp_path, other, {one: "contradicted"}, round_=2)
    records.append_claims(tmp_path, judge, {"A text.": ["one", "two"], "unreadable": None})
    records.append_opinions(tmp_path, judge, "helps", {("c", "t"): True})
    found = records.read_readings(tmp_path, judge)
    assert (found.word(*one), found.truth(*one), found.word(*two)) == ("entailed", True, None)
    assert found.claims == {"A text.": ("one", "two"), "unreadable": None}
    assert found.opinion("helps", "c", "t") is True and found.opinion("helps", "t", "c") is None
    assert records.read_readings(tmp_path, other).word(*one, 2) == "contradicted"
    assert records.judges_in(tmp_path) == [judge, other]
    assert records.read_readings(tmp_path / "absent", judge) == Readings()


def test_a_line_that_broke_off_is_mended_and_a_wrong_one_is_named(tmp_path) -> None:
    judge = By("lexical 0.8")
    records.append_verdicts(tmp_path, judge, {ClaimPassage("c", "t"): "neutral"})
    file = tmp_path / readings.VERDICTS
    file.write_text(file.read_text() + '{"claim": "half a li', encoding="utf-8")
    records.append_verdicts(tmp_path, judge, {ClaimPassage("d", "t"): "entailed"})
    assert len(file.read_text().splitlines()) == 2
    assert records.read_readings(tmp_path, judge).word("d", "t") == "entailed"
    row = json.loads(file.read_text().splitlines()[0])
    file.write_text("nonsense\n[]\n" + json.dumps({**row, "verdict": "maybe"}) + "\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        records.read_readings(tmp_path, judge)
    assert [problem.where[-2:] for problem in error.value.problems] == [":1", ":2", ":3"]


@pytest.mark.parametrize("claims", ["One claim.", [1], {"a": 1}, ["one", None]])
def test_claims_that_are_no_list_of_texts_are_named(tmp_path, claims) -> None:
    """A text in their place would be read as its letters, a claim each."""
    row = {"text": "A text.", "claims": claims, "judge": "lexical 0.8", "prompt": ""}
    (tmp_path / readings.CLAIMS).write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"claims\.jsonl:1: .*no list of texts"):
        records.read_readings(tmp_path, By("lexical 0.8"))


def test_what_is_known_is_not_asked_again() -> None:
    asked = []

    def ask(missing):
        asked.extend(missing)
        return iter([(1, "yes")])  # the first one never comes back

    assert judging.asked_once(["a", "b", "a", "c"], {"b"}.__contains__, ask) == {"a": None, "c": "yes"}
    assert asked == ["a", "c"]
