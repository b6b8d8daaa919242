"""Errors of freeattn: each says what was asked, what was found and what to do.

Every error that the package raises on purpose derives from `FreeattnError`; messages are one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BranchError",
    "CertificationError",
    "ConvergenceError",
    "FreeattnError",
    "InputError",
    "MissingExtraError",
    "NotCoveredError",
    "TaskError",
    "did_you_mean",
]


class FreeattnError(Exception):
    """Base of all errors raised on purpose by freeattn."""


class InputError(FreeattnError, ValueError):
    """A field has a value that is not allowed.

    Attributes: `field` (name of the argument), `value` (what was given), `allowed` (what would be accepted), and
    `source`: the file that the value is from, "" where the caller gave it.
    """

    def __init__(self, field: str, value: object, allowed: str, source: str = "") -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.source = source
        super().__init__(self.sentence(repr(value)))

    def sentence(self, value: str) -> str:
        """The message, with the value as it is to be shown."""
        where = f"{self.source}: " if self.source else ""
        return f"{where}{self.field} = {value} is not allowed; expected {self.allowed}"

    def __reduce__(self) -> tuple[type, tuple[str, object, str, str]]:
        return type(self), (self.field, self.value, self.allowed, self.source)


class NotCoveredError(FreeattnError):
    """The request is well formed, but no limiting law is known or implemented for it."""


class ConvergenceError(FreeattnError):
    """A solver did not reach its tolerance; `residual` and `tolerance` are relative, `advice` says what to try.

    Either is None where nothing was measured: a test that only passes or fails, a solver that broke off.
    """

    def __init__(self, what: str, residual: float | None, tolerance: float | None, advice: str) -> None:
        self.what = what
        self.residual = residual
        self.tolerance = tolerance
        self.advice = advice
        numbers = (("relative residual", residual), ("tolerance", tolerance))
        measured = ", ".join(f"{name} {number:.3g}" for name, number in numbers if number is not None)
        super().__init__(f"{what} did not converge{f': {measured}' if measured else ''}; {advice}")

    def __reduce__(self) -> tuple[type, tuple[str, float | None, float | None, str]]:
        return type(self), (self.what, self.residual, self.tolerance, self.advice)


class BranchError(FreeattnError):
    """A root was found that is not the value of the physical branch; it is never returned as a number."""


class CertificationError(FreeattnError):
    """A proof did not succeed: nothing is claimed then, and no wider bound is given instead."""


class MissingExtraError(FreeattnError, ImportError):
    """An optional dependency is needed; the message names the extra to install."""

    def __init__(self, purpose: str, extra: str) -> None:
        self.purpose = purpose
        self.extra = extra
        super().__init__(f'{purpose} needs the extra "{extra}": pip install "freeattn[{extra}]"')

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.purpose, self.extra)


class TaskError(FreeattnError):
    """A task of a run failed: `key` names it, `reason` says why and what of the run is kept."""

    def __init__(self, key: dict[str, object], reason: str) -> None:
        self.key = key
        self.reason = reason
        super().__init__(f"task {key} failed: {reason}")

    def __reduce__(self) -> tuple[type, tuple[dict[str, object], str]]:
        return type(self), (self.key, self.reason)


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """ " (did you mean n_heads?)" for a name that is like one of `names`; "" for others."""
    near = difflib.get_close_matches(str(name), list(names), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
