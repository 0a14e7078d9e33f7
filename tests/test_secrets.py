"""What `${NAME}` stands for reaches no page, no file and no message: every door, after success and after failure."""

import io
import json
import os
import re
from contextlib import ExitStack, redirect_stderr, redirect_stdout

import pytest

from harness.cli import main
from tests import small, tiny
from tests.chat_fake import ChatProvider
from tests.dialects import KEY, RerankProvider
from tests.qdrant_fake import fake_qdrant
from tests.servers import BedrockProvider, OpenAIProvider, serving
from tests.small import BM25
from tests.test_json_encoders import Cohere, Gemini

pytestmark = pytest.mark.slow

FAULTS = ["works", "expired", "closed", "page"]
"""A server works; refuses the key, which it shows; is not there; answers with a page."""
AWS_ID = "AKIA0000000000000000"


class Endpoint(OpenAIProvider):
    """A search engine that finds two documents for every query."""

    def answer(self, path, body, headers, fault):
        return {"hits": ["apple", "car"]}, {}


def reranking(dialect):
    return (
        lambda **more: RerankProvider(dialect=dialect, **more),
        f"""of = "bm25"
rerank = {{ kind = "http", dialect = "{dialect}", model = "${{MODEL}}", base_url = "${{SERVER}}", \
api_key = "${{DIALECT_KEY}}", headers = {{ X-Site = "${{HEADER}}" }}, extra = {{ user = "${{EXTRA}}" }}, \
price = 1.0, search_price = 1.0, patience = 0.2 }}
""",
    )


DOORS = {
    "openai": (OpenAIProvider, """encoder = { kind = "openai", model = "${MODEL}", base_url = "${SERVER}", \
api_key = "${KEY}", headers = { X-Site = "at ${HEADER}" }, query_prompt = "${PROMPT}: ", \
document_prompt = "of ${PROMPT}: ", document_extra = { user = "${EXTRA}" }, price = 1.0, patience = 0.2 }"""),
    "cohere": (Cohere, """encoder = { kind = "cohere", model = "${MODEL}", base_url = "${SERVER}", \
api_key = "${DIALECT_KEY}", price = 1.0, patience = 0.2 }"""),
    "gemini": (Gemini, """encoder = { kind = "gemini", model = "${MODEL}", base_url = "${SERVER}", \
api_key = "${DIALECT_KEY}", query_prompt = "${PROMPT}: ", document_prompt = "${PROMPT}: ", price = 1.0, \
patience = 0.2 }"""),
    "bedrock": (BedrockProvider, """encoder = { kind = "bedrock", model = "amazon.titan-embed-text-v2:0", \
region = "${REGION}", endpoint_url = "${SERVER}", dimensions = 256, price = 1.0, patience = 0.2 }"""),
    "sentence-transformers": (None, """encoder = { kind = "sentence-transformers", model = "${BI_ENCODER}", \
query_prompt = "${PROMPT}: ", document_prompt = "${PROMPT}: " }"""),
    "cross-encoder": (None, 'of = "bm25"\nrerank = { kind = "cross-encoder", model = "${CROSS_ENCODER}" }'),
    "cohere reranking": reranking("cohere"),
    "jina reranking": reranking("jina"),
    "voyage reranking": reranking("voyage"),
    "tei reranking": reranking("tei"),
    "search endpoint": (Endpoint, """kind = "http"\nurl = "${SERVER}/search?site=${EXTRA}"\nids = "hits"\n\
headers = { Authorization = "ApiKey ${KEY}" }\nbody = { q = "{query}", site = "${EXTRA}" }\npatience = 0.2"""),
    "function": (None, 'kind = "python"\ncall = "${MODULE}:ask"'),
    "saved run": (None, 'kind = "run"\npath = "${RUN}"'),
    "server store": (fake_qdrant, """encoder = { kind = "hashing", dimensions = 32 }
store = { location = "${SERVER}", api_key = "${KEY}" }"""),
    "folder store": (None, 'encoder = { kind = "hashing", dimensions = 48 }\nstore = "${FOLDER}"'),
    "vectors": (None, 'encoder = { kind = "hashing", dimensions = 64 }\n[vectors]\nfrom = "${VECTORS}"'),
    "chat judge": (ChatProvider, """kind = "bm25"\nk1 = 0.5\n[judge]\nkind = "openai"\nmodel = "${MODEL}"\n\
base_url = "${SERVER}"\nkey_name = "JUDGE_KEY"\ninput_price = 0\noutput_price = 0"""),
}  # fmt: skip
ALONE = ("vectors", "chat judge")
"""Doors that stand in an experiment once, for all retrievers."""


def canary(name) -> str:
    """What every secret of a door holds; letters and digits, which no program writes in another way."""
    return f"canary{list(DOORS).index(name)}x"


def values(name, inside) -> dict[str, str]:
    """The variables of a door, by the names in the table above."""
    own = canary(name)
    (inside / f"{own}module.py").write_text(
        "def ask(queries, depth):\n    return [[('apple', 1.0)] for _ in queries]\n", encoding="utf-8"
    )
    (inside / f"{own}.trec").write_text("q-rails Q0 train 1 1.0 t\n", encoding="utf-8")
    paths = {"RUN": inside / f"{own}.trec", "FOLDER": inside / f"{own}-folder", "VECTORS": inside / f"{own}-vectors"}
    if "CROSS_ENCODER" in DOORS[name][1]:
        paths["CROSS_ENCODER"] = tiny.cross_encoder(inside / f"{own}-model")
    if "BI_ENCODER" in DOORS[name][1]:
        paths["BI_ENCODER"] = tiny.bi_encoder(inside / f"{own}-model")
    texts = {one: f"{own}-{one.lower()}" for one in ("MODEL", "KEY", "HEADER", "PROMPT", "EXTRA", "REGION")}
    return {**texts, **{key: str(path) for key, path in paths.items()}, "MODULE": f"{own}module", "DIALECT_KEY": KEY}


def address(stack, name, fault) -> str:
    """Start a door's server, which has the fault; its address has a user, where that can be."""
    door, own = DOORS[name][0], canary(name)
    if door is None:
        return ""
    if fault == "closed" and name == "chat judge":
        fault = "missing"  # it would wait five minutes for a server that is not there
    if door is fake_qdrant:
        server = stack.enter_context(fake_qdrant())
        server.api_key = "another" if fault == "expired" else f"{own}-key"
        if fault == "page":
            server.faults += [("GET", "", b"<html>")] * 100
        url = server.url
    else:
        more = {"dimensions": 256} if door is BedrockProvider else {}
        url = stack.enter_context(serving(door(always="" if fault == "works" else fault, **more))).url
        url = url.replace("://", f"://me:{own}-password@")
    return re.sub(r"(\d):\d+", r"\1:1", url) if fault == "closed" else url


def said_by(*words) -> tuple[int, str]:
    """The exit code of a command, and all that it printed."""
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
        pytest.raises(SystemExit) as stopped,
    ):
        main([str(word) for word in words])
    return stopped.value.code, out.getvalue() + err.getvalue()


def written(place, names) -> str:
    """An experiment with these doors, each with variables of its own."""
    blocks = []
    for name in names:
        number = list(DOORS).index(name)
        block = re.sub(r"\$\{(\w+)\}", rf"${{D{number}_\1}}", DOORS[name][1])
        blocks.append(f'[[retrievers]]\nname = "door{number}"\n{block}\n')
    return small.experiment(place, retrievers=BM25 + "".join(blocks), report=True)


@pytest.fixture(scope="module", params=FAULTS)
def traces(request, tmp_path_factory):
    """All that the commands printed, and every file that they wrote, of experiments with all doors."""
    fault, place = request.param, tmp_path_factory.mktemp("secrets")
    inside = tmp_path_factory.mktemp("private")
    printed = ""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("AWS_ACCESS_KEY_ID", AWS_ID)
        patch.setenv("AWS_SECRET_ACCESS_KEY", f"{canary('bedrock')}-0123456789abcdefghijklmnopqrst")
        patch.setenv("AWS_SESSION_TOKEN", f"{canary('bedrock')}/session+token==0123456789abcdef")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("HARNESS_CACHE", str(place / "cache"))
        patch.setenv("JUDGE_KEY", f"{canary('chat judge')}-key")
        patch.syspath_prepend(str(inside))
        patch.chdir(place)
        patch.setattr("retrievers.retrying.FIRST_PAUSE", 0.01)
        patch.setattr("retrievers.retrying.PATIENCE", 0.2)
        for number, name in enumerate(DOORS):
            for key, value in (values(name, inside) | {"SERVER": address(stack, name, fault)}).items():
                patch.setenv(f"D{number}_{key}", value)
        parts = [[name for name in DOORS if name not in ALONE], *([name] for name in ALONE)]
        for number, names in enumerate(parts):
            folder = place / f"part{number}"
            small.dataset(folder / "data")
            data = folder / "data" / "queries.json"
            text = data.read_text(encoding="utf-8")
            data.write_text(text.replace('"id": "q-rails",', '"id": "q-rails", "reference": "Trains run on rails.",'))
            path = written(folder, names)
            if "chat judge" in names:
                text = path.read_text(encoding="utf-8")
                path.write_text(text.replace('"P@2"', '"P@2", "ClaimRecall@2"'), encoding="utf-8")
            commands = [("check", path), ("run", path, "--results", folder / "out"),
                        ("cache", "verify", path)]  # fmt: skip
            if "vectors" in names:  # a place without any is refused
                commands.insert(0, ("embed", path, "--to", os.environ[f"D{list(DOORS).index('vectors')}_VECTORS"]))
            if fault == "works" and number == 0:
                commands.append(("reproduce", folder / "out" / "small", "--trust"))
            for words in commands:
                code, text = said_by(*words)
                printed += f"$ {words[0]} of part {number}: exit {code}\n{text}"
    files = {file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    return fault, printed, files


@pytest.mark.parametrize("name", DOORS)
def test_what_a_variable_stands_for_is_seen_nowhere(traces, name):
    _, printed, files = traces
    own = canary(name)
    leaking = [f"printed: {line}" for line in printed.splitlines() if own in line]
    for path, raw in files.items():
        place = raw.find(own.encode())
        if place >= 0:
            leaking.append(f"{path}: {raw[max(0, place - 40) : place + 60]!r}")
    assert not leaking, "\n".join(leaking)


def test_the_keys_that_the_dialects_ask_for_are_seen_nowhere(traces):
    _, printed, files = traces
    for key in (KEY, AWS_ID):
        assert key not in printed
        assert [path for path, raw in files.items() if key.encode() in raw] == []


def test_every_door_was_opened(traces):
    fault, printed, files = traces
    assert "Traceback" not in printed, printed
    codes = re.findall(r"\$ (?:run|reproduce) of part (\d): exit (\d)", printed)
    if fault == "works":
        assert codes == [("0", "0"), ("0", "0"), ("1", "0"), ("2", "0")], printed
    else:
        assert codes == [("0", "3"), ("1", "0"), ("2", "0")]
        manifest = json.loads(next(raw for path, raw in files.items() if path.match("part0/out/small/manifest.json")))
        asked = {f"door{i}" for i, name in enumerate(DOORS) if DOORS[name][0] is not None and name not in ALONE}
        assert {name for name, facts in manifest["retrievers"].items() if facts["error"]} == asked
