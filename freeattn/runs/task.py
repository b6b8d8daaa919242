"""A task: a name, a function and its arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from freeattn.errors import InputError
from freeattn.runs.values import Result, canonical, plain

__all__ = ["Task"]


@final
@dataclass(frozen=True, eq=False)
class Task:
    """One call whose result is worth keeping: function(*arguments).

    Attributes:
        key: plain values that say everything the result depends on: the form of a specification, a seed, the name of a
            statistic. Two tasks with the same key and function are one task.
        function: a function at the top level of a module, which other processes can import; returns a dict of plain
            values and float64 arrays.
        arguments: what it is called with; they must pickle, and follow from the key.
        identity: canonical text of key and function, by which results are kept.

    Raises:
        InputError: for a key that is not plain or not finite, or a function that other processes cannot import.
    """

    key: Mapping[str, Any]
    function: Callable[..., Result]
    arguments: tuple[Any, ...] = ()
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.key, Mapping):
            raise InputError("key", self.key, "a mapping of names to plain values")
        key = plain("key", self.key)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "arguments", tuple(self.arguments))
        place = _place(self.function)
        try:
            identity = canonical({"function": place, "key": key})
        except ValueError:
            raise InputError("key", key, "finite numbers") from None
        object.__setattr__(self, "identity", identity)

    def __str__(self) -> str:
        return canonical(self.key)


def _place(function: object) -> str:
    """module:name of a function that can be found there again."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function or not callable(function):
        raise InputError("function", function, "a function at the top level of a module (not a lambda or a closure)")
    return f"{_module_name(str(module))}:{name}"


def _module_name(module: str) -> str:
    """The name of a module; of the script that runs, the name by which another one would import it."""
    main = sys.modules.get(module)
    if module != "__main__" or main is None:
        return module
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec.name if spec is not None else Path(file).stem if file else module
