"""How simulated attention approaches its law as n grows, and where it does not as β grows.

Every dimension is scaled with n_tokens. For each draw softmax, its Gaussian equivalent with the same weights and the
law are compared, and a distance C·n^{−a} is fitted to all draws at all sizes (`rates`). At larger β few tokens dominate
each row and the mean falls short of the law; what counts is β/√log n. A mean over the scores that is known exactly
(`score_identity`) tests the simulation at each size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from freeattn.display import ShownAsTables
from freeattn.errors import InputError
from freeattn.evidence.beta_losses import BetaLoss, beta_loss
from freeattn.evidence.compare import LawTable
from freeattn.evidence.distances import PAIRS, Distance, distances
from freeattn.evidence.draws import number_of_draws, results_of, task_of
from freeattn.evidence.sampling import sample
from freeattn.evidence.scaling import scaled
from freeattn.evidence.score_identity import ScoreIdentity, identity_applies, score_identities, score_means
from freeattn.evidence.verify import CONFIDENCE
from freeattn.evidence.weights import named_seed
from freeattn.model.attention import Attention
from freeattn.model.quantities import as_positive
from freeattn.numerics.limiting import law as limiting_law
from freeattn.runs import Progress, Result, Store

__all__ = ["Convergence", "converge", "draw_at_size"]

_DEFAULT_SIZES = (128, 256, 512, 1024)
_NO_IDENTITY = (
    "the mean of e^(beta S) is not tested: its exact value is for softmax with orthogonal tokens, no latents and "
    "d_key > 4 beta^2 in every head at the smallest size"
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Convergence(ShownAsTables):
    """Distances against n with their rates, the test of the simulation, and losses against β.

    Attributes:
        spec, sizes, draws, seed: what was simulated; draw i at n tokens uses SeedSequence(seed, spawn_key=(n, i)).
        distances: for each statistic and pair.
        identities: for each size and family of heads; empty where the identity does not apply.
        losses: for each β of `betas` and each size.
        notes: what was left out, and why.
    """

    shown_as: ClassVar[str] = "convergence"

    spec: Attention
    sizes: tuple[int, ...]
    draws: int
    seed: int
    distances: tuple[Distance, ...]
    identities: tuple[ScoreIdentity, ...]
    losses: tuple[BetaLoss, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        rate = self.distance("relative_w1", "softmax-law").rate
        fitted = "no rate" if rate is None else f"relative W1 of softmax to the law ~ n^-{rate.exponent:.2f}"
        return f"<Convergence of {self.spec.name or self.spec.output}, n = {self.sizes[0]}…{self.sizes[-1]}: {fitted}>"

    def distance(self, statistic: str, between: str = "softmax-law") -> Distance:
        """One of the distances.

        Raises:
            InputError: for a statistic or pair that there is not.
        """
        for one in self.distances:
            if (one.statistic, one.between) == (statistic, between):
                return one
        names = ", ".join(dict.fromkeys(one.statistic for one in self.distances))
        raise InputError("statistic", f"{statistic}, {between}", f"one of {names}; between {', '.join(PAIRS)}")

    @property
    def passed(self) -> bool:
        """True when the simulation passed its own test at every size; rates are measured, not judged."""
        return all(identity.passed for identity in self.identities)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each distance and size, for tables."""
        return [row for one in self.distances for row in one.rows(self.sizes)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: plain numbers, texts and None."""
        return {
            "spec": self.spec.to_dict(), "sizes": list(self.sizes), "draws": self.draws, "seed": self.seed,
            "confidence": CONFIDENCE, "passed": self.passed,
            "distances": [one.to_dict() for one in self.distances],
            "identities": [one.to_dict() for one in self.identities],
            "losses": [one.to_dict() for one in self.losses],
            "notes": list(self.notes),
        }


def converge(
    spec: Attention, sizes: Iterable[int] = _DEFAULT_SIZES, draws: int = 10, seed: int = 0,
    progress: Progress | None = None, *, betas: Iterable[Any] = (), finite_size: bool = False,
    executor: Executor | None = None, workers: int | None = 1, store: Store | str | Path | None = None,
) -> Convergence:
    """Simulate a layer at several sizes with fixed ratios and fit how its distances from the law fall.

    Args:
        spec: a layer with sizes, whose ratios are kept, or one by ratios.
        sizes: numbers of tokens, at least two; every width must come out an integer.
        draws: independent draws at each size, at least two.
        seed: the same seed gives the same result on the same machine.
        progress: called as progress(done, total) after each draw.
        betas: inverse temperatures at which the loss of the mean is measured too, at every size.
        finite_size: compare with the law at finite size, a different one at each n (`Attention.with_finite_size`).
        executor, workers, store: where draws are made and kept, as in `runs.run`; the numbers do not depend on them.

    Raises:
        InputError: for sizes, draws, a seed or betas that are not allowed.
    """
    if not isinstance(spec, Attention):
        raise InputError("spec", spec, "an Attention")
    lengths, count, root = _sizes(sizes), number_of_draws(draws, 2), named_seed(seed)
    layers = {n: scaled(spec, n) for n in lengths}
    if finite_size or spec.finite_size:
        layers = {n: layer.with_finite_size() for n, layer in layers.items()}
    hot = [(beta, n) for beta in _betas(spec, betas) for n in lengths]
    limits = {(beta, n): layers[n].with_finite_size(False).replace(beta=beta) for beta, n in hot}
    tables = _tables(layers)  # before the draws: a refusal costs nothing
    limit_tables = {beta: limiting_law(limits[beta, lengths[0]]) for beta, _ in hot}
    every = [*layers.values(), *limits.values()]
    tasks = [
        task_of("draw of a layer at one size", draw_at_size, layer, root, draw)
        for layer in every for draw in range(count)
    ]
    results = results_of(tasks, executor=executor, workers=workers, store=store, progress=progress)
    by_layer = [results[k * count : (k + 1) * count] for k in range(len(every))]
    measured = dict(zip(layers, by_layer, strict=False))
    identities, notes = _identities(layers, measured)
    losses = tuple(
        beta_loss(limits[at], float(limit_tables[at[0]].mean), one)
        for at, one in zip(hot, by_layer[len(layers) :], strict=True)
    )
    return Convergence(
        scaled(spec, lengths[-1]) if spec.ratios is not None else spec, lengths, count, root,
        tuple(distances(lengths, measured, tables)), identities, losses, (*notes, *_few(lengths, count)),
    )


def draw_at_size(spec: Attention, seed: int, draw: int) -> Result:
    """One draw: the spectra of softmax and of its equivalent, and the means of e^{βS} where they are known exactly."""
    root = np.random.SeedSequence(seed, spawn_key=(spec.n_tokens, draw))
    one = sample(spec, root)
    means = score_means(spec, root) if identity_applies(spec) else np.empty(0)
    return {"softmax": one.softmax, "equivalent": one.equivalent, "score_means": means}


# What was asked --------------------------------------------------------------------------------------------------


def _sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    allowed = "at least two different numbers of tokens, integers of at least 2"
    try:
        found = tuple(sizes)
    except TypeError:
        raise InputError("sizes", sizes, allowed) from None
    integers = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 2 for n in found)
    if not integers or len(set(found)) < 2 or len(set(found)) != len(found):
        raise InputError("sizes", found, allowed)
    return tuple(sorted(int(n) for n in found))


def _betas(spec: Attention, betas: Iterable[Any]) -> tuple[Any, ...]:
    found = tuple(as_positive("betas", beta, "positive numbers") for beta in betas)
    if found and any(family.beta is not None for family in spec.heads or ()):
        raise InputError("betas", found, "nothing when heads have inverse temperatures of their own")
    return found


# What comes out --------------------------------------------------------------------------------------------------


def _tables(layers: Mapping[int, Attention]) -> dict[int, LawTable]:
    """The law for each size: one law, or one for each size when it depends on n."""
    first = next(iter(layers.values()))
    common = None if first.finite_size else limiting_law(first)
    return {n: LawTable.of(common or limiting_law(layer), n) for n, layer in layers.items()}


def _few(sizes: Sequence[int], draws: int) -> Iterator[str]:
    """A note where rates rest on too little: two sizes test no power of n, two draws tell little of scatter."""
    few = [f"two {what}" for what, count in (("sizes", len(sizes)), ("draws", draws)) if count == 2]
    if few:
        yield f"rates from {' and '.join(few)} are not meaningful: take three or more, better ten draws"


def _identities(
    layers: Mapping[int, Attention], measured: Mapping[int, Sequence[Result]]
) -> tuple[tuple[ScoreIdentity, ...], tuple[str, ...]]:
    """Where every size has the identity; otherwise a note."""
    if not all(identity_applies(layer) for layer in layers.values()):
        return (), (_NO_IDENTITY,)
    tests = sum(len(layer.families) for layer in layers.values())
    found = [score_identities(layer, [one["score_means"] for one in measured[n]], tests) for n, layer in layers.items()]
    return tuple(one for several in found for one in several), ()
