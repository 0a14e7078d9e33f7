"""A model on this machine."""

import atexit
import importlib.util
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from retrievers.embedded import Role
from retrievers.errors import BackendError, InputError, Problem
from retrievers.identity import fingerprint
from retrievers.local import text_limits
from retrievers.local.weights import Weights, explain_load_errors
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
"""Tokens, padding included, that a processor is given at once: what passes from layer to layer stays in its cache."""
log = logging.getLogger(__name__)


class LoadedModel(NamedTuple):
    """A model at work."""

    model: Any
    threads: int
    """Calls that may be under way at once."""
    cores: int
    workers: Mapping[str, Any]
    """Arguments of a call that hand it to the library's pool of devices; none for a single device."""
    tokenizer: Any
    """The model's own, or a copy of it that no call sets up in another way."""


class TokenCounts(NamedTuple):
    """Tokens of some texts, or pairs, as a model reads them."""

    read: Counts
    truncated: Counts
    """Tokens beyond the model's limit."""


class LocalModel(Configured, Model):
    """What encoders and rerankers share that run a model on this machine: it is loaded at its first use."""

    expands: ClassVar[bool] = True
    library: ClassVar[text_limits.ModelClass]
    kind: ClassVar[str]
    table_name: ClassVar[str] = "encoder"
    """The table of the experiment that holds the options."""
    threaded: ClassVar[bool] = True
    """Whether several threads may call one model: its tokenizer is set up once, in the same way for all texts."""

    positional_option = "model"
    model: TextOrObject
    """A folder, or a name of the hub."""
    revision: str = ""
    """A commit, tag or branch of the hub; without one, what is on this machine, else the newest."""
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
        """Describe the model; raises InputError where its files are here and are of another sort of model."""
        self._check_trained()

    @cached_property
    def weights(self) -> Weights:
        """Where its weights come from."""
        return Weights(self.model, self.revision)

    @property
    def _devices(self) -> list[str]:
        return [name.strip() for name in expand(self.device).split(",")]

    @property
    def request_size(self) -> int:
        """Texts, or pairs, of one request."""
        return self.batch_size * len(self._devices)

    def _named(self, **parts: object) -> str:
        """The name of all that changes what comes out: the weights, dtype, backend, and the parts that are given."""
        how = {
            "weights": self.weights.revision,
            "dtype": self.dtype,
            "backend": self.backend,
        }
        return fingerprint(self.kind, self.weights.name, **how, **parts)

    @property
    def concurrency(self) -> int:
        """Requests at once: several on a processor, else one; loads the model."""
        return self._loaded.threads

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine, so that the fingerprint needs no network."""
        return self.weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        return {**self.weights.provenance, "dtype": self.dtype, "backend": self.backend}

    def _class(self) -> text_limits.ModelClass:
        """The class of sentence-transformers that loads the model."""
        return self.library

    @cached_property
    def _loaded(self) -> LoadedModel:
        import torch

        model = self.weights.model_object
        if model is None:
            log.info("loading %s", self.weights.name)
            with explain_load_errors(self.weights.name_as_written):
                model = self._load()
        self._check_trained()  # of the hub's, the files are here now
        cores, tokenizer = torch.get_num_threads(), text_limits.uncut_tokenizer(model)
        if len(self._devices) > 1:
            pool = model.start_multi_process_pool(self._devices)
            atexit.register(model.stop_multi_process_pool, pool)
            return LoadedModel(
                model,
                1,
                cores,
                {"pool": pool, "chunk_size": self.batch_size},
                tokenizer,
            )
        # onnx has threads of its own, and code that comes with a model may keep things between calls.
        alone = (
            not self.threaded
            or self.backend == "onnx"
            or self.trust_remote_code
            or model.device.type != "cpu"
        )
        if not alone:
            self._set_up(model)
        return LoadedModel(
            model, 1 if alone else min(cores, MAX_MODEL_THREADS), cores, {}, tokenizer
        )

    @abstractmethod
    def _set_up(self, model: Any) -> None:
        """Call the model once in each way, so that its tokenizer is set up before several threads use it."""

    def _load(self) -> Any:
        if self.backend == "onnx" and importlib.util.find_spec("onnxruntime") is None:
            raise InputError(
                Problem(
                    "backend",
                    "onnx is not installed",
                    "pip install 'sentence-transformers[onnx]'",
                )
            )
        chatter: Any = importlib.import_module("transformers.utils.logging")
        chatter.disable_progress_bar()
        return getattr(importlib.import_module("sentence_transformers"), self._class())(
            str(self.weights.folder or self.weights.model),
            device=None
            if len(self._devices) > 1 or self._devices == ["auto"]
            else self._devices[0],
            trust_remote_code=self.trust_remote_code,
            revision=None if self.weights.folder else self.weights.revision,
            backend=self.backend,
            **(
                {"model_kwargs": {"dtype": self.dtype}}
                if self.backend == "torch"
                else {}
            ),
        ).eval()

    def _tokens(
        self, items: Sequence[TextOrPair], role: Role = "document"
    ) -> TokenCounts:
        """Count what the loaded model reads: by its files, else by its own tokenizer."""
        model, folder = self._loaded.model, self.weights.snapshot
        side = None if folder is None else text_limits.reading_of_role(folder, role)
        if side is None or side.tokenizer is None:
            limit = model.max_seq_length or text_limits.UNLIMITED_TOKENS
            side = text_limits.RoleReading(
                self._loaded.tokenizer,
                adds_special_tokens=True,
                limit=limit,
                min_tokens=0,
            )
        whole = text_limits.count_tokens(
            side.tokenizer, items, special=side.adds_special_tokens
        )
        read = np.clip(whole, side.min_tokens, side.limit)
        return TokenCounts(read, np.maximum(whole - read, 0))

    def _run(
        self,
        items: Sequence[TextOrPair],
        tokens: Counts,
        call: Callable[..., Sequence[Any]],
        stopped: Stop | None = None,
    ) -> list[Any]:
        """Run the model over the texts, or pairs, of one request and return what comes of each, in their order.

        On a processor they are given in calls of like length, up to CALL tokens: 0.85 of the time of one call.

        Args:
            items: of the request.
            tokens: of each.
            call: of the library: takes a list, `batch_size` and what hands it to a pool; returns a row for each.
            stopped: tells before each call whether the run was interrupted.

        Raises:
            BackendError: the run was interrupted, or the memory was short.
        """
        import torch

        model, threads, cores, workers, _ = self._loaded
        split = model.device.type == "cpu" and not workers
        order = np.argsort(-tokens, kind="stable").tolist()
        rows: list[Any] = []
        torch.set_num_threads(cores if len(items) == 1 else max(1, cores // threads))
        try:
            while len(rows) < len(items):
                if stopped is not None and stopped.interrupted:
                    raise BackendError("stopped, since the run was interrupted")
                longest = max(1, int(tokens[order[len(rows)]]))
                some = (
                    order[len(rows) : len(rows) + max(1, MAX_CALL_TOKENS // longest)]
                    if split
                    else order
                )
                rows.extend(
                    call(
                        [items[i] for i in some],
                        batch_size=min(len(some), self.batch_size),
                        **workers,
                    )
                )
        except (
            RuntimeError
        ) as failure:  # how torch says that memory is short, or that a kernel failed
            message = " ".join(str(failure).strip().splitlines()[:1])[:300]
            raise BackendError(
                f"{self.weights.name}: {message} (a smaller batch_size may help)"
            ) from None
        finally:
            torch.set_num_threads(cores)  # threads to come begin with what was set last
        return [rows[i] for i in np.argsort(order).tolist()]

    def _check_trained(self) -> None:
        folder = self.weights.snapshot
        if folder is not None and not text_limits.is_trained_as(folder, self.library):
            why = "layers with random weights would be put on top of it"
            if self.library == "SentenceTransformer":
                why = "it scores pairs, as a reranker does, and its numbers of single texts mean nothing"
            what = f"{self.weights.name_as_written} is not a {self.library}: {why}"
            raise InputError(
                Problem(
                    "model", what, f"name a model that was trained as a {self.library}"
                )
            )
