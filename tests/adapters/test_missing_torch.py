"""Without torch: an error that names the extra, and everything else works."""

import subprocess
import sys

import pytest

import freeattn as fa


@pytest.mark.parametrize("call", [fa.from_module, fa.verify_module])
def test_the_extra_is_named(monkeypatch, call):
    monkeypatch.setitem(sys.modules, "torch", None)  # what an import of a missing package meets
    with pytest.raises(fa.MissingExtraError, match=r'pip install "freeattn\[torch\]"') as error:
        call(object(), 16)
    assert error.value.extra == "torch"


def test_torch_loads_when_a_module_is_read_and_not_before():
    script = (
        "import sys, freeattn as fa\n"
        "fa.from_module, fa.verify_module, fa.verify, fa.verify_spectrum, fa.read_spectrum\n"
        "print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_verify_of_a_layer_does_without(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    spec = fa.Attention(n_tokens=16, d_model=16, n_heads=1, d_key=16, output="attention")
    assert fa.verify(spec, 1).draws == 1
    with pytest.raises(fa.InputError, match="an Attention, or an expression in letters"):
        fa.verify(object())
