"""Queries that hold what looks like personal data are counted, and never shown."""

import pytest

from harness.running.check import check
from harness.running.personal import kinds_in, personal_data
from retrievers.types import Query
from tests.costs import MUCH, cost


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("invoice for max.mustermann@example.com", "e-mail address"),
        ("müller@büro.de", "e-mail address"),
        ("IBAN DE89370400440532013000 is wrong", "IBAN"),
        ("gb29 nwbk 6016 1331 9268 19", "IBAN"),
        ("call me +49 170 1234567", "phone number"),
        ("tel. +1 (555) 123-4567", "phone number"),
        ("0049 170 1234567", "phone number"),
        ("030/1234567", "phone number"),
        ("03-1234-5678", "phone number"),
        ("(555) 123-4567", "phone number"),
    ],
)
def test_what_looks_like_personal_data(text, kind):
    assert kinds_in(text) == {kind}


@pytest.mark.parametrize(
    "text",
    ["", "me @ home", "a@b", "DE88370400440532013000", "AB12 this is some text here", "2026-09-01T10:00:00+02:00",
     "01.02.2024 10:30", "01-02-2024", "05 2024", "version 4.10.12", "error 0x80070005", "4711", "1,234,567.89",
     "ISBN 978-3-16-148410-0", "192.168.100.200", "product 12345678"],
)  # fmt: skip
def test_what_does_not(text):
    assert kinds_in(text) == frozenset()


@pytest.mark.parametrize("part", ["a.", "a@", "+1 ", "0", "1-", "DE89 ", "DE89", "(0", "a" * 64 + "@"])
def test_a_long_text_takes_no_time(part):
    assert cost(lambda: kinds_in(part * 100_000)) < MUCH


def test_the_warning_counts_and_shows_nothing():
    queries = [Query("q0", "mail to a@example.org or b@example.org"), Query("q1", "how much leave"),
               Query("q2", "who called", {"caller": "+49 170 1234567"})]  # fmt: skip
    assert personal_data(queries) == (
        "2 queries hold what looks like personal data (e-mail address 1, phone number 1): results and reports show "
        "them, and services are sent them; mask them, or leave them out"
    )
    assert personal_data(queries[1:2]) == ""


@pytest.mark.parametrize("target", ["d", "e.toml"])
def test_check_warns_of_it(tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("# Leave")
    (tmp_path / "d" / "queries.txt").write_text("leave of a@example.org\n")
    (tmp_path / "e.toml").write_text('name = "e"\ndataset = "d"\nprimary = "RR"\nmeasures = ["RR"]\n'
                                     '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n')  # fmt: skip
    [warning] = [line for line in check(tmp_path / target).lines() if "personal" in line]
    assert warning.startswith("warning: 1 query holds what looks like personal data (e-mail address 1)")
    assert "example.org" not in warning
