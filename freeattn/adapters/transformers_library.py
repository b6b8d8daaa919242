"""What the attention modules of transformers share: masks, rotary positions, initialization."""

from __future__ import annotations

import sys
from typing import Any

from freeattn.adapters.module_kind import Behaviour
from freeattn.errors import NotCoveredError

__all__ = ["attend", "defining_class", "initialize", "refuse_cross_attention", "window_of"]

_LIBRARY = "transformers"


def attend(torch: Any, module: Any, tokens: Any, behaviour: Behaviour, positions: bool) -> Any:
    """The output (n_tokens × width) of a module's forward pass with explicit mask and positions.

    Attention is computed by its definition ("eager"), which masks what the mask says and no more.
    """
    module.config._attn_implementation = "eager"
    window = window_of(module) if behaviour.causal else None
    arguments = {"attention_mask": _mask(torch, tokens, behaviour.causal, window)}
    if positions:
        arguments["position_embeddings"] = _positions(torch, module, tokens, behaviour.rotary)
    return module(tokens[None], **arguments)[0][0]


def _mask(torch: Any, tokens: Any, causal: bool, window: int | None) -> Any:
    """What is added to the scores, or None."""
    if not causal:
        return None
    n = len(tokens)
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
    if window is not None:
        hidden |= torch.ones(n, n, dtype=torch.bool).tril(-window)
    mask = torch.zeros(n, n, dtype=tokens.dtype).masked_fill(hidden, torch.finfo(tokens.dtype).min)
    return mask[None, None]


def window_of(module: Any) -> int | None:
    """Number of tokens that a token sees, itself included, or None for all: of its layer, else of its model."""
    found = module.sliding_window if hasattr(module, "sliding_window") else getattr(
        module.config, "sliding_window", None
    )
    return None if found is None else int(found)


def _positions(torch: Any, module: Any, tokens: Any, rotary: bool) -> Any:
    """Rotations by position of the model that the module belongs to, or none in the same form."""
    home = defining_class(module)
    name = home.__name__.removesuffix("Attention") + "RotaryEmbedding"
    embedding = getattr(sys.modules[home.__module__], name)(config=module.config)
    found = embedding(tokens[None], torch.arange(len(tokens))[None])
    if rotary:
        return found
    if isinstance(found, tuple):
        cosine, sine = found
        return torch.ones_like(cosine), torch.zeros_like(sine)
    return torch.ones_like(found)  # rotations as complex numbers


def defining_class(module: Any) -> Any:
    """The class of transformers that a module is, or derives from."""
    return next(kind for kind in type(module).__mro__ if kind.__module__.partition(".")[0] == _LIBRARY)


def initialize(module: Any, config: Any) -> None:
    """Draw all weights anew by the rule of the model class that stands beside the module's own."""
    home = sys.modules[defining_class(module).__module__]
    base = next(
        kind for name, kind in vars(home).items()
        if name.endswith("PreTrainedModel") and kind.__module__ == home.__name__
    )
    module.apply(base(config)._init_weights)


def refuse_cross_attention(module: Any) -> None:
    """Cross-attention has queries from other tokens than keys.

    Raises:
        NotCoveredError: for such a module.
    """
    if getattr(module, "is_cross_attention", False):
        kind = type(module).__name__
        raise NotCoveredError(f"{kind} is cross-attention: its queries come from other tokens than its keys")
