"""The fake Qdrant server over gRPC: the client's own stubs in front of its in-memory engine, with faults to order.

The protocol on the wire is the real one; the server behind it is not.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from qdrant_client import grpc as wire
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc

from tests.support.qdrant_fake import VERSION, Engine


class FakeQdrantGrpc(wire.QdrantServicer, wire.CollectionsServicer, wire.PointsServicer):
    """`faults` holds (method, status code), each used once."""

    def __init__(self):
        self.engine = Engine()
        self.lock = threading.Lock()
        self.faults = []
        self.requests = []
        self.keys = set()
        self.version = VERSION
        self.created = None
        self.indexed = []

    def begin(self, method, context):
        with self.lock:
            self.requests.append(method)
            self.keys.add(dict(context.invocation_metadata()).get("api-key"))
            code = next((code for name, code in self.faults if name == method), None)
            if code is not None:
                self.faults.remove((method, code))
                context.abort(code, "ordered")

    def HealthCheck(self, request, context):
        self.begin("HealthCheck", context)
        return wire.HealthCheckReply(title="qdrant", version=self.version)

    def CollectionExists(self, request, context):
        self.begin("CollectionExists", context)
        there = self.engine.collection_exists(request.collection_name)
        return wire.CollectionExistsResponse(result=wire.CollectionExists(exists=there))

    def Create(self, request, context):
        self.begin("Create", context)
        self.created = request
        vectors = GrpcToRest.convert_vectors_config(request.vectors_config)
        sparse = GrpcToRest.convert_sparse_vector_config(request.sparse_vectors_config)
        made = self.engine.create_collection(
            request.collection_name, vectors, sparse,
            hnsw_config=GrpcToRest.convert_hnsw_config_diff(request.hnsw_config).model_dump(),
            optimizers_config=GrpcToRest.convert_optimizers_config_diff(request.optimizers_config).model_dump(),
            quantization_config=request.quantization_config.WhichOneof("quantization"),
        )  # fmt: skip
        return wire.CollectionOperationResponse(result=made)

    def Delete(self, request, context):
        if isinstance(request, wire.DeleteCollection):
            return wire.CollectionOperationResponse(result=self.engine.delete_collection(request.collection_name))
        raise AssertionError("points are never deleted")

    def Update(self, request, context):
        self.begin("Update", context)
        kept = GrpcToRest.convert_payload(request.metadata)
        return wire.CollectionOperationResponse(
            result=self.engine.update_collection(request.collection_name, metadata=kept)
        )

    def Get(self, request, context):
        if isinstance(request, wire.GetPoints):
            self.begin("GetPoints", context)
            ids = [GrpcToRest.convert_point_id(one) for one in request.ids]
            found = self.engine.retrieve(request.collection_name, ids, with_payload=False)
            points = [wire.RetrievedPoint(id=RestToGrpc.convert_extended_point_id(one.id)) for one in found]
            return wire.GetResponse(result=points)
        self.begin("GetCollection", context)
        info = self.engine.get_collection(request.collection_name)
        return wire.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(info))

    def CreateFieldIndex(self, request, context):
        self.begin("CreateFieldIndex", context)  # the client's engine has no index of payloads
        self.indexed.append((request.collection_name, request.field_name, request.field_type))
        return wire.PointsOperationResponse(
            result=wire.UpdateResult(operation_id=0, status=wire.UpdateStatus.Completed)
        )

    def Upsert(self, request, context):
        self.begin("Upsert", context)
        with self.lock:
            points = [GrpcToRest.convert_point_struct(point) for point in request.points]
            self.engine.upsert(request.collection_name, points)
        return wire.PointsOperationResponse(
            result=wire.UpdateResult(operation_id=1, status=wire.UpdateStatus.Completed)
        )

    def Count(self, request, context):
        self.begin("Count", context)
        return wire.CountResponse(result=wire.CountResult(count=self.engine.count(request.collection_name).count))

    def QueryBatch(self, request, context):
        self.begin("QueryBatch", context)
        asked = [GrpcToRest.convert_query_points(one) for one in request.query_points]
        # The client's engine searches exactly, and would warn that it heeds no parameters.
        asked = [one.model_copy(update={"params": None}) for one in asked]
        answers = self.engine.query_batch_points(request.collection_name, asked)
        return wire.QueryBatchResponse(
            result=[
                wire.BatchResult(result=[RestToGrpc.convert_scored_point(point) for point in answer.points])
                for answer in answers
            ]
        )


@contextmanager
def fake_qdrant_grpc():
    """Yields the fake and its URL."""
    fake = FakeQdrantGrpc()
    server = grpc.server(ThreadPoolExecutor(4))
    wire.add_QdrantServicer_to_server(fake, server)
    # Collections and points both have `Get` and `Delete`; what is asked tells which is meant.
    wire.add_CollectionsServicer_to_server(fake, server)
    wire.add_PointsServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield fake, f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
        fake.engine.close()
