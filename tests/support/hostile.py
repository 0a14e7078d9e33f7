"""A BEIR folder in many scripts whose strings would like to be code."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from tests.support import layouts, small

ATTACKS = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    "<!-- <script>",
    '"><img src=x onerror="window.pwned=3">',
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "=cmd|' /C calc'!A0",
    "\\input{/etc/passwd} $x$ & % # _ ^ ~",
    "bell \u0007 escape \u001b[31m del \u007f separator \u2028 override \u202e gnirts",
    "| a | b |\n# heading\n[link](javascript:alert(1)) `code` @everyone",
    "</style><style>body{display:none}</style>",
    "javascript:window.pwned=4",
    "' onmouseover='window.pwned=5",
)
SCRIPTS = (
    "顧客満足度の調査について",
    "고객 만족도 조사",
    "客户满意度调查",
    "استطلاع رضا العملاء 2024 (nDCG)",
    "סקר שביעות רצון",
    "Опрос удовлетворённости клиентов",
    "แบบสำรวจความพึงพอใจ",
    "naïve café – œuvre Straße ﬁn 👩‍🔬",
)
RETRIEVERS = small.RETRIEVERS.replace(
    '"hybrid"', '"hybrid-of-bm25-and-hashing_with.a-long-name"'
)


def write(folder: Path, *, queries: int = 20) -> Path:
    """An experiment file on a data set of hostile ids, titles, texts and tags."""
    data = folder / "data"
    strings = [*ATTACKS, *SCRIPTS]
    count = len(strings)
    documents = [
        {
            "_id": f"d{i}{_part_of_id(strings[i % count], 12)}",
            "title": strings[i % count],
            "text": f"{strings[(7 * i + 3) % count]} number {i} {text}",
        }
        for i, text in enumerate(strings * 3)
    ]
    queries = [
        {
            "_id": f"q{i}{_part_of_id(strings[i % count], 8)}",
            "text": f"{strings[i % count]} {i}",
            "metadata": {"tag": strings[(i + 5) % count], "language": "mul"},
        }
        for i in range(queries)
    ]
    layouts.jsonl(data / "corpus.jsonl", documents)
    layouts.jsonl(data / "queries.jsonl", queries)
    rows = ["query-id\tcorpus-id\tscore"]
    for i, query in enumerate(queries):
        for step, grade in ((0, 2), (count, 1), (1, 0)):
            rows.append(
                f"{query['_id']}\t"
                f"{documents[(i + step) % len(documents)]['_id']}\t{grade}"
            )
    (data / "qrels").mkdir()
    (data / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = folder / "hostile.toml"
    path.write_text(
        f'name = "hostile"\ndataset = "{data.as_posix()}"\nprimary = "nDCG@10"\n'
        'measures = ["P@5", "R@10", "nDCG@10", "RR@10", "AP", "Success@1"]\ndepth = '
        f"30\n{RETRIEVERS}",
        encoding="utf-8",
    )
    return path


def _part_of_id(text: str, length: int) -> str:
    """The beginning of a text without control characters, which no id may hold."""
    return "".join(
        letter
        for letter in text[:length].strip()
        if unicodedata.category(letter) != "Cc"
    )
