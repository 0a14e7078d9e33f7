"""A model on this machine, loaded with sentence-transformers.

What its encoders and rerankers share: options, loading at first use, threads and the
calls of one request. `weights.py` finds the files, `text_limits.py` says by them how
texts are read; subclasses are in `encoders/local_encoder.py` and
`rerankers/local_rerankers.py`.
"""

import atexit
import importlib.util
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from retrievers.embedded import Role
from retrievers.errors import BackendError, InputError, Problem, install_extras
from retrievers.facts import Fact, ModelFacts
from retrievers.identity import fingerprint
from retrievers.local import text_limits
from retrievers.local.model_class import ModelClass, is_trained_as
from retrievers.local.weights import (
    OFFLINE_MODEL,
    Weights,
    explain_load_errors,
    hub_problem,
)
from retrievers.meter import Stop
from retrievers.model import Model
from retrievers.options.placeholders import expand
from retrievers.options.tables import Configured, PositiveInt, TextOrObject
from retrievers.texts.token_estimate import Counts

Dtype = Literal["float32", "float16", "bfloat16"]
ModelBackend = Literal["torch", "onnx"]
TextOrPair = TypeVar("TextOrPair", str, tuple[str, str])

MAX_MODEL_THREADS = 8
"""Calls at once on a processor, at most: more would wait for one another in Python."""
MAX_CALL_TOKENS = 2048
"""Tokens, padding included, of one call on a processor: what passes from layer to layer
stays in its cache."""
MAX_FAILURE_CHARACTERS = 300
"""Characters of a library's error that a message repeats."""
ORGANIZATIONS: Mapping[str, str] = {
    "SentenceTransformer": "sentence-transformers",
    "CrossEncoder": "cross-encoder",
    "SparseEncoder": "sparse-encoder",
}
"""Class of sentence-transformers -> whose model a short name is, as in the library."""
log = logging.getLogger(__name__)


class DevicePool(NamedTuple):
    """The library's pool of devices, as arguments of a call."""

    pool: Any
    chunk_size: int
    """Texts that one device is given at a time."""


class LoadedModel(NamedTuple):
    """A loaded model, and how it is called."""

    model: Any
    threads: int
    """Calls at once, at most."""
    cores: int
    """The cores that torch uses by itself for one call."""
    workers: DevicePool | None
    """The devices that share the calls; None for a single device."""
    tokenizer: Any
    """The model's own, or a copy of it that no call changes."""


class TokenCounts(NamedTuple):
    """Tokens of some texts, or pairs, as a model reads them."""

    read: Counts
    truncated: Counts
    """Tokens beyond the model's limit."""


class LocalModel(Configured, Model):
    """A model on this machine, which is loaded at its first use."""

    expands: ClassVar[bool] = True
    class_name: ClassVar[ModelClass]
    """The class of sentence-transformers that its models are trained as."""
    kind: ClassVar[str]
    table_name: ClassVar[str] = "encoder"
    """The table of the experiment with the options."""
    threaded: ClassVar[bool] = True
    """Whether several threads may call one model.

    Its tokenizer is then set up once, in the same way for all texts."""

    positional_option = "model"
    model: TextOrObject
    """A folder, or a name of the hub."""
    revision: str = ""
    """A commit, tag or branch of the hub; without one, what is on this machine, else
    the newest."""
    device: str = "auto"
    """"cpu", "cuda:1", several with commas between, or "auto": the best there is."""
    dtype: Dtype = "float32"
    """Numbers inside the model; bfloat16 is faster on processors that have it."""
    batch_size: PositiveInt = 32
    """Texts, or pairs, per request and device."""
    backend: ModelBackend = "torch"
    """"torch", or "onnx" (needs optimum with onnxruntime)."""
    trust_remote_code: bool = False
    """Run code that comes with the model."""

    def model_post_init(self, _: object) -> None:
        """Check the model's files, if they are on this machine.

        Raises:
            InputError: they are of another type of model.
        """
        self._check_trained()

    @cached_property
    def weights(self) -> Weights:
        """The source of its weights."""
        return Weights(
            self.model,
            self.revision,
            organization=ORGANIZATIONS.get(self.class_name, ""),
        )

    @property
    def _devices(self) -> list[str]:
        return [device.strip() for device in expand(self.device).split(",")]

    @property
    def request_size(self) -> int:
        """Texts, or pairs, of one request."""
        return self.batch_size * len(self._devices)

    def _fingerprint_of(self, **options: object) -> str:
        """Return all that changes a result: weights, dtype, backend, and options."""
        return fingerprint(
            self.kind,
            self.weights.name,
            weights=self.weights.revision,
            dtype=self.dtype,
            backend=self.backend,
            **options,
        )

    @property
    def concurrency(self) -> int:
        """Requests at once: several on a processor, else one; loads the model."""
        return self._loaded.threads

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in memory."""
        return "_loaded" in self.__dict__

    def load(self) -> None:
        """Import the library, and load the weights."""
        _ = self._loaded

    @property
    def runs_here(self) -> bool:
        """Whether requests stay on this machine."""
        return True

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine: the fingerprint needs no network."""
        return self.weights.at_hand

    def check(self) -> None:
        """Raise InputError if the model is not here and cannot be downloaded.

        Also if the library that loads it is not installed.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            extra = "offline" if self.weights.model == OFFLINE_MODEL else "local"
            problem = "needs the package sentence-transformers"
            raise InputError(Problem("model", problem, install_extras(extra)))
        reason = "" if self.at_hand else hub_problem()
        if reason:
            problem = f"{self.weights.model} is not on this machine, and {reason}"
            remedy = (
                "check the spelling, which only the hub knows; "
                "download it where there is a network, or name a folder"
            )
            raise InputError(Problem("model", problem, remedy))

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records: the model, and the source of its weights."""
        settings = (Fact("dtype", self.dtype), Fact("backend", self.backend))
        return replace(self.weights.facts, settings=settings)

    def _class(self) -> ModelClass:
        """Return the class of sentence-transformers that loads the model."""
        return self.class_name

    @cached_property
    def _loaded(self) -> LoadedModel:
        """The loaded model."""
        import torch

        model = self.weights.model_object
        if model is None:
            log.info("loading %s", self.weights.name)
            with explain_load_errors(self.weights.name_as_written):
                model = self._load()
        model.eval()  # a user's may still be in training, where answers are random
        # The files of a model of the hub are on this machine only now.
        self._check_trained()
        cores = torch.get_num_threads()
        tokenizer = text_limits.uncut_tokenizer(model)
        if len(self._devices) > 1:
            pool = model.start_multi_process_pool(self._devices)
            atexit.register(model.stop_multi_process_pool, pool)
            workers = DevicePool(pool, self.batch_size)
            return LoadedModel(model, 1, cores, workers, tokenizer)
        threads = 1
        if self._is_thread_safe(model):
            self._warm_up(model)
            threads = min(cores, MAX_MODEL_THREADS)
        return LoadedModel(model, threads, cores, None, tokenizer)

    def _is_thread_safe(self, model: Any) -> bool:
        """Return whether several threads may call a loaded model.

        onnx has threads of its own, and a model's own code may keep state between
        calls.
        """
        if not self.threaded or self.backend == "onnx" or self.trust_remote_code:
            return False
        is_on_processor: bool = model.device.type == "cpu"
        return is_on_processor

    @abstractmethod
    def _warm_up(self, model: Any) -> None:
        """Call the model once in each way.

        Its tokenizer is then set up before several threads use it.
        """

    def _load(self) -> Any:
        """Load the model with sentence-transformers."""
        has_onnx = all(map(importlib.util.find_spec, ("optimum", "onnxruntime")))
        if self.backend == "onnx" and not has_onnx:
            remedy = "pip install 'sentence-transformers[onnx]'"
            raise InputError(Problem("backend", "onnx is not installed", remedy))
        transformers_logging: Any = importlib.import_module(
            "transformers.utils.logging"
        )
        transformers_logging.disable_progress_bar()
        library: Any = importlib.import_module("sentence_transformers")
        model_class = getattr(library, self._class())
        uses_one_device = len(self._devices) == 1 and self._devices != ["auto"]
        options: dict[str, Any] = {}
        if self.backend == "torch":
            options["model_kwargs"] = {"dtype": self.dtype}
        return model_class(
            str(self.weights.folder or self.weights.model),
            device=self._devices[0] if uses_one_device else None,
            trust_remote_code=self.trust_remote_code,
            revision=None if self.weights.folder else self.weights.revision,
            backend=self.backend,
            **options,
        )

    def _count_read(
        self, texts: Sequence[TextOrPair], role: Role = "document"
    ) -> TokenCounts:
        """Return the tokens that the loaded model reads of texts, or pairs.

        They are counted by the model's files, or else by its own tokenizer. Tokens that
        fill a text up count as read.
        """
        reading = self._reading(role)
        all_tokens = text_limits.count_tokens(
            reading.tokenizer, texts, special=reading.adds_special_tokens
        )
        read = np.clip(all_tokens, reading.min_tokens, reading.limit)
        return TokenCounts(read, truncated=np.maximum(all_tokens - read, 0))

    def _reading(self, role: Role) -> text_limits.RoleReading:
        """Return how the loaded model reads texts: by its files, or else by itself."""
        folder = self.weights.snapshot
        if folder is not None:
            reading = text_limits.reading_of_role(folder, role)
            if reading.tokenizer is not None:
                return reading
        loaded = self._loaded
        return text_limits.loaded_reading(loaded.model, loaded.tokenizer, role)

    def _run(
        self,
        texts: Sequence[TextOrPair],
        tokens: Counts,
        call: Callable[..., Sequence[Any]],
        stopped: Stop | None = None,
    ) -> list[Any]:
        """Return the model's row for each text, or pair, of one request, in order.

        On a processor they are divided into calls of similar length, each of at most
        MAX_CALL_TOKENS or one text, which takes 0.85 of the time of one call. Elsewhere
        it is one call; and the rows of either are in the order of the texts.

        Args:
            texts: the texts, or pairs.
            tokens: the tokens of each, or about as many.
            call: the library's function: takes a list, `batch_size` and arguments for
                a pool, and returns a row for each.
            stopped: checked before each call.

        Raises:
            BackendError: the run was interrupted, the memory was short, or an operation
                of torch failed.
        """
        import torch

        loaded = self._loaded
        is_divided = loaded.model.device.type == "cpu" and not loaded.workers
        longest_first = np.argsort(-tokens, kind="stable").tolist()
        rows: list[Any] = []
        # A text alone, such as a query that is timed, has all cores; beside a call of
        # several texts, other threads make calls.
        call_cores = loaded.cores
        if len(texts) > 1:
            call_cores = max(1, loaded.cores // loaded.threads)
        torch.set_num_threads(call_cores)
        try:
            while len(rows) < len(texts):
                if stopped is not None and stopped.interrupted:
                    raise BackendError("stopped, since the run was interrupted")
                positions = longest_first
                if is_divided:
                    positions = _next_call(longest_first[len(rows) :], tokens)
                new_rows = call(
                    [texts[i] for i in positions],
                    batch_size=min(len(positions), self.batch_size),
                    **(loaded.workers._asdict() if loaded.workers else {}),
                )
                rows.extend(new_rows)
        except (RuntimeError, IndexError) as failure:
            # torch raises them if memory is short, or an operation failed.
            first_line = " ".join(str(failure).strip().splitlines()[:1])
            raise BackendError(
                f"{self.weights.name}: {first_line[:MAX_FAILURE_CHARACTERS]} "
                "(a smaller batch_size may help)"
            ) from None
        finally:
            # New threads begin with the number that was set last.
            torch.set_num_threads(loaded.cores)
        return [rows[i] for i in np.argsort(longest_first).tolist()]

    def _check_trained(self) -> None:
        """Raise InputError if the model's files are of another type of model."""
        folder = self.weights.snapshot
        if folder is None or is_trained_as(folder, self.class_name):
            return
        reason = "layers with random weights would be put on top of it"
        if self.class_name == "SentenceTransformer":
            reason = (
                "it scores pairs, as a reranker does, "
                "and its numbers of single texts mean nothing"
            )
        problem = f"{self.weights.name_as_written} is not a {self.class_name}: {reason}"
        remedy = f"name a model that was trained as a {self.class_name}"
        raise InputError(Problem("model", problem, remedy))


def _next_call(positions: list[int], tokens: Counts) -> list[int]:
    """Return the first positions that fit into one call: at least the first.

    Args:
        positions: positions of texts in `tokens`, those of the longest first; a call
            pads all of its texts to the first.
        tokens: the tokens of each text.
    """
    longest = max(1, int(tokens[positions[0]]))
    return positions[: max(1, MAX_CALL_TOKENS // longest)]
