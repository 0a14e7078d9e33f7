"""A function of the user that embeds texts."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from retrievers.embedded import DenseVectors, Embedded, Role
from retrievers.errors import BackendError, InputError, Problem
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
"""What functions and objects of this process have made, for as long as each of them lives, by digest of its weights."""


class PythonEncoder(Configured, Encoder):
    """Embeds with a function of texts, or of texts and their role, that returns a row for each text.

    An object is asked by its `encode_query` and `encode_document`, else by its `encode`. What it makes is kept for as
    long as it lives; on disk only under a name that says which version it is.
    """

    positional_option = "call"
    call: TextOrObject
    """"package.module:function", found as Python finds modules, the working directory included."""
    cache: str = ""
    """The name of this version of it, under which vectors are kept for later runs; left out, they are not."""
    batch_size: PositiveInt = 256
    """Texts a call, at most."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Take the function or the object, or its name; nothing is imported before it is asked."""
        if given and not isinstance(given[0], str):
            given = (NamedObject.wrap(given[0]),)
        super().__init__(*given, **options)

    @property
    def fingerprint(self) -> str:
        """The name of its version."""
        return fingerprint("python", self.cache or self.call)

    @property
    def is_cacheable(self) -> bool:
        """Whether a name says which version this is."""
        return bool(self.cache)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What is called, and which version of it."""
        return {"call": self.call, **({"version": self.cache} if self.cache else {})}

    @property
    def price(self) -> Price | None:
        """Not known: a function may ask any service."""
        return None

    def check(self) -> None:
        """Import the function: the code of its module runs."""
        self._function("document")

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Call the function on the texts that it has not embedded yet.

        Raises:
            BackendError: it raised an exception, or did not return a row of numbers for each text.
        """
        made = self._made
        names = [
            (
                role,
                blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(),
            )
            for text in texts
        ]
        if missing := [
            i for i, name in enumerate(names) if name not in made or len(texts) == 1
        ]:  # one is timed
            rows = self._called([texts[i] for i in missing], role)
            made.update(zip((names[i] for i in missing), rows, strict=True))
            call.meter.count(calls=1)
        sizes = sorted({len(made[name]) for name in names})
        if len(sizes) > 1:
            raise BackendError(
                f"{self.call} gave vectors of {sizes[0]} and of {sizes[-1]} numbers"
            )
        return Embedded(
            np.stack([made[name] for name in names]),
            *np.zeros((2, len(texts)), dtype=np.int64),
        )

    @cached_property
    def _made(self) -> VectorsByText:
        """Where this object's vectors are kept; those of one that cannot be told from others, for this run alone."""
        found = resolve_callable(self.call)
        state = model_digest(found) if hasattr(found, "state_dict") else ""
        try:
            return PROCESS_VECTORS.setdefault(found, {}).setdefault(state, {})
        except TypeError:
            return {}

    def _called(self, texts: list[str], role: Role) -> DenseVectors:
        with wrap_user_errors((self.call,)):
            returned = self._function(role)(texts)
            on_a_device = hasattr(
                returned, "detach"
            )  # a tensor of torch, on any device
            numbers = np.asarray(
                returned.detach().cpu().float() if on_a_device else returned
            )
            vectors = numbers.astype(
                np.float32
            )  # a copy: the function may write into its array again
        if vectors.ndim != 2 or len(vectors) != len(texts):
            what = f"returned an array of shape {vectors.shape} for {len(texts)} texts"
            raise BackendError(
                f"{self.call} {what}: it has to be ({len(texts)}, dimensions), a row for each text"
            )
        return vectors

    def _function(self, role: Role) -> Callable[[list[str]], Any]:
        """What embeds texts of a role."""
        found = resolve_callable(self.call)
        for name in (f"encode_{role}", "encode"):
            if callable(method := getattr(found, name, None)):
                with_role = name == "encode" and "prompt_type" in _parameters(
                    method
                )  # as models of MTEB are asked
                return partial(method, prompt_type=role) if with_role else method
        if not callable(found):
            what = f"{self.call!r} is not a function, and has no encode"
            raise InputError(
                Problem(
                    "call", what, "give a function of texts that returns a row for each"
                )
            )
        named = (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        )
        second = [one for one in _parameters(found).values() if one.kind in named][1:2]
        two = any(
            one.name == "role" or one.default is inspect.Parameter.empty
            for one in second
        )
        return (lambda texts: found(texts, role)) if two else found


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # what is written in C may not say
        return {}
