"""`torch.nn.MultiheadAttention`.

Its own initialization draws the packed matrix W_in (3d × d) uniformly with variance 2/(fan_in + fan_out) = 2/(d + 3d)
(Xavier on the shape of all three), that is σ_Q² = σ_K² = σ_V² = 1/(2d): scores q·k/√d_key of tokens with unit entries
then have

    β = σ_Q σ_K · d · √d_key/√d_key = 1/2,

at every size. Entries of the output map have variance 1/(3d). With kdim or vdim the matrices are apart, of variance
2/(d + kdim) each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, final

from freeattn.adapters.module_kind import Behaviour, ModuleKind, bias_phrases, linear_weights
from freeattn.adapters.module_reading import Gains, ModuleReading
from freeattn.adapters.weight_matrices import as_array, gain

__all__ = ["TorchMultihead"]


@final
class TorchMultihead(ModuleKind):
    """Packed or separate projections, biases, `add_bias_kv`, `add_zero_attn`, either layout of the batch."""

    library: ClassVar[str] = "torch"
    classes: ClassVar[tuple[str, ...]] = ("MultiheadAttention",)

    def read(self, module: Any) -> ModuleReading:
        width, heads, head = int(module.embed_dim), int(module.num_heads), int(module.head_dim)
        widths = (width, int(module.kdim), int(module.vdim))
        weights = [as_array(part).T for part in _projections(module)]
        output = as_array(linear_weights(module.out_proj))
        query, key, value = (gain(part) for part in weights)
        names = ("W_Q", "W_K", "W_V", "W_O")
        return ModuleReading(
            kind=type(module).__name__,
            sizes={"d_model": min(widths), "n_heads": heads, "d_key": head, "d_value": head, "d_out": width},
            gains=Gains(score=query * key, value=value, output=gain(output)),  # s√d_key = 1
            matrices=tuple(zip(names, (*weights, output.T), (heads,) * 4, strict=True)),
            not_modelled=tuple(_phrases(module)), token_widths=widths,
            mean_token=module.bias_k is None and not module.add_zero_attn,
        )

    def run(self, torch: Any, module: Any, tokens: tuple[Any, Any, Any], behaviour: Behaviour) -> Any:
        n, mask = len(tokens[0]), None
        if behaviour.causal:
            mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        batch = 0 if module.batch_first else 1
        query, key, value = (part.unsqueeze(batch) for part in tokens)
        return module(query, key, value, need_weights=False, attn_mask=mask)[0].squeeze(batch)

    def reset(self, torch: Any, module: Any) -> None:
        del torch
        module.out_proj.reset_parameters()
        module._reset_parameters()


def _projections(module: Any) -> tuple[Any, ...]:
    """Weights of queries, keys and values, columns × features."""
    if module.in_proj_weight is not None:
        return tuple(module.in_proj_weight.chunk(3))
    return module.q_proj_weight, module.k_proj_weight, module.v_proj_weight


def _phrases(module: Any) -> Iterator[str]:
    parts = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    yield from bias_phrases(parts[0], (*parts[1:], module.out_proj.bias))
    if module.bias_k is not None:
        yield "a learned key and value after the tokens (add_bias_kv)"
    if module.add_zero_attn:
        yield "a key and value of zeros after the tokens (add_zero_attn)"
    if module.dropout:
        yield "dropout"
    if len({module.embed_dim, module.kdim, module.vdim}) > 1:
        yield "keys and values from other tokens than queries (kdim, vdim)"
