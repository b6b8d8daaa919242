"""`sample` and `verify` of anything that has a law: a layer, or an expression in letters."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from freeattn.errors import InputError
from freeattn.evidence import sampling
from freeattn.evidence import verify as layers
from freeattn.evidence.compare import ComparableLaw
from freeattn.evidence.sampling import Sample
from freeattn.evidence.verify import Verification
from freeattn.evidence.weights import Matrix
from freeattn.evidence.word_verification import WordsLaw, WordVerification, verify_words
from freeattn.evidence.words import sample_words
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.runs import Progress, Store

__all__ = ["sample", "verify"]


@overload
def sample(
    model: Attention, seed: int | np.random.SeedSequence = ..., *, sizes: None = ..., of: str = ...
) -> Sample: ...


@overload
def sample(
    model: Expression, seed: int | np.random.SeedSequence = ..., *, sizes: Mapping[Any, Any] | None = ..., of: str = ...
) -> Matrix: ...


def sample(
    model: Attention | Expression, seed: int | np.random.SeedSequence = 0, *, sizes: Mapping[Any, Any] | None = None,
    of: str = "gram",
) -> Sample | Matrix:
    """One draw of a layer (`sampling.sample`), or of the letters of an expression (`words.sample_words`).

    Args:
        model: an `Attention` or an expression in letters.
        seed: the same seed gives the same numbers on the same machine.
        sizes: for expressions, a number for every space, family of copies and symbol that has none yet.
        of: for expressions, "gram", "cogram" or "self-adjoint".

    Raises:
        InputError: for what cannot be drawn.
    """
    if isinstance(model, Expression):
        return sample_words(model, sizes, seed, of)
    _check_layer(model, sizes, of)
    return sampling.sample(model, seed)


@overload
def verify(
    model: Attention, draws: int = ..., seed: int = ..., law: ComparableLaw | None = ...,
    progress: Progress | None = ..., *, sizes: None = ..., of: str = ..., executor: Executor | None = ...,
    workers: int | None = ..., store: Store | str | Path | None = ..., finite_size: bool = ...,
) -> Verification: ...


@overload
def verify(
    model: Expression, draws: int = ..., seed: int = ..., law: WordsLaw | None = ..., progress: Progress | None = ...,
    *, sizes: Mapping[Any, Any] | None = ..., of: str = ..., executor: Executor | None = ...,
    workers: int | None = ..., store: Store | str | Path | None = ..., finite_size: Literal[False] = ...,
) -> WordVerification: ...


def verify(
    model: Attention | Expression, draws: int = 10, seed: int = 0, law: Any = None, progress: Progress | None = None,
    *, sizes: Mapping[Any, Any] | None = None, of: str = "gram", executor: Executor | None = None,
    workers: int | None = 1, store: Store | str | Path | None = None, finite_size: bool = False,
) -> Verification | WordVerification:
    """Simulate a layer or an expression and compare with its law: a report with intervals and a verdict.

    Args:
        model: an `Attention` (see `evidence.verify`) or an expression in letters (see `evidence.word_verification`).
        draws, seed: how many independent draws, from which seed.
        law: what to compare with; default: the law of the model.
        progress: called as progress(done, draws) after each draw.
        sizes, of: for expressions, as in `sample`.
        executor: any `concurrent.futures.Executor` that makes the draws.
        workers: number of processes when there is no executor; 1 is this process, None all available cores.
        store: a file (`Store` or its path) that keeps each draw when it is finished; draws that it has are not made
            again, and more draws go on from there. The numbers depend on the seed alone, not on these three.
        finite_size: for an `Attention`, compare with the law at finite size and, next to it, with the limit.

    Raises:
        InputError: for what cannot be drawn.
    """
    if isinstance(model, Expression):
        if finite_size:
            raise InputError("finite_size", finite_size, "False, unless the model is an Attention")
        return verify_words(
            model, sizes, draws, seed, of, law, progress, executor=executor, workers=workers, store=store
        )
    _check_layer(model, sizes, of)
    return layers.verify(
        model, draws, seed, law, progress, executor=executor, workers=workers, store=store, finite_size=finite_size
    )


def _check_layer(model: object, sizes: object, of: str) -> None:
    if not isinstance(model, Attention):
        raise InputError(
            "model", model, "an Attention, or an expression in letters (fa.verify also takes modules of torch)"
        )
    if sizes is not None:
        raise InputError("sizes", sizes, "nothing for an Attention, which has its sizes; spec.replace(…) changes them")
    if of != "gram":
        raise InputError("of", of, '"gram" for an Attention')
