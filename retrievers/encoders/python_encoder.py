"""A function of the user that embeds texts."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, get_args
from weakref import WeakKeyDictionary

import numpy as np

from retrievers.embedded import DenseVectors, Embedded, Role
from retrievers.errors import BackendError, InputError, Problem
from retrievers.facts import ModelFacts
from retrievers.identity import fingerprint
from retrievers.local.weights import model_digest
from retrievers.meter import Call
from retrievers.model import Encoder
from retrievers.options.tables import Configured, PositiveInt, TextOrObject
from retrievers.options.user_code import NamedObject, resolve_callable, wrap_user_errors
from retrievers.prices import Price

VectorsByText = dict[tuple[Role, bytes], DenseVectors]
"""Vectors by role and digest of the text."""
PROCESS_VECTORS: WeakKeyDictionary[Any, dict[str, VectorsByText]] = WeakKeyDictionary()
"""The vectors that functions and objects of this process returned, by digest of their
weights; they are deleted with the function or object."""


class PythonEncoder(Configured, Encoder):
    """Embeds with a function of texts, or of texts and their role, that returns a row
    for each text.

    An object embeds with its `encode_query` and `encode_document`, or its `encode`.
    Vectors are kept as long as the function or object lives; on disk only under a name
    that identifies it and its version. An object that changed embeds again only if its
    `state_dict` shows it.
    """  # noqa: D205

    positional_option = "call"
    call: TextOrObject
    """"package.module:function", found as Python finds modules, the working directory
    included."""
    cache: str = ""
    """A name of this version of this function alone, under which its vectors are kept
    for later runs; left out, they are not."""
    batch_size: PositiveInt = 256
    """Texts a call, at most."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Set the function or the object, or its name; it is imported on first use."""
        if args and not isinstance(args[0], str):
            args = (NamedObject.wrap(args[0]),)
        super().__init__(*args, **options)

    @property
    def fingerprint(self) -> str:
        """The name of the version, without the call's: an object's name may change."""
        return fingerprint("python", self.cache or self.call)

    @property
    def is_cacheable(self) -> bool:
        """Whether a name identifies its version."""
        return bool(self.cache)

    @property
    def facts(self) -> ModelFacts:
        """The function, and its version."""
        return ModelFacts(call=self.call, version=self.cache)

    @property
    def price(self) -> Price | None:
        """Unknown: a function may use any service."""
        return None

    def check(self) -> None:
        """Import the function, or find those of both roles: code of its module runs."""
        for role in get_args(Role):
            self._embedding_function(role)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Call the function on the texts that it has not embedded yet.

        Raises:
            BackendError: it raised an exception, or did not return a row of numbers for
                each text, all of one length.
            InputError: it cannot be imported, or is no function.
        """
        vectors = self._process_vectors
        keys = [(role, _text_digest(text)) for text in texts]
        missing = [i for i, key in enumerate(keys) if key not in vectors]
        # A single text is a query that is timed: its vector is computed again.
        is_timed = len(texts) == 1
        if is_timed:
            missing = [0]
        if missing:
            rows = self._call_function([texts[i] for i in missing], role)
            for i, row in zip(missing, rows, strict=True):
                vectors[keys[i]] = row
            call.meter.count(calls=1)
        dimensions = sorted({len(vectors[key]) for key in keys})
        if len(dimensions) > 1:
            raise BackendError(
                f"{self.call} gave vectors of {dimensions[0]} and of {dimensions[-1]} "
                "numbers"
            )
        return Embedded(
            vectors=np.stack([vectors[key] for key in keys]),
            tokens=np.zeros(len(texts), dtype=np.int64),
            truncated_tokens=np.zeros(len(texts), dtype=np.int64),
        )

    @cached_property
    def _process_vectors(self) -> VectorsByText:
        """The vectors of this process.

        Those of an object that cannot be hashed, or referred to weakly, are kept for
        this encoder only.
        """
        target = resolve_callable(self.call)
        weights = model_digest(target) if hasattr(target, "state_dict") else ""
        try:
            return PROCESS_VECTORS.setdefault(target, {}).setdefault(weights, {})
        except TypeError:
            return {}

    def _call_function(self, texts: list[str], role: Role) -> DenseVectors:
        """Return the function's vectors of texts.

        Raises:
            BackendError: it raised an exception, or returned another shape.
        """
        with wrap_user_errors((self.call,)):
            returned = self._embedding_function(role)(texts)
            is_tensor = hasattr(returned, "detach")
            if is_tensor:
                returned = returned.detach().cpu().float()
        try:
            # A copy: the function may write into its array again.
            vectors = _as_float32(returned)
        except (TypeError, ValueError, OverflowError):
            raise BackendError(
                f"{self.call} returned no array of numbers: a model returns a vector "
                "for each text, all of one length; a search, which returns document "
                "ids, is Function(search)"
            ) from None
        is_matrix = vectors.ndim == 2 and len(vectors) == len(texts)
        if not is_matrix or not vectors.shape[1]:
            raise BackendError(
                f"{self.call} returned an array of shape {vectors.shape} for "
                f"{len(texts)} texts: it has to be ({len(texts)}, dimensions), "
                "a row for each text"
            )
        return vectors

    def _embedding_function(self, role: Role) -> Callable[[list[str]], Any]:
        """Return the function that embeds texts of a role.

        Raises:
            InputError: the object has no such function.
        """
        target = resolve_callable(self.call)
        role_method = getattr(target, f"encode_{role}", None)
        if callable(role_method):
            return partial(role_method)
        encode = getattr(target, "encode", None)
        if callable(encode):
            takes_prompt_type = "prompt_type" in _parameters(encode)
            if takes_prompt_type:  # as models of MTEB
                return partial(encode, prompt_type=role)
            return partial(encode)
        if not callable(target):
            problem = f"{self.call!r} is not a function, and has no encode"
            remedy = "give a function of texts that returns a row for each"
            raise InputError(Problem("call", problem, remedy))
        if _takes_role(target):
            return lambda texts: target(texts, role)
        return partial(target)


def _as_float32(returned: Any) -> DenseVectors:
    """Return a copy as 32-bit floats; numbers too large for them become infinite."""
    array = np.asarray(returned)
    if np.iscomplexobj(array):
        raise TypeError("complex numbers are no vectors")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _text_digest(text: str) -> bytes:
    encoded_text = text.encode("utf-8", "surrogatepass")
    return blake2b(encoded_text, digest_size=16).digest()


def _takes_role(function: Callable[..., Any]) -> bool:
    """Return whether a function has a second parameter that is required, or `role`."""
    positional_kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    positional = [
        parameter
        for parameter in _parameters(function).values()
        if parameter.kind in positional_kinds
    ]
    if len(positional) < 2:
        return False
    second = positional[1]
    return second.name == "role" or second.default is inspect.Parameter.empty


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return a function's parameters; {} for one in C that does not show them."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
