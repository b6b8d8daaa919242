"""What an adapter of one kind of attention module offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from freeattn.adapters.module_reading import ModuleReading
from freeattn.adapters.weight_matrices import is_nonzero

__all__ = ["Behaviour", "ModuleKind", "bias_phrases", "linear_weights"]


class Behaviour(NamedTuple):
    """How a module is run: whether later tokens are masked, and whether positions rotate queries and keys."""

    causal: bool
    rotary: bool


class ModuleKind(ABC):
    """Reads and runs the modules of some classes.

    Attributes:
        library: the package that defines the classes.
        classes: their names.
    """

    library: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(self, module: Any) -> ModuleReading:
        """Sizes, gains and what is not modelled.

        Raises:
            InputError, NotCoveredError: for a module that no specification describes.
        """

    @abstractmethod
    def run(self, torch: Any, module: Any, tokens: tuple[Any, Any, Any], behaviour: Behaviour) -> Any:
        """The output (n_tokens × width) of the module's own forward pass, before any residual connection and norm.

        `tokens` are those that queries, keys and values are made from, n_tokens × width each: one matrix, three times,
        for self-attention. The module is in evaluation mode, and its own copy.
        """

    @abstractmethod
    def reset(self, torch: Any, module: Any) -> None:
        """Draw its weights anew by its library's own initialization."""


def linear_weights(module: Any) -> Any:
    """The weight of a linear layer as features × columns."""
    return module.weight.t()


def bias_phrases(query: Any, others: tuple[Any, ...]) -> Iterator[str]:
    """What biases do: those of queries move the law, the others do not (any of them may be None)."""
    if is_nonzero(query):
        yield "bias of queries (it weights the tokens unevenly)"
    if any(is_nonzero(bias) for bias in others):
        yield "biases of keys, values or output (no effect on the centered output)"
