"""TREC files: what is written comes back, also in blocks, and what is malformed is named with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.dataset import trec
from retrievers import runs
from retrievers.errors import InputError
from retrievers.ids import nfc
from retrievers.types import ranked
from tests.support.small import refusal

ids = st.text(
    st.one_of(
        st.sampled_from(" %\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2003\u2028\u2029\u3000"),
        st.characters(codec="utf-8"),
    ),
    min_size=1,
).map(nfc)
scores = st.one_of(
    st.floats(-1e30, 1e30, allow_nan=False), st.sampled_from([0.0, 0.5, 0.5 + 1e-12, 1e-50, -1e-50, 1 / 3])
)
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def streamed(path: Path) -> list[tuple[str, dict[str, float]]]:
    return [(query, dict(zip(ids, hits.tolist(), strict=True))) for query, ids, hits in runs.stream_run(path)]


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@same_folder
@example({"{": {"\x80": 0}})
@given(st.dictionaries(ids, st.dictionaries(ids, st.integers(-(2**31) + 1, 2**31 - 1), min_size=1), min_size=1))
def test_judgments_come_back(tmp_path: Path, judgments: dict[str, dict[str, int]]) -> None:
    trec.write_qrels(tmp_path / "qrels", judgments)
    assert trec.read_qrels(tmp_path / "qrels") == judgments


@same_folder
@given(st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1), min_size=1))
def test_rankings_come_back_in_their_order_for_every_reader(tmp_path: Path, run: dict[str, dict[str, float]]) -> None:
    """Scores fall strictly as doubles and as 32-bit floats, so no reader has to break a tie."""
    rankings = {q: ranked(list(hits), list(hits.values())) for q, hits in run.items()}
    runs.write_run(tmp_path / "run", rankings.items(), tag="x")
    back = runs.read_run(tmp_path / "run")
    assert list(back) == list(rankings)
    for query_id, hits in back.items():
        assert tuple(hits) == rankings[query_id].doc_ids
        doubles = np.array(list(hits.values()))
        assert (np.diff(doubles) < 0).all()
        assert (np.diff(doubles.astype(np.float32).astype(np.float64)) < 0).all()
    assert streamed(tmp_path / "run") == list(back.items())


def test_scores_that_fall_are_written_in_full(tmp_path: Path) -> None:
    runs.write_run(tmp_path / "run", [("q 1", ranked(["a", "b%", "c"], [0.1, 0.1, 0.05]))], tag="tag")
    lines = (tmp_path / "run").read_bytes().decode().split("\n")
    assert lines == ["q%201 Q0 b%25 1 0.1 tag", "q%201 Q0 a 2 0.09999999403953552 tag", "q%201 Q0 c 3 0.05 tag", ""]


def test_scores_beyond_32_bits_still_fall(tmp_path: Path) -> None:
    """A reader that packs them into 32 bits must not overflow."""
    runs.write_run(tmp_path / "run", [("q", ranked(["a", "b", "c"], [1e300, 1e39, -1e39]))], tag="t")
    singles = np.array(list(runs.read_run(tmp_path / "run")["q"].values()), dtype=np.float32)
    assert np.isfinite(singles).all()
    assert (singles[1:] < singles[:-1]).all()


def test_ids_that_only_look_encoded_stay_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels", "q%41 0 a%E9 1\nq 0 b%20c 0\n")
    assert trec.read_qrels(path) == {"q%41": {"a%E9": 1}, "q": {"b c": 0}}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("gap", [" ", "\t", "  \t "])
def test_lines_end_at_newlines_and_fields_at_ascii_white_space(tmp_path: Path, end: str, gap: str) -> None:
    text = end.join([gap.join(["q\u2028", "0", "d\u3000\xa0", "1"]), "", "   ", gap.join(["q", "0", "d", "2"])])
    path = written(tmp_path / "qrels", "\ufeff" + text)
    assert trec.read_qrels(path) == {"q\u2028": {"d\u3000\xa0": 1}, "q": {"d": 2}}


def test_what_follows_the_tag_is_ignored(tmp_path: Path) -> None:
    path = written(tmp_path / "run", "q Q0 d 1 1e-3 tag more junk at the end\nq Q0 e 2 -2 tag\n")
    assert runs.read_run(path) == {"q": {"d": 1e-3, "e": -2.0}}


def test_packed_files_are_read_whatever_their_name(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(gzip.compress(b"q Q0 d 1 0.5 t\n"))
    (tmp_path / "qrels.gz").write_bytes(b"q 0 d 1\n")
    assert runs.read_run(tmp_path / "run") == {"q": {"d": 0.5}}
    assert trec.read_qrels(tmp_path / "qrels.gz") == {"q": {"d": 1}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q 0 d", "3 fields instead of 4 (query iteration document grade)"),
        ("q 0 d 1 2", "5 fields instead of 4"),
        ("q 0 d 1.0", "'1.0' is not a grade"),
        ("q 0 d one", "'one' is not a grade"),
        ("q 0 d 1_0", "'1_0' is not a grade"),
        ("q 0 d 2147483648", "'2147483648' is not a grade"),
        *((f"q 0 d {'9' * digits}", "'9999") for digits in (400, 5000)),
        ("q 0 a 2", "document 'a' is judged twice for query 'q'"),
    ],
)
def test_malformed_judgments(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path / "qrels", f"q 0 a 1\n\n{line}\n")
    assert str(refusal(trec.read_qrels, path)).startswith(f"{path}:3: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 d 1 0.5", "5 fields instead of 6 (query Q0 document rank score tag)"),
        ("q", "1 fields instead of 6"),
        ("q Q0 d 1 high t", "'high' is not a score"),
        ("q Q0 d 1 nan t", "'nan' is not a score"),
        ("q Q0 d 1 -inf t", "'-inf' is not a score"),
        ("q Q0 d 1 1_000 t", "'1_000' is not a score"),
        (f"q Q0 d 1 {'9' * 400} t", "'9999"),
        ("q Q0 a 2 0.4 t", "document 'a' is ranked twice for query 'q'"),
    ],
)
def test_malformed_rankings(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path / "run", f"q Q0 a 1 0.5 t\n{line}\n")
    for read in (runs.read_run, lambda p: list(runs.stream_run(p))):
        assert str(refusal(read, path)).startswith(f"{path}:2: {message}")


def test_ids_that_are_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"q Q0 \xff 1 0.5 t\n")
    with pytest.raises(InputError, match=":1: an id is not UTF-8"):
        runs.read_run(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"\xff 0 d 1\n")
    with pytest.raises(InputError, match=":1: an id is not UTF-8"):
        trec.read_qrels(tmp_path / "file")


def test_many_problems_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "run", "bad\n" * 1000)
    error = refusal(runs.read_run, path)
    assert len(error.problems) == runs.SHOWN + 1
    assert "980 more" in str(error)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        runs.read_run(tmp_path / "none")
    with pytest.raises(InputError, match="cannot be read"):
        trec.read_qrels(tmp_path)
    with pytest.raises(InputError, match="there is no line"):
        trec.read_qrels(written(tmp_path / "empty", "\n\n"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"q 0 d 1\n" * 100)[:-12])
    with pytest.raises(InputError, match="cannot be read"):
        trec.read_qrels(tmp_path / "cut.gz")


def test_a_stream_gives_each_stretch_of_a_query(tmp_path: Path) -> None:
    path = written(tmp_path / "run", "p Q0 a 1 3 t\np Q0 b 2 2 t\nq Q0 a 1 1 t\np Q0 c 3 1 t\n")
    assert streamed(path) == [("p", {"a": 3.0, "b": 2.0}), ("q", {"a": 1.0}), ("p", {"c": 1.0})]
    assert runs.read_run(path) == {"p": {"a": 3.0, "b": 2.0, "c": 1.0}, "q": {"a": 1.0}}


lines = st.lists(st.sampled_from([
    "q1 0 d1 1", "q1 0 d2 0", "q2 0 d1 3", "q2\t0  d%20x 1", "q3 0 dé 1", "q3 0 d\x1c 1", "q1 0 d1 1", "", "q4 0 d 1_0",
    "q3 0 d\0 1", "q3 0 e 1\0", "q%20 0 d%2 1 ",
    "q4 0 d", "q5 0 d 9999999999", "q5 0 d_1 -1", "q6 Q0 d1 1 0.5 t", "q6 Q0 d2 2 nan t", "q6 Q0 d3 3 0.25 a tag",
]), max_size=12)  # fmt: skip


def outcome(read, path):
    try:
        return read(path)
    except InputError as error:
        return str(error)


@settings(max_examples=150, derandomize=True, database=None)
@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 40))
def test_blocks_change_nothing(tmp_path_factory, some, end, ended, size):
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes((end.join(some) + end * ended).encode())
    fast, block = runs.columns_of, runs.BLOCK
    told = []
    try:
        for columns, length in ((fast, size), (fast, block), (lambda *_: None, block)):
            runs.BLOCK, runs.columns_of, trec.columns_of = length, columns, columns
            told.append([outcome(read, path) for read in (trec.read_qrels, runs.read_run)])
    finally:
        runs.BLOCK, runs.columns_of, trec.columns_of = block, fast, fast
    assert told[0] == told[1] == told[2]


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"q1 0 d1 1\n")
        for _ in range(50):
            file.write(b"x" * (1 << 20))
    for read in (trec.read_qrels, runs.read_run):
        with pytest.raises(InputError, match=r"bomb.gz:2: is longer than 1,048,576 bytes"):
            read(path)
