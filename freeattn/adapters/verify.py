"""`verify` of everything that has a law: layers, expressions in letters, and modules of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Literal, TypeAlias, overload

from freeattn.adapters.torch_library import is_module
from freeattn.adapters.verify_module import ModuleVerification, verify_module
from freeattn.errors import InputError
from freeattn.evidence import simulate
from freeattn.evidence.compare import ComparableLaw
from freeattn.evidence.verify import Verification
from freeattn.evidence.word_verification import WordsLaw, WordVerification
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression

__all__ = ["verify"]

Progress: TypeAlias = Callable[[int, int], None]


@overload
def verify(
    model: Attention, draws: int | None = ..., seed: int = ..., law: ComparableLaw | None = ...,
    progress: Progress | None = ..., *, executor: Executor | None = ..., workers: int | None = ...,
    store: Any = ..., finite_size: bool = ...,
) -> Verification: ...


@overload
def verify(
    model: Expression, draws: int | None = ..., seed: int = ..., law: WordsLaw | None = ...,
    progress: Progress | None = ..., *, sizes: Mapping[Any, Any] | None = ..., of: str = ...,
    executor: Executor | None = ..., workers: int | None = ..., store: Any = ...,
    finite_size: Literal[False] = ...,
) -> WordVerification: ...


@overload
def verify(
    model: Any, draws: int | None = ..., seed: int = ..., *, progress: Progress | None = ...,
    n_tokens: int | None = ..., inputs: Any = ..., reset: str | None = ..., causal: bool | None = ...,
    rotary: bool | None = ...,
) -> ModuleVerification: ...


def verify(
    model: Any, draws: int | None = None, seed: int = 0, law: Any = None, progress: Progress | None = None, *,
    sizes: Mapping[Any, Any] | None = None, of: str | None = None, executor: Executor | None = None,
    workers: int | None = 1, store: Any = None, finite_size: bool = False,
    n_tokens: int | None = None, inputs: Any = None, reset: str | None = None, causal: bool | None = None,
    rotary: bool | None = None,
) -> Any:
    """Simulate a layer or an expression, or run a module, and compare with its law: intervals and a verdict.

    Args:
        model: an `Attention` (see `evidence.verify`), an expression in letters (see `evidence.word_verification`), or a
            module of torch or transformers (see `verify_module`).
        draws, seed: how many independent draws (default: 10 and, of a module, 5), from which seed.
        law: what to compare with; default: the law of the model. Not for a module.
        progress: called as progress(done, draws) after each draw.
        sizes, of: for expressions, as in `sample`.
        executor: any `concurrent.futures.Executor` that makes the draws of a layer or an expression.
        workers: number of processes when there is no executor; 1 is this process, None all available cores.
        store: a file (`Store` or its path) that keeps each draw when it is finished; draws that it has are not made
            again, and more draws go on from there. The numbers depend on the seed alone, not on these three.
        finite_size: for an `Attention`, compare with the law at finite size and, next to it, with the limit.
        n_tokens, inputs, reset, causal, rotary: for modules, as in `verify_module`.

    Raises:
        InputError: for what cannot be drawn, and for arguments of another kind of model.
        MissingExtraError, NotCoveredError: as `verify_module`.
    """
    count: dict[str, Any] = {} if draws is None else {"draws": draws}
    of_modules = {"n_tokens": n_tokens, "inputs": inputs, "reset": reset, "causal": causal, "rotary": rotary}
    given: dict[str, Any] = {name: value for name, value in of_modules.items() if value is not None}
    if is_module(model):
        optional = {"law": law, "sizes": sizes, "of": of, "executor": executor, "store": store}
        others = {name: value for name, value in optional.items() if value is not None}
        others |= {} if workers == 1 else {"workers": workers}  # None is all cores
        others |= {"finite_size": finite_size} if finite_size else {}
        _refuse(others, "nothing for a module")
        return verify_module(model, seed=seed, progress=progress, **count, **given)
    _refuse(given, "nothing, unless the model is a module of torch")
    count |= {"executor": executor, "workers": workers, "store": store, "finite_size": finite_size}
    simulated: Any = simulate.verify(
        model, seed=seed, law=law, progress=progress, sizes=sizes, of=of or "gram", **count
    )
    return simulated


def _refuse(given: Mapping[str, Any], allowed: str) -> None:
    for name, value in given.items():
        raise InputError(name, value, allowed)
