"""TREC files in blocks: what is read fast and what is read line by line are the same, and no line fills the memory."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.dataset import trec
from retrievers import runs
from retrievers.errors import InputError

lines = st.lists(st.sampled_from([
    "q1 0 d1 1", "q1 0 d2 0", "q2 0 d1 3", "q2\t0  d%20x 1", "q3 0 dé 1", "q3 0 d\x1c 1", "q1 0 d1 1", "", "q4 0 d 1_0",
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
            told.append([outcome(read, path) for read in (trec.read_qrels, trec.read_run)])
    finally:
        runs.BLOCK, runs.columns_of, trec.columns_of = block, fast, fast
    assert told[0] == told[1] == told[2]


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"q1 0 d1 1\n")
        for _ in range(50):
            file.write(b"x" * (1 << 20))
    for read in (trec.read_qrels, trec.read_run):
        with pytest.raises(InputError, match=r"bomb.gz:2: is longer than 1,048,576 bytes"):
            read(path)
