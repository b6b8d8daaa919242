"""Laws as programs: Python modules run without the package and give its numbers; other languages hold the equations."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import textwrap
import types
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.parsing.mathematica import parse_mathematica

import freeattn as fa
from freeattn.errors import NotCoveredError
from freeattn.theory.derive import derive, symbolic_spec
from freeattn.theory.exports.code import Julia, Mathematica, Python
from freeattn.theory.exports.program import CurveProgram, DysonProgram, EnergyEntry, Entry
from freeattn.theory.transforms import Discrete, FreePoisson, FreeProduct, FreeSum, MarchenkoPastur

CLOSE = 1e-10  # relative to the density
HALF = (sp.Rational(1, 2), sp.Rational(1, 2))
SIZES: dict[str, Any] = {"n_tokens": 60, "d_model": 90, "n_heads": 3, "d_key": 20, "beta": 1}
n, p = sp.symbols("n p", positive=True)
X = fa.gaussian("X", fa.space("n", n), fa.space("p", p), 1 / p)
LAYERS = {
    "mha": fa.architecture("bert-base", n_tokens=512),
    "attention": fa.architecture("bert-base", n_tokens=512, output="attention"),
    "key-value": fa.architecture("bert-base", n_tokens=512, tie="key-value"),
    "gaussian": fa.Attention(**SIZES, d_value=25, d_out=70, inputs="gaussian"),
    "latent": fa.Attention(**SIZES, d_value=25, d_out=70, latent=fa.Latent(30)),
    "two-bands": fa.Attention.from_ratios(Fraction(1, 4), n_heads=16, output="attention"),
    "relu": fa.Attention(**SIZES, d_value=25, d_out=70, inputs="gaussian", scores="relu"),
    "linear": fa.Attention(**SIZES, d_value=25, d_out=70, inputs="gaussian", scores="linear"),
    "covariance": fa.Attention(**SIZES, d_value=25, d_out=70, inputs=fa.FeatureCovariance((1, 4), (1, 1))),
}
LAWS = {
    "sum": FreeSum((Discrete((1, 3), HALF), FreePoisson(1))),  # type: ignore[arg-type]
    "hard-edge": FreeProduct((MarchenkoPastur(1), MarchenkoPastur(1))),  # type: ignore[arg-type]
}
SOURCES: dict[str, Any] = {**LAYERS, **LAWS, "word": X @ X.T @ X}
WORD = {"n": 1, "p": 2}
POINT = sp.Symbol("spectral")


def law_of(name: str) -> Any:
    return fa.law(SOURCES[name], sizes=WORD) if name == "word" else fa.law(SOURCES[name])


def module_of(source: str) -> Any:
    module = types.ModuleType("exported")
    exec(compile(source, "exported", "exec"), module.__dict__)
    return module


def arguments(function: Any, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in list(inspect.signature(function).parameters)[1:]}


def points_of(law: Any) -> list[float]:
    """In every band, in every gap, and beyond the support."""
    shares = (0.01, 0.2, 0.5, 0.9, 0.99)
    inside = [low + (high - low) * share for low, high in law.edges for share in shares]
    gaps = [(one[1] + two[0]) / 2 for one, two in zip(law.edges, law.edges[1:], strict=False)]
    return [*inside, *gaps, 1.3 * law.edges[-1][1]]


@pytest.mark.parametrize("name", ["mha", "attention", "key-value", "gaussian", "latent", "word"])
def test_module_runs_without_the_package(name: str, tmp_path: Path) -> None:
    """In an interpreter that sees numpy and nothing of freeattn, the numbers of the law."""
    law, values = law_of(name), WORD if name == "word" else {}
    points, z = points_of(law), 1.5 + 0.3j
    (tmp_path / "exported.py").write_text(derive(SOURCES[name]).to_python(), encoding="utf-8")
    (tmp_path / "numpy").symlink_to(Path(np.__file__).parent)
    if (libraries := Path(np.__file__).parent.parent / "numpy.libs").exists():
        (tmp_path / "numpy.libs").symlink_to(libraries)
    script = (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p and 'freeattn' not in p]\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import importlib.util, json\nassert importlib.util.find_spec('freeattn') is None\n"
        "assert importlib.util.find_spec('sympy') is None\nimport exported\n"
        f"m = exported.stieltjes({z!r}, **{values!r})\n"
        f"print(json.dumps([exported.density({points!r}, **{values!r}).tolist(), m.real, m.imag]))"
    )
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    density, real, imaginary = json.loads(run.stdout)
    expected = law.density(points)
    assert np.all(np.abs(np.array(density) - expected) <= CLOSE * expected)
    assert abs(complex(real, imaginary) / law.stieltjes(z) - 1) < CLOSE
    assert expected[-1] == density[-1] == 0


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow if name == "covariance" else ())
    for name in SOURCES if name not in ("mha", "attention", "key-value", "latent")
])
def test_densities(name: str) -> None:
    law, module = law_of(name), module_of(derive(SOURCES[name]).to_python())
    values, points = arguments(module.density, WORD), points_of(law)
    expected = law.density(points)
    assert np.all(np.abs(module.density(points, **values) - expected) <= CLOSE * expected)
    for z in (2 + 1j, -1 + 0.01j):
        assert abs(module.stieltjes(z, **values) / law.stieltjes(z) - 1) < CLOSE


@pytest.mark.parametrize("route", ["transform", "pencil"])
@pytest.mark.parametrize(("output", "tie"), [("mha", "none"), ("attention", "none"), ("mha", "key-value")])
def test_symbols_are_keyword_arguments(output: str, tie: str, route: str) -> None:
    numbers = {**SIZES, "n_kv_heads": 3, "d_value": 25, "d_out": 70}
    fields = {**SIZES, **({"d_value": 25} if (output, tie) == ("mha", "none") else {})}
    spec = fa.Attention(**fields, output=output, tie=tie, **({"d_out": 70} if output == "mha" else {}))
    module = module_of(derive(symbolic_spec(output, tie), route=route).to_python())
    values = arguments(module.density, numbers)
    assert {"beta", "d_key", "n_heads", "n_tokens"} <= set(values)
    law = fa.law(spec)
    assert abs(module.density(0.8 * law.mean, **values) / law.density(0.8 * law.mean) - 1) < CLOSE


def test_names_of_symbols_never_clash() -> None:
    """Sizes that are called like names of the module, of the language, or of the standard symbols."""
    for name in ("q", "lambda", "value", "h", "np", "gamma_K"):
        size = sp.Symbol(name, positive=True, integer=True)
        spec = fa.Attention(n_tokens=60, d_model=90, n_heads=3, d_key=size, beta=1, output="attention")
        module = module_of(derive(spec).to_python())
        (argument,) = list(inspect.signature(module.density).parameters)[1:]
        law = fa.law(fa.Attention(n_tokens=60, d_model=90, n_heads=3, d_key=20, beta=1, output="attention"))
        assert abs(module.density(law.mean, **{argument: 20}) / law.density(law.mean) - 1) < CLOSE


@pytest.mark.parametrize("name", ["mha", "gaussian"])
def test_what_is_not_reached_raises(name: str) -> None:
    law, module = law_of(name), module_of(derive(SOURCES[name]).to_python())
    for z in (1 - 1j, 1.0, float("nan")):
        with pytest.raises(ValueError, match="Im z > 0"):
            module.stieltjes(z)
    with pytest.raises(ValueError, match="finite"):
        module.density(float("inf"))
    module._Law.physical = lambda *_: False  # no root passes: none is returned
    for function, point in ((module.stieltjes, 1 + 1j), (module.density, law.mean)):
        with pytest.raises(ArithmeticError):
            function(point)


@pytest.mark.parametrize("name", ["key-value", "mha", "gaussian"])
def test_between_zero_and_the_support(name: str) -> None:
    """Points next to 0, where Newton's method goes far away before it is caught: as the law, 0 in the gap."""
    law, module = law_of(name), module_of(derive(SOURCES[name]).to_python())
    left = law.edges[0][0]
    for x in (-left, -0.01 * left, 0.01 * left, 0.04 * left, 0.14 * left):
        assert module.density(x) == 0
        z = complex(x, 1e-3)
        assert abs(module.stieltjes(z) / law.stieltjes(z) - 1) < CLOSE


def test_newton_at_a_pole_a_zero_and_beyond_doubles() -> None:
    """Nothing but an answer: no root there."""
    equations = module_of(derive(LAYERS["key-value"]).to_python())._Law()
    for q in (0j, 1 + 0j, 1e46 + 4e46j, 1e300 + 1e300j, complex(np.nan)):
        assert not equations.newton(np.array([q]), 0.01 + 0.3j)[1]


def test_singular_matrices_are_no_bad_input() -> None:
    """numpy's LinAlgError is a ValueError, which here is about the point."""
    module = module_of(derive(LAYERS["gaussian"]).to_python())
    equations = module._Law()
    zeros = [tuple(np.zeros_like(part) for part in sector) for sector in equations._sectors]
    equations._sectors = zeros
    u = np.zeros(equations.count, dtype=complex)
    assert not equations.newton(u, 1 + 1j)[1]
    for call in (equations.output, equations.tangent, equations.physical):
        with pytest.raises(ArithmeticError, match="singular"):
            call(u, 1 + 1j)
    with pytest.raises(ArithmeticError, match="singular"):
        equations.begin(1 + 1j)


@pytest.mark.parametrize("name", ["mha", "gaussian"])
def test_points_beyond_doubles(name: str) -> None:
    module = module_of(derive(SOURCES[name]).to_python())
    for function, point, named in (
        (module.density, 10**400, "x"), (module.density, [1, -(10**5000)], "x"), (module.stieltjes, 10**400, "z"),
        (module.density, Fraction(10**400), "x"),
    ):
        with pytest.raises(ValueError, match=f"{named} is too large for double precision: a finite number"):
            function(point)


def test_a_wrong_root_is_refused() -> None:
    """The tests inside: other roots of the same equations do not pass."""
    module = module_of(derive(LAYERS["mha"]).to_python())
    equations = module._Law()
    x, z = sp.Symbol("q"), 2.0 + 0.3j
    program = derive(LAYERS["mha"]).program
    assert isinstance(program, CurveProgram)
    point = sp.Mul(*(base**power for base, power in program.point)).subs(dict(program.inputs.assignments))
    polynomial = sp.fraction(sp.together(point - z))[0]
    roots = [complex(root) for root in sp.Poly(polynomial, x).nroots(n=20)]
    passed = [root for root in roots if equations.physical(np.array([root]), z)]
    assert len(roots) > 4
    assert len(passed) == 1
    assert abs(module.stieltjes(z) / equations.output(np.array(passed), z) - 1) < 1e-12


def test_docstring_has_equation_normalization_and_citation() -> None:
    text = module_of(derive(symbolic_spec()).to_python()).__doc__
    for words in ("ν = ρ_{γ_K} ⊠ MP_{1/h}", "m(z) = ∫ ν(dx)/(x − z)", "not divided by its mean", "arXiv 2610.10033",
                  "beta, d_key, d_out, d_value, n_heads, n_tokens"):
        assert words in text


USED: dict[str, Any] = {
    "numbers": SOURCES["attention"], "mha": symbolic_spec(), "values": symbolic_spec(output="values"),
    "head-sum": symbolic_spec(output="head-sum"), "key-value": symbolic_spec(tie="key-value"),
    "gaussian": symbolic_spec().replace(inputs="gaussian"), "word": X @ X.T @ X,
    "correlated": symbolic_spec(tie="key-value").replace(tie=fa.KeyValueCorrelation(sp.Symbol("rho", real=True))),
    "latent": symbolic_spec().replace(latent=fa.Latent(sp.Symbol("r", positive=True))),
    "beta": LAYERS["attention"].replace(beta=sp.Symbol("beta", positive=True)),
}


@pytest.mark.parametrize("name", USED)
def test_docstring_has_a_usage_that_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, whatever the parameters are."""
    names: dict[str, Any] = {}
    source = derive(USED[name]).to_python()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "law", raising=False)
    (tmp_path / "law.py").write_text(source, encoding="utf-8")
    usage = module_of(source).__doc__.split("Usage, with this file as law.py:\n\n")[1].split("\n\n")[0]
    *statements, call = textwrap.dedent(usage).splitlines()
    exec("\n".join(statements), names)
    densities, m = eval(call, names)
    assert len(densities) == 2
    assert all(densities >= 0)
    assert m.imag > 0
    monkeypatch.delitem(sys.modules, "law")


def test_laws_without_programs() -> None:
    both = FreeProduct((Discrete((1, 3), HALF), Discrete((1, 2), HALF)))  # type: ignore[arg-type]
    for form in ("to_python", "to_julia", "to_mathematica"):
        with pytest.raises(NotCoveredError, match="parametrization"):
            getattr(derive(both), form)()


# Other languages -------------------------------------------------------------------------------------------------


def balanced(code: str) -> bool:
    stack = []
    for character in code:
        if character in "([{":
            stack.append(character)
        elif character in ")]}" and (not stack or "([{".index(stack.pop()) != ")]}".index(character)):
            return False
    return not stack


def numbers_of(symbols: list[sp.Symbol]) -> dict[sp.Symbol, sp.Rational]:
    return {s: sp.Rational(3 + 2 * k, 7 + k) for k, s in enumerate(sorted(symbols, key=str))}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow if name == "covariance" else ())
    for name in SOURCES
])
def test_mathematica_reads_back(name: str) -> None:
    """Expressions of the package, read by sympy's parser, are those of the program."""
    d = derive(SOURCES[name])
    source = re.sub(r"\(\*.*?\*\)", "", d.to_mathematica(), flags=re.DOTALL)
    assert balanced(re.sub(r'"[^"\n]*"', "", source))
    program = d.program
    language = Mathematica(names={program.unknown: "q"} if isinstance(program, CurveProgram) else {POINT: "spectral"})
    rules = re.search(r"parameters = \{(.*?)\n\};", source, re.DOTALL)
    assert rules
    found = dict(line.strip().rstrip(",").split(" -> ") for line in rules[1].strip().splitlines())
    assert {key: sp.N(parse_mathematica(value), 15) for key, value in found.items()} == pytest.approx(
        {language.name(symbol): sp.N(value, 15) for symbol, value in program.inputs.assignments}
    )
    if isinstance(program, CurveProgram):
        point = sp.Mul(*(base**power for base, power in program.point))
        pairs = [("point", point), ("transform", program.stieltjes), ("residue", program.residue)]
        shown = {key: re.search(rf"^{key} = (.*);", source, re.MULTILINE) for key, _ in pairs}
        assert all(shown.values())
        same_values([(parse_mathematica(shown[key][1]), expected) for key, expected in pairs], language)  # type: ignore[index]
    else:
        matrices = re.search(r"^matrices = (\{.*?\n\});", source, re.DOTALL | re.MULTILINE)
        assert matrices
        entries = list(flattened(parse_mathematica(matrices[1].replace("\n", " "))))
        assert len(entries) == sum(sector.size**2 for sector in program.sectors)
        same_values(list(zip(entries, matrix_entries(program), strict=True)), language)


def test_every_entry_of_the_energy_has_its_trace() -> None:
    """A number without a trace cannot be made, so that none is taken for that of trace 0."""
    program = derive(LAYERS["gaussian"]).program
    assert isinstance(program, DysonProgram)
    found = [entry for sector in program.sectors for entry in sector.energy]
    assert {entry.unknown for entry in found} == set(range(len(program.unknowns)))
    assert not hasattr(Entry(0, 0, sp.S.One), "unknown")
    with pytest.raises(TypeError, match="unknown"):
        EnergyEntry(row=0, column=0, value=sp.S.One)  # type: ignore[call-arg]


def flattened(value: Any) -> Any:
    if isinstance(value, (list, tuple, sp.Tuple)):
        for item in value:
            yield from flattened(item)
    else:
        yield value


def matrix_entries(program: DysonProgram) -> list[sp.Expr]:
    found = []
    for sector in program.sectors:
        matrix = sp.zeros(sector.size)
        for entries, factor in ((sector.constant, 1), (sector.point, POINT)):
            for e in entries:
                matrix[e.row, e.column] += e.value * factor
        for energy in sector.energy:
            matrix[energy.row, energy.column] += energy.value * program.unknowns[energy.unknown]
        found += list(matrix)
    return found


def same_values(pairs: list[tuple[sp.Expr, sp.Expr]], language: Any) -> None:
    for found, expected in pairs:
        renamed = expected.xreplace({s: sp.Symbol(language.name(s)) for s in expected.free_symbols})
        at = numbers_of(list(found.free_symbols | renamed.free_symbols))
        assert abs(sp.N(found.subs(at) - renamed.subs(at), 20)) < 1e-15


@pytest.mark.parametrize("name", SOURCES)
def test_julia_has_the_arithmetic_of_python(name: str) -> None:
    """Values, entries and coefficients of the two modules, evaluated as the common part of both languages."""
    d = derive(SOURCES[name])
    julia = re.sub(r"#.*", "", d.to_julia().split("using LinearAlgebra")[1])
    assert balanced(re.sub(r'"""(.*?)"""|"[^"\n]*"', "", julia, flags=re.DOTALL))
    opened = len(re.findall(r"^\s*(?:function|for|while|if|try|module)\b|\bbegin\b", julia, re.MULTILINE))
    assert len(re.findall(r"^\s*end\b", julia, re.MULTILINE)) == opened + 1  # and that of the module
    if isinstance(d.program, CurveProgram):
        curve_arithmetic(julia, d.program)
    else:
        table_arithmetic(julia, d.program)


def evaluated(code: str, names: dict[str, Any]) -> Any:
    return eval(code.replace("^", "**"), {"sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1}, names)


def values_in(julia: str, program: Any) -> dict[str, Any]:
    """The lines that assign values, run in order."""
    given = {s: 0.5 + k for k, s in enumerate(program.inputs.parameters)}
    names: dict[str, Any] = {str(s): value for s, value in given.items()}
    for symbol, value in program.inputs.assignments:
        name = Julia().word(symbol.name)
        line = re.search(rf"^    {re.escape(name)}_* = (.*)$", julia, re.MULTILINE)
        assert line
        names[name] = evaluated(line[1], names)
        assert names[name] == pytest.approx(float(value.subs(given)))
    return names


def curve_arithmetic(julia: str, program: CurveProgram) -> None:
    names = {**values_in(julia, program), "q": 0.3 + 0.1j}
    at = {program.unknown: 0.3 + 0.1j, **{s: names[Julia().word(s.name)] for s, _ in program.inputs.assignments}}
    factors = re.search(r"factors = q -> \(.*?\n(.*?)\n    \)", julia, re.DOTALL)
    assert factors
    found = evaluated(f"[{factors[1]}]", names)
    for (base, power), (shown, rate, shown_power) in zip(program.point, found, strict=True):
        assert complex(base.subs(at)) == pytest.approx(complex(shown))
        assert complex(sp.diff(base, program.unknown).subs(at)) == pytest.approx(complex(rate))
        assert power == shown_power
    output = re.search(r"output = \(q, z\) -> (.*)", julia)
    assert output
    assert complex(program.stieltjes.subs(at)) == pytest.approx(complex(evaluated(output[1], names)))


def table_arithmetic(julia: str, program: DysonProgram) -> None:
    names = values_in(julia, program)
    at = dict(zip(program.inputs.parameters, (0.5 + k for k in range(9)), strict=False))
    at |= {s: names[Julia().word(s.name)] for s, _ in program.inputs.assignments}
    tables = re.search(r"tables = \[.*?\n(.*?)\n    \]", julia, re.DOTALL)
    assert tables
    for sector, (size, constant, point, energy, weights) in zip(
        program.sectors, evaluated(f"[{tables[1]}]", names), strict=True
    ):
        assert size == sector.size
        for entries, shown in ((sector.constant, constant), (sector.point, point), (sector.energy, energy)):
            for entry, (*place, value) in zip(entries, shown, strict=True):
                trace = [entry.unknown + 1] if isinstance(entry, EnergyEntry) else []
                assert place == [*trace, entry.row + 1, entry.column + 1]
                assert float(entry.value.subs(at)) == pytest.approx(value)
        assert [float(w.subs(at)) for w in sector.weights] == pytest.approx(weights)


@pytest.mark.parametrize("name", ["mha", "gaussian"])
def test_julia_tests_points_as_doubles(name: str) -> None:
    """A large integer is finite, its double is not: the test comes behind the conversion."""
    julia = derive(SOURCES[name]).to_julia()
    for kind in ("ComplexF64(z)", "Float64(x)"):
        assert re.search(rf"point = {re.escape(kind)}\n\s*isfinite\(point\)", julia)
    assert not re.search(r"(?<!regular\()\b(inv|eigmin)\(", julia)


@pytest.mark.parametrize(("language", "expected"), [
    (Python(), "math.sqrt(a)*math.expm1(b**2) - 2*b**2/(3*lambda_)"),
    (Julia(), "sqrt(a)*expm1(b^2) - 2.0*b^2/(3.0*lambda)"),
    (Mathematica(), "Sqrt[a]*(Exp[b^2] - 1) - 2*b^2/(3*lambda)"),
])
def test_syntax(language: Any, expected: str) -> None:
    a, b, c = sp.symbols("a b lambda")
    expression = -sp.Rational(2, 3) * b**2 / c + sp.sqrt(a) * (sp.exp(b**2) - 1)
    assert language.code(expression) == expected
