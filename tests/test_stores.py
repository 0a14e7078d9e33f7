"""Every store: the same questions, the same answers."""

import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.errors import InputError
from retrievers.stores.points import Found, past_ties, point_id
from retrievers.stores.qdrant import QdrantStore
from retrievers.types import ranked

RNG = np.random.default_rng(7)


def vectors(count, dimensions=16):
    return RNG.standard_normal((count, dimensions)).astype(np.float32)


def test_a_ulid_is_the_same_128_bits_as_its_point_id():
    ulid = "01G7XP6QXQWXAMKGTJYSPBFGBN"  # the article's example
    digits = ulid.translate(str.maketrans("ABCDEFGHJKMNPQRSTVWXYZ", "ABCDEFGHIJKLMNOPQRSTUV"))  # as Python's int reads
    assert uuid.UUID(point_id(ulid)).int == int(digits, 32)
    assert point_id(ulid.lower()) != point_id(ulid)


@given(st.uuids())
def test_a_uuid_stays_as_it_is_and_its_other_spellings_are_other_documents(value):
    assert point_id(str(value)) == str(value)
    others = {
        point_id(spelling) for spelling in (value.hex, str(value).upper(), f"{{{value}}}") if spelling != str(value)
    }
    assert str(value) not in others


@given(st.sets(st.text(min_size=1), max_size=30))
def test_point_ids_are_uuids_and_differ(ids):
    points = [point_id(document) for document in ids]
    assert len(set(points)) == len(ids)
    assert all(str(uuid.UUID(point)) == point for point in points)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=200), st.integers(1, 20), st.randoms(use_true_random=False))
def test_a_tie_at_the_limit_is_resolved_however_the_engine_orders_it(scores, limit, chance):
    rows = [(f"d{i:03}", score / 3) for i, score in enumerate(scores)]

    def ask(queries, size):
        shuffled = chance.sample(rows, len(rows))
        best = sorted(shuffled, key=lambda row: -row[1])[:size]
        return [Found([row[0] for row in best], [row[1] for row in best]) for _ in queries]

    [ranking] = past_ties(ask, np.zeros((1, 2), np.float32), limit)
    ids, values = zip(*rows, strict=True)
    assert ranking.doc_ids == ranked(ids, values, limit).doc_ids


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the refused client leaves a file open
def test_a_folder_held_by_another_is_the_users_mistake(tmp_path):
    first = QdrantStore(str(tmp_path), "c")
    first.create(16)
    with pytest.raises(InputError, match="another process holds it"):
        QdrantStore(str(tmp_path), "c").create(16)
    first.close()
