"""Names for everything that changes a vector or a score, short enough to name a collection."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from pathlib import Path
from typing import Any

from retrievers.remote.redaction import as_written


def fingerprint(kind: str, model: str, **parts: object) -> str:
    """Return `<kind>-<model>-<16 hex digits>`: the digits hash the kind, the model and every part.

    Only letters, digits, `.`, `_` and `-`, at most 80 characters. What `${NAME}` stands for is hashed and not named.

    >>> fingerprint("hashing", "3-4 grams", dimensions=256)
    'hashing-3-4-grams-0a81ff12fb0165f4'
    """
    whole = json.dumps([kind, model, parts], sort_keys=True, ensure_ascii=False)
    digest = hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{kind}-{as_written(model)}").strip("-")[:60]
    return f"{readable}-{digest}"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 over a model's folder: every file's path and content, but for hidden files and *.md."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda p: p.relative_to(folder).as_posix()):
        relative = path.relative_to(folder)
        if path.is_file() and path.suffix != ".md" and not any(part.startswith(".") for part in relative.parts):
            whole.update(f"{relative.as_posix()}\0{file_digest(path)}\n".encode())
    return whole.hexdigest()


def model_digest(model: Any) -> str:
    """Return the SHA-256 of a loaded model of sentence-transformers: its layers, weights, prompts and tokenizer."""
    torch: Any = importlib.import_module("torch")
    settings = [getattr(model, name, None) for name in ("prompts", "default_prompt_name", "truncate_dim")]
    whole = hashlib.sha256(f"{type(model).__qualname__}\n{model}\n{settings}\n".encode())
    for name, tensor in sorted(model.state_dict().items()):
        whole.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        whole.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    tokenizer: Any = getattr(model, "tokenizer", None)
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(tokenizer, "to_str"):  # how it cuts and fills up texts changes as it is used
        kept = {
            key: part for key, part in json.loads(tokenizer.to_str()).items() if key not in ("truncation", "padding")
        }
        whole.update(json.dumps(kept, sort_keys=True).encode())
    return whole.hexdigest()
