"""The server store over gRPC, as far as the protocol goes: what is sent, what is tried again, what is an error."""

import grpc
import pytest

from retrievers.errors import InputError
from retrievers.meter import Meter
from tests.retrievers.test_stores_server import COUNT, VECTORS, build, hasty, opened, patient
from tests.support.qdrant_fake_grpc import fake_qdrant_grpc

__all__ = ["hasty", "opened", "patient"]


@pytest.fixture
def fake():
    with fake_qdrant_grpc() as (running, url):
        running.url = url
        yield running


def test_all_that_an_experiment_says_travels(fake, opened):
    store = opened(shards=6, replication=2, m=16, ef_construct=200, quantization="scalar", api_key="k3y")
    build(store)
    again = opened(shards=6, replication=2, m=16, ef_construct=200, quantization="scalar")
    assert again.finished() == {"truncated": ("d3",)}
    assert again.facts["indexed_points"] == again.facts["points"] == str(COUNT)
    made = fake.created
    assert (made.shard_number, made.replication_factor, made.vectors_config.params.size) == (6, 2, 8)
    assert (made.hnsw_config.m, made.hnsw_config.ef_construct) == (16, 200)
    assert (made.hnsw_config.full_scan_threshold, made.optimizers_config.indexing_threshold) == (10, 1)
    assert made.quantization_config.WhichOneof("quantization") == "scalar"
    assert "k3y" in fake.keys
    [ranking] = store.search(VECTORS[5:6], 3)
    assert ranking.doc_ids[0] == "d5"
    assert ranking.scores[0] == pytest.approx(1)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("method", ["HealthCheck", "CollectionExists", "Create", "Upsert", "Count", "Update"])
@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_a_fault_that_passes_is_retried_and_counted(fake, opened, method, code):
    fake.faults = [(method, code)]
    meter = Meter()
    store = opened(meter=meter)
    build(store)
    assert not fake.faults
    assert sum(totals.counts.get("retries", 0) for totals in meter.stages().values()) == 1
    assert store.search(VECTORS[:1], 1)[0].doc_ids == ("d0",)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED])
def test_refused_access_is_the_users_to_mend(fake, opened, code):
    fake.faults = [("CollectionExists", code)]
    with pytest.raises(InputError, match=rf"refuses access \({code.name}\)"):
        opened().finished()
