"""Front matter of Markdown files: its title is the title, its entries are fields, and it is no text."""

import pytest

from harness.dataset.markdown_folder import LARGEST_HEAD as LARGEST
from harness.dataset.markdown_folder import LONGEST_HEAD as LONGEST
from harness.dataset.markdown_folder import front_matter, parse_document
from retrievers.types import Document


def test_what_a_wiki_exports():
    text = '---\r\ntitle: "Passwort: neu"\r\nlang: de\r\nweight: 3\r\n---\r\n\r\n# Heading\r\n\r\nKlicken Sie.\r\n'
    found = parse_document(text, "de/password")
    assert found == Document(
        "de/password", "Passwort: neu", "# Heading\r\n\r\nKlicken Sie.", {"lang": "de", "weight": "3"}
    )


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ("tags: [a, 'b c', \"d\"]", {"tags": "a, b c, d"}),
        ("tags:\n- a\n- b", {"tags": "a, b"}),
        ("url: http://example.org/#a  # where it was", {"url": "http://example.org/#a"}),
        ("note: it's\n\n# remark\nempty:\nauthor: 'O''Neil'", {"note": "it's", "author": "O'Neil"}),
        ("summary: >-\n  two\n  lines", {"summary": "two lines"}),
        ("seo:\n  robots: none\n  rank: 1", {"seo": "robots: none rank: 1"}),
        ("Last updated: 2026-09-01 10:00:00", {"Last updated": "2026-09-01 10:00:00"}),
    ],
)
def test_simple_entries_are_read_as_text(head, fields):
    assert front_matter(f"---\n{head}\n---\ntext") == ("", fields, "text")


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nA rule, then text.\n\n---\nmore",
        "---\ntitle: never closed\n\ntext",
        "---\ntitle: a\ntitle: b\n---\ntext",
        "---\n- a\n---\ntext",
        "---\n---\ntext",
        " ---\ntitle: a\n---\ntext",
        "----\ntitle: a\n----\ntext",
        "---\n" + "".join(f"k{n}: v\n" for n in range(LONGEST + 1)) + "---\ntext",
        f"---\ntitle: {'a' * LARGEST}\n---\ntext",
        "text\n---\ntitle: a\n---\n",
        "---\ntitle: a: b\n---\ntext",
        "---\na: &x b\nc: [*x, *x]\n---\ntext",
        "---\na: " + "[" * 19_000 + "\n---\ntext",
        "---\na: !!python/name:os.system\nb: [c\n---\ntext",
        "",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(text):
    assert front_matter(text) == ("", {}, text)


def test_a_head_alone_is_a_document_without_text():
    assert parse_document("---\ntitle: A\n---", "a") == Document("a", "A", "")


def test_without_a_title_the_first_heading_counts():
    assert parse_document("---\nlang: en\n---\n# Days\n\ntext", "a").title == "Days"


def test_a_survey_keeps_its_own_head():
    found = parse_document("---\ntags: x\nlang: en\n---\n# Survey overview\n\n* ID: X1\n* Tags: a, b\n", "file")
    assert (found.id, dict(found.fields)) == ("X1", {"tags": "a, b", "lang": "en"})
