"""Independent draws of a layer or of an expression, on any number of cores; finished ones can be kept in a store.

Draw i takes its numbers from SeedSequence(seed).spawn(draws)[i]: they depend on the seed and on i alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from freeattn.errors import FreeattnError, TaskError
from freeattn.evidence.sampling import Sample, sample
from freeattn.evidence.weights import Matrix, seed_sequence
from freeattn.evidence.words import sample_words
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.quantities import as_integer, encode
from freeattn.model.word_sizes import checked_sizes
from freeattn.runs import Progress, Result, Store, Task, run

__all__ = [
    "child_seed", "draw_layer", "draw_words", "layer_draws", "layer_task", "number_of_draws", "results_of",
    "task_of", "word_draws",
]


def number_of_draws(draws: Any, least: int) -> int:
    """A number of draws that was given.

    Raises:
        InputError: unless it is an integer of at least `least`.
    """
    allowed = {0: "a non-negative integer", 1: "a positive integer"}.get(least, f"an integer of at least {least}")
    return as_integer("draws", draws, allowed, least)


def child_seed(seed: int, draw: int) -> np.random.SeedSequence:
    """SeedSequence(seed).spawn(…)[draw]."""
    return np.random.SeedSequence(seed_sequence(seed).entropy, spawn_key=(draw,))


def draw_layer(spec: Attention, seed: int, draw: int) -> Result:
    """One draw of a layer: the spectra of softmax and of its equivalent."""
    one = sample(spec, child_seed(seed, draw))
    return {"softmax": one.softmax, "equivalent": one.equivalent}


def draw_words(expression: Expression, sizes: Mapping[Any, Any], seed: int, of: str, draw: int) -> Result:
    """One draw of an expression: its eigenvalues."""
    return {"eigenvalues": sample_words(expression, sizes, child_seed(seed, draw), of)}


def task_of(
    kind: str, function: Callable[[Attention, int, int], Result], spec: Attention, seed: int, draw: int
) -> Task:
    """What a function gives for one draw of a layer, as a task; `kind` names the function in stores."""
    return Task({"kind": kind, "spec": spec.to_dict(), "seed": int(seed), "draw": draw}, function, (spec, seed, draw))


def layer_task(spec: Attention, seed: int, draw: int) -> Task:
    """One draw of a layer as a task."""
    return task_of("draw of a layer", draw_layer, spec, seed, draw)


def layer_draws(
    spec: Attention, draws: int, seed: int, *, executor: Executor | None = None, workers: int | None = 1,
    store: Store | str | Path | None = None, progress: Progress | None = None,
) -> tuple[Sample, ...]:
    """Draws 0, …, draws − 1 of a layer; the other arguments are those of `runs.run`."""
    tasks = [layer_task(spec, seed, draw) for draw in range(draws)]
    found = results_of(tasks, executor=executor, workers=workers, store=store, progress=progress)
    return tuple(
        Sample(one["softmax"], one["equivalent"], spec, child_seed(seed, draw)) for draw, one in enumerate(found)
    )


def word_draws(
    expression: Expression, sizes: Mapping[Any, Any], draws: int, seed: int, of: str, *,
    executor: Executor | None = None, workers: int | None = 1, store: Store | str | Path | None = None,
    progress: Progress | None = None,
) -> tuple[Matrix, ...]:
    """The same for the eigenvalues of an expression."""
    numbers = {name: encode(value) for name, value in checked_sizes(expression, sizes).items()}
    key = {"kind": "draw of words", "expression": _whole(expression), "of": of, "sizes": numbers, "seed": int(seed)}
    tasks = [
        Task({**key, "draw": draw}, draw_words, (expression, dict(sizes), seed, of, draw)) for draw in range(draws)
    ]
    found = results_of(tasks, executor=executor, workers=workers, store=store, progress=progress)
    return tuple(one["eigenvalues"] for one in found)


def _whole(expression: Expression) -> str:
    """All of an expression as text: what is printed of it leaves variances and sizes out."""
    return f"Expression(rows={expression.rows!r}, columns={expression.columns!r}, terms={expression.terms!r})"


def results_of(
    tasks: Sequence[Task], *, executor: Executor | None, workers: int | None, store: Store | str | Path | None,
    progress: Progress | None,
) -> list[Result]:
    """`runs.run`, with errors that speak of the request itself in place of the task that met them."""
    try:
        return run(tasks, executor=executor, workers=workers if executor is None else None, store=store,
                   progress=progress)
    except TaskError as error:
        if isinstance(error.__cause__, (FreeattnError, MemoryError)):
            raise error.__cause__ from None
        raise
