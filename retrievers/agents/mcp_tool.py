"""A search tool of a server of the Model Context Protocol.

Each query is one call; the hits are read out of its answer by paths or by a pattern.
`mcp_session.py` has the session, `asked_service.py` the cache and the requests at once.
"""

import hashlib
import importlib.util
import json
import shutil
from typing import Any

from retrievers.agents.mcp_session import (
    McpServer,
    McpSession,
    ToolAnswer,
    close_with,
)
from retrievers.asked_service import AskedService
from retrievers.errors import BackendError, InputError, Problem, require_package
from retrievers.facts import Origin, RetrieverFacts
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.options.placeholders import error_line, expand
from retrievers.query import Query
from retrievers.request_template import QUERY_PLACEHOLDER, fill_template
from retrievers.service_hits import (
    ServiceHits,
    check_ids,
    check_scores,
    compile_path,
    hits_in_order,
    search_path,
)
from retrievers.services.concurrency import run_request

_PATTERN_SECONDS = 10.0
"""Seconds of a pattern's search in one answer, at most."""


class McpTool(McpServer, AskedService):
    """Calls a search tool of an MCP server for each query, in one session per run, and
    reads ids, and scores where there are any, out of its answer.
    """  # noqa: D205

    tool: str
    """The name of the tool."""
    arguments: dict[str, Any]
    """Arguments of the tool. {query} and {depth} in their texts are replaced; a text
    that is only {depth} becomes a number."""
    hits: str = ""
    """A JMESPath to the list of hits, best first, in the structured content, or in the
    text where it is JSON."""
    id: str = "id"
    """A JMESPath in each hit to the document's id; "@" if the hit is the id."""
    score: str = ""
    """A JMESPath in each hit to its score; left out, their order counts."""
    pattern: str = ""
    """In place of hits: a regular expression whose group `id`, and `score` if it has
    one, are read wherever it matches the text."""
    _hits_path: Any = None
    _id_path: Any = None
    _score_path: Any = None
    _compiled_pattern: Any = None
    _request_digest: str = ""
    _session: McpSession | None = None

    def model_post_init(self, context: object) -> None:
        """Check the options; nothing is started or sent."""
        super().model_post_init(context)
        if QUERY_PLACEHOLDER not in json.dumps(self.arguments, default=list):
            problem = f"{QUERY_PLACEHOLDER} is missing"
            remedy = f'write {{ query = "{QUERY_PLACEHOLDER}" }}'
            raise InputError(Problem("arguments", problem, remedy))
        if bool(self.hits) == bool(self.pattern):
            problem = "needs a path to the hits, or a pattern"
            raise InputError(Problem("hits", problem, "write one of the two"))
        self._compile()
        self._request_digest = self._digest_request()

    def _compile(self) -> None:
        """Compile the paths, or the pattern."""
        if self.pattern:
            self._compiled_pattern = _compile_pattern(expand(self.pattern))
            return
        self._hits_path = compile_path("hits", expand(self.hits))
        self._id_path = compile_path("id", expand(self.id))
        if self.score:
            self._score_path = compile_path("score", expand(self.score))

    def _digest_request(self) -> str:
        """Return the digest of all that changes an answer.

        Environment and headers count with `${NAME}`: a key changes from day to day,
        answers do not.
        """
        parts = expand([self.command, self.url, self.tool, self.arguments])
        parts += expand([self.hits, self.id, self.score, self.pattern])
        parts += [self.env, self.headers and self.headers.as_table()]
        return hashlib.sha256(json.dumps(parts, default=list).encode()).hexdigest()

    @property
    def facts(self) -> RetrieverFacts:
        """The server, its tool, and the time of the oldest answer."""
        return RetrieverFacts(
            origin=Origin(
                server=self.server_name,
                tool=self.tool,
                answered_at=self._oldest_answer,
            )
        )

    def check(self) -> None:
        """Check that the SDK is installed and the command is found."""
        with require_package('kind = "mcp"', "mcp", "agents"):
            if importlib.util.find_spec("mcp") is None:
                raise ImportError
        if self.command and shutil.which(expand(self.command[0])) is None:
            problem = f"there is no program {self.command[0]!r}"
            remedy = "install it, or write its path"
            raise InputError(Problem("command", problem, remedy))

    def _fingerprint(self, depth: int) -> str:
        return fingerprint("mcp", self.tool, request=self._request_digest, depth=depth)

    def _open(self) -> None:
        self._opened_session()

    def _opened_session(self) -> McpSession:
        """Return the session of the run, created on first use."""
        if self._session is None:
            # A session that held this tool would keep it from being collected, and
            # with it the session from being closed.
            server_options = self.model_dump(include={*McpServer.model_fields})
            server = McpServer(**server_options)
            self._session = McpSession(server, self.tool, self.timeout)
            close_with(self, self._session)
        return self._session

    def _ask(self, query: Query, depth: int, call: Call) -> ServiceHits:
        """Return the hits of one call of the tool."""
        arguments = fill_template(expand(self.arguments), query.text, depth)
        request = self._opened_session().call(arguments)
        answer = run_request(request, call.stopped)
        call.meter.count(calls=1)
        location = f"{self.server_name}: query {query.id!r}"
        if self._compiled_pattern is None:
            return self._described_hits(answer, location)
        hits = self._matched_hits(answer.text, location)
        # Several lines that match may be of one document: that is no repetition.
        return hits.first_of_each(len(hits.ids))

    def _described_hits(self, answer: ToolAnswer, location: str) -> ServiceHits:
        """Return the hits that the paths find.

        Raises:
            BackendError: the answer is not as described.
        """
        content = answer.structured
        if content is None:
            content = _parse_text(answer.text, location)
        hits = search_path(self._hits_path, content, location)
        if not isinstance(hits, list):
            raise BackendError(
                f"{location}: `hits` finds no list in the answer: "
                f"{error_line(json.dumps(content))}"
            )
        found_ids = [search_path(self._id_path, hit, location) for hit in hits]
        doc_ids = check_ids(found_ids, "id", content, location)
        if self._score_path is None:
            return hits_in_order(doc_ids)
        found_scores = [search_path(self._score_path, hit, location) for hit in hits]
        scores = check_scores(found_scores, "score", len(doc_ids), location)
        return ServiceHits(doc_ids, scores)

    def _matched_hits(self, text: str, location: str) -> ServiceHits:
        """Return the hits that the pattern finds in a text.

        Raises:
            BackendError: a score is no number, or the pattern takes too long.
        """
        try:
            matches = list(
                self._compiled_pattern.finditer(text, timeout=_PATTERN_SECONDS)
            )
        except (TimeoutError, MemoryError):
            raise BackendError(
                f"{location}: `pattern` takes more than {_PATTERN_SECONDS:g} s, or too "
                f"much memory, in {len(text):,} characters; write a simpler one"
            ) from None
        found_ids = [match["id"] for match in matches]
        doc_ids = check_ids(found_ids, "pattern", text, location)
        if "score" not in self._compiled_pattern.groupindex:
            return hits_in_order(doc_ids)
        scores = [_number_in(match["score"]) for match in matches]
        checked = check_scores(scores, "pattern", len(doc_ids), location)
        return ServiceHits(doc_ids, checked)


def _compile_pattern(pattern: str) -> Any:
    """Return a compiled regular expression with a group `id`.

    Raises:
        InputError: it is not a regular expression with such a group.
    """
    import regex

    try:
        compiled = regex.compile(pattern, regex.MULTILINE)
    except (regex.error, RecursionError) as error:
        problem = f"{pattern!r} is not a regular expression: {error}"
        remedy = r"such as '^(?P<id>\S+\.md):'"
        raise InputError(Problem("pattern", problem, remedy)) from None
    if "id" not in compiled.groupindex:
        problem = f"{pattern!r} has no group `id`"
        raise InputError(Problem("pattern", problem, "write (?P<id>…) in it"))
    return compiled


def _parse_text(text: str, location: str) -> Any:
    """Return the JSON of an answer without structured content.

    Raises:
        BackendError: it is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BackendError(
            f"{location}: the answer has no structured content, and its text is not "
            f"JSON; read it with `pattern`: {error_line(text)}"
        ) from None


def _number_in(text: str | None) -> float | None:
    """Return the number in a text; None if there is none."""
    try:
        return float(text or "")
    except ValueError:
        return None
