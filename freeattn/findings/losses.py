"""Losses of gradient flow as a picture: `fa.plot_losses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from freeattn.numerics.law import SpectralLaw
from freeattn.predict.flow import flow_loss
from freeattn.predict.inputs import numbers
from freeattn.report.curves import named, plot_curves

__all__ = ["plot_losses"]

_FIRST, _LAST, _POINTS = 0.1, 1e4, 201


def plot_losses(
    laws: Mapping[str, SpectralLaw] | Sequence[SpectralLaw], ax: Any = None, *, times: ArrayLike | None = None
) -> Any:
    """Training loss of gradient flow against time for several laws, on logarithmic axes (see `predict.flow_loss`).

    Args:
        laws: names and laws, {"β = 1": law, …}; or a list of laws, which are called as their layers are. Each is
            divided by its mean.
        ax: matplotlib Axes to draw on; a new figure of the width of a column when None.
        times: where the loss is computed, above 0; by default 0.1 to 10⁴.

    Returns:
        The Axes. The vertical axis ends six decades below the loss at the start.

    Raises:
        InputError: when there is no law, and for times that are not positive.
        MissingExtraError: when matplotlib is not installed.
    """
    given = np.geomspace(_FIRST, _LAST, _POINTS) if times is None else times
    shown = numbers("times", given, positive=True).ravel()
    curves = {name: (shown, flow_loss(law, shown)) for name, law in named(laws, "laws").items()}
    return plot_curves(curves, ax, "time t", "training loss", log="xy", whole=False)
