"""freeattn: limiting spectral laws of attention layers.

Names load when first used (PEP 562), so that `import freeattn` imports neither numpy, scipy, sympy nor matplotlib.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Attention": "freeattn.model.attention",
    "Ratios": "freeattn.model.ratios",
    "Ties": "freeattn.model.ties",
    "KeyValueCorrelation": "freeattn.model.ties",
    "Latent": "freeattn.model.latent",
    "Heads": "freeattn.model.heads",
    "OrthogonalInput": "freeattn.model.inputs",
    "GaussianInput": "freeattn.model.inputs",
    "FeatureCovariance": "freeattn.model.inputs",
    "Softmax": "freeattn.model.scores",
    "Linear": "freeattn.model.scores",
    "ReLU": "freeattn.model.scores",
    "Sigmoid": "freeattn.model.scores",
    "Entrywise": "freeattn.model.scores",
    "FiniteRows": "freeattn.model.scores",
    "architecture": "freeattn.model.architectures",
    "architectures": "freeattn.model.architectures",
    "from_config": "freeattn.adapters.config",
    "read_config": "freeattn.adapters.config",
    "space": "freeattn.model.letters",
    "copies": "freeattn.model.letters",
    "gaussian": "freeattn.model.expression",
    "wigner": "freeattn.model.expression",
    "identity": "freeattn.model.expression",
    "diagonal": "freeattn.model.expression",
    "concatenate": "freeattn.model.expression",
    "derive": "freeattn.theory.derive",
    "Derivation": "freeattn.theory.derivation",
    "symbolic_spec": "freeattn.theory.derive",
    "law": "freeattn.numerics.limiting",
    "SpectralLaw": "freeattn.numerics.law",
    "free_sum": "freeattn.numerics.free_convolutions",
    "free_product": "freeattn.numerics.free_convolutions",
    "free_power": "freeattn.numerics.free_convolutions",
    "free_compression": "freeattn.numerics.free_convolutions",
    "sample": "freeattn.evidence.simulate",
    "verify": "freeattn.adapters.verify",
    "html_report": "freeattn.findings.collect",
    "plot_laws": "freeattn.report.plot",
    "plot_losses": "freeattn.findings.losses",
    "plot_sweep": "freeattn.report.sweep_maps",
    "plot_convergence": "freeattn.report.convergence",
    "new_figure": "freeattn.report.style",
    "save_figure": "freeattn.report.style",
    "reproduce": "freeattn.evidence.reproduce",
    "other_scales": "freeattn.evidence.reproduce",
    "converge": "freeattn.evidence.convergence",
    "sweep": "freeattn.evidence.sweep",
    "Sweep": "freeattn.evidence.sweep",
    "SweepPoint": "freeattn.evidence.sweep",
    "verify_spectrum": "freeattn.evidence.spectrum",
    "read_spectrum": "freeattn.adapters.spectrum_files",
    "from_module": "freeattn.adapters.module",
    "verify_module": "freeattn.adapters.verify_module",
    "FreeattnError": "freeattn.errors",
    "InputError": "freeattn.errors",
    "NotCoveredError": "freeattn.errors",
    "ConvergenceError": "freeattn.errors",
    "BranchError": "freeattn.errors",
    "CertificationError": "freeattn.errors",
    "MissingExtraError": "freeattn.errors",
    "TaskError": "freeattn.errors",
    "Store": "freeattn.runs.store",
}

_PACKAGES = {"predict": "freeattn.predict", "runs": "freeattn.runs"}

__all__ = ["__version__", *sorted({*_HOME, *_PACKAGES})]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(_PACKAGES[name])
    raise AttributeError(f"module 'freeattn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
