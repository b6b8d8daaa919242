"""The curve of a law on a grid that resolves its edges, and its picture over the histogram of a sample.

matplotlib is the extra "plot". Only its object interface is used: no pyplot, no global state, no display.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError, MissingExtraError

__all__ = ["PLOT_SUFFIXES", "check_plot_file", "density_rows", "law_grid", "plot_law", "save_law_plot"]

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
_SQUARE_ROOT = 0.5  # exponent of a soft edge
_WIDE_BAND = 20.0  # right/left end above which half of a band's points are spaced by factors
_CURVE_POINTS = 800
_BINS = 80
_HEADROOM = 1.15  # height of the axis over what it shows, for the legend
_SHOWN_BEYOND = 1.12  # the axis ends here, relative to the outermost edge
_RGB = {"law": "#b2182b", "sample": "#9db4c8", "band": "#f3e3df", "atom": "#4d4d4d"}

_ARROW = {"arrowstyle": "-|>", "color": _RGB["atom"], "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}

# The curve --------------------------------------------------------------------------------------------------


def _half_to_edge(count: int, exponent: float) -> NDArray[np.float64]:
    """Distances from an edge in (0, 1/2], as u^p/2 with u equispaced and p = max(2, 2/(1 + exponent)).

    With ρ ~ t^e at distance t, ρ dt/du ~ u^{p(1 + e) − 1} then vanishes at least like u; p = 2 at a
    square-root edge, where ρ itself is linear in u.
    """
    power = max(2.0, 2.0 / (1.0 + exponent))
    return 0.5 * (np.arange(1, count + 1) / count) ** power


def _band_grid(
    left: float, right: float, exponents: tuple[float, float], count: int
) -> NDArray[np.float64]:
    """`count` increasing points, dense at the ends, which are among them unless ρ diverges there."""
    ends = [end for end, exponent in zip((left, right), exponents, strict=True) if exponent > 0]
    inner = max(count - len(ends), 1)
    spread = inner // 3 if left > 0 and right > _WIDE_BAND * left else 0
    lower = (inner - spread + 1) // 2
    low = left + (right - left) * _half_to_edge(lower, exponents[0])
    high = right - (right - left) * _half_to_edge(inner - spread - lower + 1, exponents[1])[:-1]
    factors = left * (right / left) ** (np.arange(1, spread + 1) / (spread + 1)) if spread else np.empty(0)
    return np.unique(np.concatenate([ends, low, high, factors]))


def law_grid(law: Any, points: int = 1000) -> NDArray[np.float64]:
    """Increasing points that resolve every band of a law: about `points` in all, at most that many.

    Each band gets an equal share. Near an edge of exponent e the distance to it goes like u^{2/(1+e)} with u
    equispaced (u² at square-root edges); a band whose ends differ by a large factor also gets points spaced
    by equal factors. Edges belong to the grid unless the density diverges there.
    """
    bands = [(float(left), float(right)) for left, right in law.edges]
    if not bands:
        return np.empty(0)
    shares = [len(part) for part in np.array_split(np.arange(points), len(bands))]
    parts = [
        _band_grid(left, right, (float(soft[0]), float(soft[1])), share)
        for (left, right), soft, share in zip(bands, law.edge_exponents, shares, strict=True)
        if share
    ]
    return np.concatenate(parts)


def density_rows(law: Any, points: int = 1000) -> Iterator[tuple[float, float, float]]:
    """(x, density, cdf) on `law_grid`; atoms are steps of the cdf and no part of the density."""
    x = law_grid(law, points)
    density = np.asarray(law.density(x), dtype=float)
    cdf = np.asarray(law.cdf(x), dtype=float)
    yield from zip(x.tolist(), density.tolist(), cdf.tolist(), strict=True)


# The picture ------------------------------------------------------------------------------------------------


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plotting", "plot") from None
    return Figure


def check_plot_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a picture that could not be written.

    Raises:
        InputError: for a suffix other than .png, .pdf, .svg.
        MissingExtraError: when matplotlib is not installed.
    """
    if Path(path).suffix.lower() not in PLOT_SUFFIXES:
        raise InputError("plot", os.fspath(path), f"a file name that ends in {', '.join(PLOT_SUFFIXES)}")
    _figure_class()


def _binned(law: Any, bins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean density of the law in each bin, atoms left out."""
    mass = np.diff(np.asarray(law.cdf(bins), dtype=float))
    for atom in law.atoms:
        inside = (bins[:-1] < float(atom.location)) & (float(atom.location) <= bins[1:])
        mass[inside] -= float(atom.weight)
    return mass / np.diff(bins)


def _draw_sample(ax: Any, law: Any, sample: NDArray[np.float64], bins: NDArray[np.float64]) -> float:
    """Histogram of the sample without its atoms, on the scale of the density; returns its highest bar."""
    width = float(bins[1] - bins[0])
    at_atom = np.zeros(sample.shape, dtype=bool)
    for atom in law.atoms:
        at_atom |= np.abs(sample - float(atom.location)) <= 1e-9 * float(bins[-1])  # rounding of exact zeros
    continuous = sample[~at_atom]
    beyond = int(np.count_nonzero(continuous > bins[-1]))
    heights = np.histogram(continuous, bins)[0] / (sample.size * width)
    label = f"sample of {sample.size}" + (f" ({beyond} beyond the axis)" if beyond else "")
    ax.stairs(heights, bins, fill=True, color=_RGB["sample"], label=label, zorder=1)
    return float(heights.max())


def _draw_atoms(ax: Any, law: Any, top: float) -> None:
    for atom in law.atoms:
        weight = float(atom.weight)
        if weight <= 0:
            continue
        place = float(atom.location)
        ax.annotate("", xy=(place, top), xytext=(place, 0), zorder=4, arrowprops=_ARROW)
        ax.annotate(
            f"atom {weight:.4g} at {place:.4g}", xy=(place, top), xytext=(6, -4), textcoords="offset points",
            color=_RGB["atom"], ha="left", va="top",
        )


def plot_law(law: Any, ax: Any = None, sample: ArrayLike | None = None, normalized: bool = False) -> Any:
    """Density of a law with its bands shaded and its atoms marked, over the histogram of a sample.

    Args:
        law: a `SpectralLaw`.
        ax: matplotlib Axes to draw on; a new figure when None.
        sample: squared singular values; values at an atom are left out of the histogram, whose area is one
            minus their share, as for the density.
        normalized: divide the law, and the sample, by the mean of the law.

    Returns:
        The Axes; `ax.figure` is the figure.

    Raises:
        InputError: when the sample is empty or not finite.
        MissingExtraError: when matplotlib is not installed.
    """
    if ax is None:
        ax = _figure_class()(figsize=(7.0, 4.2), layout="constrained").add_subplot()
    values = None if sample is None else _checked_sample(sample)
    if normalized:
        values = None if values is None else values / float(law.mean)
        law = law.normalized()
    bands = [(float(left), float(right)) for left, right in law.edges]
    ends = [0.0, *(end for band in bands for end in band), *(float(atom.location) for atom in law.atoms)]
    limit = _SHOWN_BEYOND * max(ends) if max(ends) > 0 else 1.0
    bins = np.linspace(min(ends), limit, _BINS + 1)
    for left, right in bands:
        ax.axvspan(left, right, color=_RGB["band"], zorder=0)
    bars = [float(_binned(law, bins).max())]
    if values is not None:
        bars.append(_draw_sample(ax, law, values, bins))
    top = _HEADROOM * _height(_draw_density(ax, law, bands), max(bars))
    _draw_atoms(ax, law, top / _HEADROOM)
    ax.set(xlim=(min(ends) - 0.02 * limit, limit), ylim=(0, top), ylabel="density")
    ax.set_xlabel("squared singular value / mean" if normalized else "squared singular value")
    ax.legend(frameon=False, loc="upper right")
    return ax


def _height(peak: float, bars: float) -> float:
    """What the axis has to show: all of it, unless a hard or nearly hard edge towers above the histograms."""
    if max(peak, bars) <= 0:
        return 1.0
    return max(peak, bars) if peak < 2 * bars else 1.5 * bars


def _draw_density(ax: Any, law: Any, bands: list[tuple[float, float]]) -> float:
    grid = law_grid(law, _CURVE_POINTS)
    density = np.asarray(law.density(grid), dtype=float)
    for number, (left, right) in enumerate(bands):
        inside = (grid >= left) & (grid <= right)
        label = "limiting law" if number == 0 else None
        ax.plot(grid[inside], density[inside], color=_RGB["law"], linewidth=1.8, label=label, zorder=3)
    return float(density.max()) if density.size else 0.0


def _checked_sample(sample: ArrayLike) -> NDArray[np.float64]:
    values = np.ravel(np.asarray(sample, dtype=float))
    if not values.size or not np.isfinite(values).all():
        raise InputError("sample", f"an array of shape {values.shape}", "at least one number, all finite")
    return values


def save_law_plot(
    law: Any, path: str | os.PathLike[str], samples: Sequence[ArrayLike] | None = None,
    normalized: bool = False,
) -> None:
    """Write `plot_law` to a .png, .pdf or .svg file, over the pooled histogram of the samples.

    Raises:
        InputError, MissingExtraError: as `check_plot_file`.
    """
    check_plot_file(path)
    pooled = np.concatenate([np.ravel(np.asarray(one, dtype=float)) for one in samples]) if samples else None
    ax = plot_law(law, sample=pooled, normalized=normalized)
    if law.spec is not None and getattr(law.spec, "name", None):
        ax.set_title(str(law.spec.name))
    ax.figure.savefig(path, format=Path(path).suffix[1:].lower(), dpi=160)
