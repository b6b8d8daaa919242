"""The pieces of the benchmark against other packages: references, errors, processes, tables; no network is used."""

from __future__ import annotations

import importlib
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import peer_environments
import peer_tables
import peers
import pytest
import sympy as sp
from peer_environments import ADAPTERS, NotRun, Package, answers, environment
from peer_references import LAWS, Errors, Reference, errors

import freeattn as fa
from freeattn.evidence.compare import LawTable, relative_w1
from freeattn.theory.transforms import FreeProduct, MarchenkoPastur

BY_KEY = {law.key: law for law in LAWS}
METHOD = ("fake", "a fake package")


def by_freeattn(law: Reference) -> fa.SpectralLaw:
    factors = tuple(MarchenkoPastur(sp.Rational(c.numerator, c.denominator)) for c in law.ratios)
    return fa.law(factors[0] if len(factors) == 1 else FreeProduct(factors))


# References ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.key)
def test_references_against_freeattn(law: Reference) -> None:
    mine, points = by_freeattn(law), law.points()[[0, 3, 50, 400, 800, 999]]
    np.testing.assert_allclose(mine.density(points), law.density(points), rtol=1e-12)
    np.testing.assert_allclose(mine.edges, [[float(end) for end in law.edges()]], rtol=1e-13)
    assert sum(atom.weight for atom in mine.atoms) == law.atom


def test_root_choice_against_a_closed_form() -> None:
    """Three Gaussians: x = sin⁴4φ/(sin φ sin³3φ), ρ = sin²φ sin²3φ/(π sin³4φ), 0 < φ < π/4."""
    for angle in (0.01, 0.2, 0.5, 0.7, 0.78):
        x = math.sin(4 * angle) ** 4 / (math.sin(angle) * math.sin(3 * angle) ** 3)
        density = math.sin(angle) ** 2 * math.sin(3 * angle) ** 2 / (math.pi * math.sin(4 * angle) ** 3)
        assert float(BY_KEY["three-gaussians"].density_to(x)) == pytest.approx(density, rel=1e-11)


def test_polynomial_against_the_explicit_density() -> None:
    law = BY_KEY["mp-2"]
    points = law.points()[::99]
    assert [float(law.density_to(x)) for x in points] == pytest.approx(list(law.density(points)), rel=1e-14)


# Errors ----------------------------------------------------------------------------------------------------------


def answer_of(law: Reference, exact: np.ndarray, **changes: Any) -> dict[str, Any]:
    right = {
        "density": exact.tolist(), "outside": [0.0] * 100, "atoms": [[0.0, float(law.atom)]] if law.atom else [],
        "edges": [[float(end) for end in law.edges()]],
    }
    return {**right, **changes}


def test_errors_of_right_and_wrong_answers() -> None:
    law = BY_KEY["mp-2"]
    exact = law.density(law.points())

    def found(**changes: Any) -> Errors:
        return errors(law, exact, answer_of(law, exact, **changes))

    right = found()
    assert (right.mass, right.atom, right.edges, right.density, right.outside, right.bands) == (0, 0, 0, 0, 0, 1)
    bare = found(atoms=None, edges=None, candidates=[0.0, *map(float, law.edges())])
    assert (bare.mass, bare.atom, bare.edges, bare.bands, bare.candidates) == (-0.5, None, 0, None, 3)
    assert found(density=(1.1 * exact).tolist()).mass == pytest.approx(0.05, rel=1e-4)
    assert found(atoms=[[0.0, 0.5], [3.0, 0.125]]).atom == 0.125
    left, right_end = map(float, law.edges())
    split = found(edges=[[left + 0.25, 2.0], [3.0, right_end]])
    assert (split.edges, split.bands) == (0.25, 2)
    assert found(density=[math.nan] * len(exact)).density == exact.max()
    assert found(outside=[0.0] * 99 + [-0.25]).outside == 0.25


# Processes -------------------------------------------------------------------------------------------------------


def script(folder: Path, text: str) -> str:
    path = folder / "run_fake.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_what_fails_is_not_run(tmp_path: Path) -> None:
    python = Path(sys.executable)

    def one(text: str, limit: float = 60) -> Any:
        return answers(python, script(tmp_path, text), [{}], limit)[0]

    assert one("raise SystemExit('no such law')") == NotRun("no such law")
    assert one("import no_such_package") == NotRun("ModuleNotFoundError: No module named 'no_such_package'")
    assert one("import time; time.sleep(60)", 0.2) == NotRun("more than 0.2 s")
    assert one("") == NotRun("no answer")
    assert isinstance(answers(tmp_path / "no-python", "run_freeattn.py", [{}], 60)[0], NotRun)
    assert answers(NotRun("not installed"), "run_freeattn.py", [{}, {}], 60) == [NotRun("not installed")] * 2


def test_one_law_that_fails_leaves_the_others(tmp_path: Path) -> None:
    """Answers until then are kept, and a new process goes on behind it."""
    adapter = script(
        tmp_path,
        f"import sys; sys.path.insert(0, {str(ADAPTERS)!r}); from protocol import serve\n"
        "serve(lambda request: {'half': 1 / request['number']})",
    )
    found = answers(Path(sys.executable), adapter, [{"number": k} for k in (2, 0, 4, 5)], 60)
    assert found == [{"half": 0.5}, NotRun("ZeroDivisionError: division by zero"), {"half": 0.25}, {"half": 0.2}]


def test_what_cannot_be_installed_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_environments, "INSTALL_LIMIT", 1e-3)
    found = environment(Package("fake", "run_fake.py", "fake==1.0", (METHOD,)), tmp_path)
    assert found == NotRun("could not be installed: more than 0.001 s")
    assert not list(tmp_path.iterdir())
    assert environment(Package("fake", None, None, (METHOD,), "no numbers"), tmp_path) == NotRun("no numbers")


@pytest.mark.slow
def test_freeattn_answers_like_any_package() -> None:
    law = BY_KEY["mp-2"]
    exact = law.density(law.points())
    for method, _ in peer_environments.PACKAGES[0].methods:
        request = {
            "ratios": [2.0], "points": law.points().tolist(), "outside": law.outside().tolist(), "repeats": 1,
            "method": method,
        }
        (found,) = answers(Path(sys.executable), "run_freeattn.py", [request], 120)
        assert isinstance(found, dict), found
        assert set(found["seconds"]) == {"first", "warm", "extras", "runs"}
        measured = errors(law, exact, found)
        assert max(abs(measured.mass), measured.atom, measured.edges, measured.density, measured.outside) < 1e-13


# What adapters add -----------------------------------------------------------------------------------------------


def test_simulation_has_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ADAPTERS))
    simulation = importlib.import_module("measure_simulation")
    spec = simulation.layer(256)
    law = fa.law(spec)
    assert law.mean == pytest.approx(fa.law(fa.architecture("bert-base", n_tokens=512)).mean, rel=1e-14)
    assert relative_w1(simulation.spectrum(simulation.draw(spec, 0)), LawTable.of(law, 256)) < 0.1


def test_linearization_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corner of (diag(z, 0, …) − L)⁻¹ is (z − G H Hᵀ Gᵀ)⁻¹, for any Hermitian letters."""
    package = types.ModuleType("free_matrix_laws")
    package.transforms = types.ModuleType("transforms")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "free_matrix_laws", package)
    monkeypatch.syspath_prepend(str(ADAPTERS))
    adapter = importlib.import_module("run_free_matrix_laws")
    monkeypatch.delitem(sys.modules, "run_free_matrix_laws")
    rng, size, z = np.random.default_rng(0), 3, 2 + 1j
    constant, letters = adapter.linearization(2)
    drawn = rng.standard_normal((2, 4, size, size))
    hermitian = [a + a.conj().T for a in drawn[0] + 1j * drawn[1]]
    pencil = np.kron(constant, np.eye(size)) + sum(
        np.kron(letter, a) for letter, a in zip(letters, hermitian, strict=True)
    )
    first, second = ((a + 1j * b) / math.sqrt(2) for a, b in (hermitian[:2], hermitian[2:]))
    product = first @ second
    corner = np.linalg.inv(np.kron(np.diag([z, 0, 0, 0]), np.eye(size)) - pencil)[:size, :size]
    np.testing.assert_allclose(corner, np.linalg.inv(z * np.eye(size) - product @ product.conj().T), rtol=1e-9)
    with pytest.raises(adapter.CannotError, match="rectangular"):
        adapter.LinearizationMethod().prepare((0.5, 0.8))


# Tables ----------------------------------------------------------------------------------------------------------


def fake_result() -> dict[str, Any]:
    law = BY_KEY["mp-2"]
    exact = law.density(law.points())
    seconds = {"first": 2.0, "warm": 0.25, "extras": 0.1, "runs": 3}
    packages = [
        (Package("freeattn", "", None, (METHOD,)), {**answer_of(law, exact), "seconds": seconds}),
        (Package("rmtool", "", None, (METHOD,)), {**answer_of(law, exact, atoms=None, edges=None, candidates=[0.5]),
                                                  "seconds": {**seconds, "warm": 1.0}}),
        (Package("cannot", "", None, (METHOD,)), {"cannot": "no products"}),
        (Package("absent", "", None, (METHOD,)), NotRun("could not be installed: no network")),
    ]
    rows = [peers.row(package, (package.name, package.name), found, law, exact) for package, found in packages]
    own = {"model": "K = V", **dict.fromkeys(peer_tables.STAGES, 0.002)}
    drawn = {
        "n_tokens": 1024, "seconds": {"draw": 1.5, "diagonalize": 0.5, "law": 0.25},
        "errors": dict.fromkeys(peer_tables.STATISTICS, 0.01),
    }
    return {
        "machine": {"date": "today"}, "own": {"rows": [own]}, "simulation": drawn,
        "laws": [{"key": law.key, "title": law.title, "rows": rows}],
    }


def test_report_in_text_and_markdown() -> None:
    result = fake_result()
    lines = [" ".join(line.split()) for line in peer_tables.report(result).splitlines()]
    assert "K = V" + 6 * " 2 ms" in lines
    assert "ratio of times 8 1" in lines
    assert "freeattn 250 ms 1 0 0 0 0 0" in lines
    assert "rmtool 1 s 4 5.0e-01 – 5.3e+00 of 1 candidates 0 0" in lines
    assert "cannot cannot – – – – – –" in lines
    assert "absent all not run could not be installed: no network" in lines
    assert "rmtool MP(2), atom 1/2 2 s" in lines
    markdown = peer_tables.report(result, markdown=True)
    assert "| absent | all | not run | could not be installed: no network |" in markdown
    assert "| cannot | MP(2), atom 1/2 | cannot | no products |" in markdown
    tables = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(tables) == 3 + 9 + 6 + 4 + 4


def test_tables_in_a_page() -> None:
    page = f"# Head\n\n{peer_tables.BEGIN}old\n{peer_tables.END}\n\nTail\n"
    assert peer_tables.has_marks(page)
    assert not peer_tables.has_marks("# Head\n")
    once = peer_tables.updated(page, "new")
    assert once == f"# Head\n\n{peer_tables.BEGIN}\nnew\n\n{peer_tables.END}\n\nTail\n"
    assert peer_tables.updated(once, "new") == once
    assert peer_tables.has_marks((Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8"))


def test_a_part_that_fails_is_reported() -> None:
    shown = peer_tables.report({"machine": {}, "own": {"reason": "not run: more than 1 s"}})
    assert "not run: more than 1 s" in shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(12.345, "12.3 s"), (1.0, "1 s"), (0.0123, "12.3 ms"), (4.2e-6, "4.2 µs")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert peer_tables.duration(seconds) == shown
