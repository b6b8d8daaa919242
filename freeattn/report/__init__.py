"""Say it and show it: tables, plots and pages of laws and verifications.

Names load when first used (PEP 562): tables bring rich, plots bring numpy and, when one is drawn, matplotlib.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "architectures_table": "freeattn.report.tables",
    "law_tables": "freeattn.report.tables",
    "not_modelled_lines": "freeattn.report.tables",
    "progress_on_stderr": "freeattn.report.progress",
    "render": "freeattn.report.tables",
    "reproduction_tables": "freeattn.report.tables",
    "rows_table": "freeattn.report.tables",
    "spectrum_tables": "freeattn.report.tables",
    "verification_tables": "freeattn.report.tables",
    "convergence_tables": "freeattn.report.convergence",
    "plot_convergence": "freeattn.report.convergence",
    "check_parquet": "freeattn.report.parquet",
    "write_parquet": "freeattn.report.parquet",
    "check_html_libraries": "freeattn.report.html",
    "check_page_file": "freeattn.report.html",
    "HtmlReport": "freeattn.report.html",
    "check_plot_file": "freeattn.report.style",
    "new_figure": "freeattn.report.style",
    "save_figure": "freeattn.report.style",
    "density_rows": "freeattn.report.grid",
    "law_grid": "freeattn.report.grid",
    "law_title": "freeattn.report.plot",
    "plot_law": "freeattn.report.plot",
    "plot_laws": "freeattn.report.plot",
    "plot_panels": "freeattn.report.figures",
    "plot_sweep": "freeattn.report.sweep_maps",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'freeattn.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
