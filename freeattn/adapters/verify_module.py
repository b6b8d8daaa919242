"""`verify_module`: the spectrum of a module's own forward pass against the law of its weights.

The module is copied, set to evaluation mode and to doubles, and run on one sequence of tokens. Its centered output is

    M = output − 1·(mean row of the values)·W^O = [A_1^⊥ V_1, …]·W^O,

where the row that is taken away is the module's output at the mean token alone (one token attends to itself), biases
included. Where values are not linear in the tokens (latents with norms), or something is added to the sequence, the
mean row of the output is taken away instead; the two differ by a matrix of rank one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from freeattn.adapters.module import kind_of
from freeattn.adapters.module_kind import Behaviour, ModuleKind
from freeattn.adapters.module_reading import ModuleReading, specification
from freeattn.adapters.module_reset import RESETS, reset_module
from freeattn.adapters.token_draws import TokenSource, token_source
from freeattn.adapters.torch_library import torch_library
from freeattn.display import ShownAsTables
from freeattn.errors import InputError
from freeattn.evidence.against_law import AgainstLaw, Finding, finding
from freeattn.evidence.compare import LawTable, Spectrum, as_spectrum
from freeattn.evidence.criteria import criteria_against_law
from freeattn.evidence.draws import number_of_draws
from freeattn.evidence.finite_size import finite_size
from freeattn.evidence.verify import CONFIDENCE
from freeattn.evidence.weights import blas_threads, named_seed
from freeattn.evidence.written import verdict
from freeattn.model.attention import Attention
from freeattn.model.inputs import GaussianInput, InputLaw
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.limiting import law as limiting_law

__all__ = ["ModuleVerification", "verify_module"]

Array: TypeAlias = NDArray[np.float64]

_DRAWS = 5
_ROUNDING = 1e-14  # of singular values relative to the largest, for each row: what doubles leave of a zero


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModuleVerification(AgainstLaw, ShownAsTables):
    """A module's spectra against the law of its specification.

    Attributes:
        spec: the layer that its weights stand for; of the first draw where they are drawn anew.
        law: its law, with which is compared.
        seed, draws, reset: what was run; see `verify_module`.
        causal, rotary: whether later tokens were masked, and positions rotated queries and keys.
        centering: "mean token" or "mean row"; see the module.
        findings: the statistics with their verdict.
        warnings: sentences on what limits the comparison.
        spectra: the squared singular values of every draw, ascending.
    """

    shown_as: ClassVar[str] = "module-verification"

    spec: Attention
    law: SpectralLaw
    seed: int
    draws: int
    reset: str | None
    causal: bool
    rotary: bool
    centering: str
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    spectra: tuple[Spectrum, ...]

    def __repr__(self) -> str:
        return f"<ModuleVerification of {self.spec.name}, {self.draws} draws: {verdict(self.rows())}>"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: plain numbers, texts and None; without the spectra."""
        return {
            "module": self.spec.name, "spec": self.spec.to_dict(), "not_modelled": list(self.spec.not_modelled),
            "seed": self.seed, "draws": self.draws, "reset": self.reset, "causal": self.causal, "rotary": self.rotary,
            "centering": self.centering, "confidence": CONFIDENCE, "passed": self.passed,
            "warnings": list(self.warnings), "statistics": [found.to_dict() for found in self.findings],
        }


def verify_module(
    module: Any, n_tokens: int | None = None, *, inputs: str | InputLaw | Array = "gaussian",
    draws: int | None = None, seed: int = 0, reset: str | None = None, causal: bool | None = None,
    rotary: bool | None = None, progress: Callable[[int, int], None] | None = None,
) -> ModuleVerification:
    """Run a module on random or given tokens and compare the spectrum of its centered output with the law.

    Args:
        module: as for `from_module`; it is copied, and not changed.
        n_tokens: number of tokens; with given tokens it is theirs.
        inputs: "gaussian", "orthogonal", an input law, or an array of tokens (n_tokens × d_model). Given tokens are
            compared with the law of orthogonal ones where X Xᵀ is a multiple of the identity, else of Gaussian ones;
            both of the same mean square.
        draws: how often (default 5, or 1 where nothing is random). Each draw has tokens of its own.
        seed: the same seed gives the same result on the same machine.
        reset: None keeps the weights as they are; "own" draws them anew by the library's own initialization for every
            draw; "unit" draws Gaussian ones of variance 1/rows, with biases 0 and norms 1.
        causal, rotary: whether later tokens are masked and positions rotate queries and keys; None: as in its model.
        progress: called as progress(done, draws) after each draw.

    Raises:
        MissingExtraError: without torch.
        InputError: for arguments that are not allowed.
        NotCoveredError: for modules that no law describes.
    """
    torch, kind, root = torch_library(), kind_of(module), named_seed(seed)
    if reset not in (None, *RESETS):
        raise InputError("reset", reset, f"None, {' or '.join(map(repr, RESETS))}")
    own = copy.deepcopy(module).eval().cpu().double()
    reading = kind.read(own)
    source = token_source(reading, inputs, n_tokens)
    count, behaviour = _draws(draws, source, reset), _behaviour(reading, causal, rotary)
    spectra: list[Spectrum] = []
    for child in np.random.SeedSequence(root).spawn(count):
        if reset is not None:
            reset_module(torch, kind, own, reset, child)
        if not spectra:
            spec = specification(kind.read(own), source.n_tokens, source.law, source.square, {})
        output, row = _output(torch, kind, own, source.draw(spec, child), behaviour, reading.mean_token)
        spectra.append(_squared_singular_values(output - row))
        if progress is not None:
            progress(len(spectra), count)
    found = limiting_law(spec)
    table = LawTable.of(found, source.n_tokens)
    wanted = criteria_against_law(table, source.n_tokens, count, (spec, finite_size(spec)))
    return ModuleVerification(
        spec=spec, law=found, seed=root, draws=count, reset=reset, causal=behaviour.causal,
        rotary=behaviour.rotary, centering="mean token" if reading.mean_token else "mean row",
        findings=tuple(finding(one, spectra, table) for one in wanted),
        warnings=tuple(_warnings(spec, behaviour, source)), spectra=tuple(spectra),
    )


def _draws(draws: object, source: TokenSource, reset: str | None) -> int:
    fixed = source.given is not None and reset is None
    if draws is None:
        return 1 if fixed else _DRAWS
    count = number_of_draws(draws, 1)
    if fixed and count > 1:
        raise InputError("draws", draws, "1 for given tokens and weights, which are the same in every draw")
    return count


def _behaviour(reading: ModuleReading, causal: bool | None, rotary: bool | None) -> Behaviour:
    for field, value in (("causal", causal), ("rotary", rotary)):
        if value is not None and not isinstance(value, bool):
            raise InputError(field, value, "True, False, or None: as the module does in its model")
    if rotary and not reading.rotary:
        raise InputError("rotary", rotary, f"False or None for {reading.kind}, which has no rotary positions")
    return Behaviour(
        causal=reading.causal if causal is None else causal, rotary=reading.rotary if rotary is None else rotary
    )


def _output(
    torch: Any, kind: ModuleKind, module: Any, tokens: tuple[Array, Array, Array], behaviour: Behaviour,
    mean_token: bool,
) -> tuple[Array, Array]:
    """The output of a module, and the row that centers it."""
    with torch.inference_mode():
        query, key, value = (torch.from_numpy(part) for part in tokens)
        output = kind.run(torch, module, (query, key, value), behaviour).numpy()
        if not mean_token:
            return output, output.mean(axis=0)
        means = tuple(part.mean(dim=0, keepdim=True) for part in (query, key, value))
        return output, kind.run(torch, module, means, behaviour).numpy()


def _squared_singular_values(centered: Array) -> Spectrum:
    """The n eigenvalues of M Mᵀ, ascending, what doubles cannot tell from 0 set to 0."""
    rows = len(centered)
    with blas_threads(rows):
        found = np.linalg.svd(centered, compute_uv=False)[::-1] ** 2
    return as_spectrum(np.concatenate([np.zeros(rows - len(found)), found]), (_ROUNDING * rows) ** 2)


def _warnings(spec: Attention, behaviour: Behaviour, source: TokenSource) -> Iterator[str]:
    if spec.dominated_rows is not None:
        yield spec.dominated_rows.warning
    if behaviour.causal:
        yield "causal mask: each token sees the ones before it, which the law does not model"
    if behaviour.rotary and "rotary positions" in spec.not_modelled:
        yield "rotary positions, which the law does not model (rotary=False leaves them out)"
    if source.given is not None and isinstance(source.law, GaussianInput):
        yield "the given tokens are compared with Gaussian ones of the same mean square; correlations are not modelled"
