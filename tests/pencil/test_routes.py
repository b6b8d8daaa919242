"""The two routes share nothing but the type of their result, and the language needs no libraries."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def loaded_after(statement: str) -> set[str]:
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def test_the_pencil_does_not_load_the_transforms():
    loaded = loaded_after("import freeattn.theory.pencil_route")
    assert not [name for name in loaded if name.startswith("freeattn.theory.transforms")]


def test_the_transforms_do_not_load_the_pencil():
    loaded = loaded_after("import freeattn.theory.transform_route")
    assert not loaded & {"freeattn.theory.pencil", "freeattn.theory.dyson", "freeattn.model.expression"}


@pytest.mark.parametrize("library", ["numpy", "sympy", "flint", "mpmath", "scipy"])
def test_the_language_is_plain_python(library):
    assert library not in loaded_after("import freeattn.model.expression, freeattn.model.letters")
