"""What a law needs from numbers, whichever route derived its system: the interface of all engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.support import Band

__all__ = ["Engine"]

Array = NDArray[np.float64]


class Engine(ABC):
    """Numbers of one law in its own unit; `SpectralLaw` adds units, atoms and the public face."""

    @abstractmethod
    def bands(self, digits: int) -> tuple[Band, ...]:
        """Bands of the continuous spectrum, ascending, ends to the given digits."""

    @abstractmethod
    def density(self, x: Array) -> Array:
        """ρ at real x (finite, any shape), 0 outside the bands, inf at a hard edge."""

    @abstractmethod
    def stieltjes(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """m at z; at real z the boundary value from the upper half-plane."""

    @abstractmethod
    def stieltjes_to(self, z: Any, digits: int) -> Any:
        """m at one z (int, float, complex, Fraction, mpmath number), to many digits."""

    @abstractmethod
    def density_to(self, x: Any, digits: int) -> Any:
        """ρ at one real x, to many digits."""

    @abstractmethod
    def mass_below(self, x: Array) -> Array:
        """Continuous mass in (−∞, x]."""

    @abstractmethod
    def quantile(self, mass: Array) -> Array:
        """The point below which the given continuous mass lies."""

    @property
    @abstractmethod
    def masses(self) -> tuple[float, ...]:
        """Mass of each band."""

    @abstractmethod
    def integrate(self, function: Callable[[Array], Any]) -> Any:
        """∫ f(x) ρ(x) dx over the bands, f real or complex."""

    @abstractmethod
    def integrate_to(
        self, function: Callable[[Any], Any], digits: int, lower: Any = None, upper: Any = None
    ) -> Any:
        """∫ f(x) ρ(x) dx over the bands from `lower` to `upper` to many digits; f takes and gives mpmath numbers."""
