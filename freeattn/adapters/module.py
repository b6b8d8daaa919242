"""`from_module`: an attention module of torch or transformers as a specification."""

from __future__ import annotations

from typing import Any

from freeattn.adapters.module_kind import ModuleKind
from freeattn.adapters.module_reading import ModuleReading, specification
from freeattn.adapters.torch_library import torch_library
from freeattn.adapters.torch_multihead import TorchMultihead
from freeattn.adapters.transformers_latent import TransformersLatent
from freeattn.adapters.transformers_packed import TransformersPacked
from freeattn.adapters.transformers_projected import TransformersProjected
from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.inputs import InputLaw

__all__ = ["from_module", "kind_of", "read_module"]

_KINDS: tuple[ModuleKind, ...] = (
    TorchMultihead(), TransformersProjected(), TransformersPacked(), TransformersLatent(),
)


def from_module(
    module: Any, n_tokens: int, *, inputs: str | InputLaw = "gaussian", token_square: float = 1, **changes: Any
) -> Attention:
    """The specification of an attention module with its own weights: sizes, β and scales are read from it.

    With σ_Q, …, σ_O the root mean squares of its weight matrices and s the factor on its scores,

        β = σ_Q σ_K · E‖x‖² · s·√d_key,  value_scale = σ_V·√E‖x‖²,  output_scale = σ_O·√(n_heads·d_value).

    The specification describes Gaussian matrices of these variances. Where the weights do not look like independent
    entries of one variance (trained ones do not), that is said by a warning and in `not_modelled`, next to mask,
    positions, biases, norms and dropout of the module.

    Args:
        module: `torch.nn.MultiheadAttention`, or an attention module of transformers; see docs/modules.md.
        n_tokens: number of tokens.
        inputs: "gaussian", "orthogonal" or an input law.
        token_square: mean square of the entries of the tokens, E‖x‖²/d_model; 1 behind a LayerNorm.
        changes: fields of `Attention` to put in place of what was read.

    Raises:
        MissingExtraError: without torch.
        InputError: for a module of another kind, and for fields that are not allowed.
        NotCoveredError: for modules that no law describes.
    """
    return specification(read_module(module), n_tokens, inputs, token_square, changes)


def read_module(module: Any) -> ModuleReading:
    """Sizes, gains and what is not modelled; see `from_module`."""
    return kind_of(module).read(module)


def kind_of(module: Any) -> ModuleKind:
    """The adapter for the class of a module, or for one that its class derives from.

    Raises:
        MissingExtraError: without torch.
        InputError: when there is none.
    """
    torch = torch_library()
    if isinstance(module, torch.nn.Module):
        for base in type(module).__mro__:
            for kind in _KINDS:
                if base.__name__ in kind.classes and base.__module__.partition(".")[0] == kind.library:
                    _check_weights(torch, module)
                    return kind
    known = ", ".join(name for kind in _KINDS for name in kind.classes)
    raise InputError("module", type(module).__name__, f"an attention module of torch or transformers: {known}")


def _check_weights(torch: Any, module: Any) -> None:
    """Refuse weights that are not there, are packed (quantized), or are not finite."""
    for name, weights in module.named_parameters():
        found = ""
        if weights.is_meta:
            found = "on the meta device"
        elif not weights.is_floating_point():
            found = f"of type {weights.dtype}"
        elif not bool(torch.isfinite(weights).all()):
            found = "with NaN or infinity"
        if found:
            raise InputError("module", f"{type(module).__name__} ({name} {found})", "finite floating-point weights")
