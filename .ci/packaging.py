"""The package as its users get it: sdist and wheel, each extra alone, the lowest versions that are declared.

    python .ci/packaging.py FOLDER [build typing extras lowest] [--python PYTHON] [--versions lowest|newest]

FOLDER receives the distributions and the environments. Without names of steps all run; extras run next to lowest.
--python chooses the Python of the lowest versions (default: 3.10 where there is one, else this one).
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from freeattn.installation.requirements import Requirement, parsed_requirements  # noqa: E402

STEPS = ("build", "typing", "extras", "lowest")
LOWEST_PYTHON = "3.10"
TESTED_EXTRAS = ("plot", "fast", "dask", "parquet", "report")
TEST_TOOLS = ("pytest", "hypothesis", "pytest-xdist")
# What the lowest versions were made for; newer ones deprecate names that matplotlib 3.10.0 uses, a warning there.
OF_THEIR_TIME = ("pyparsing<3.3\n",)
# Fast and broad: every package, both backends, all libraries but the tools of docs/.
SELECTION = (
    "tests/installation", "tests/model", "tests/runs", "tests/report", "tests/transforms", "tests/pencil/test_laws.py",
    "tests/numerics/test_closed_forms.py", "tests/numerics/test_law_face.py", "tests/numerics/test_lifting.py",
    "tests/numerics/test_two_bands.py", "tests/predict/test_readouts.py", "tests/predict/test_flow.py",
    "tests/evidence/test_sampling.py", "tests/evidence/test_spectrum.py",
    "tests/cli/test_bad_input.py", "tests/cli/test_law_command.py", "tests/cli/test_files.py",
    "tests/cli/test_architectures_command.py",
)
SMALL = "--n-tokens 64 --d-model 64 --n-heads 4 --d-key 16 --d-value 16"
DASK = """
import freeattn as fa
from distributed import Client
if __name__ == "__main__":
    spec = fa.Attention(n_tokens=64, d_model=64, n_heads=4, d_key=16, output="attention")
    with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        far = fa.verify(spec, draws=3, executor=client.get_executor())
    assert far.to_dict() == fa.verify(spec, draws=3).to_dict()
"""
FAST = """
import freeattn as fa
from freeattn.numerics.backends import backend
assert backend() == "compiled"
law = fa.law(fa.Attention(n_tokens=64, d_model=64, n_heads=4, d_key=16, output="values", d_value=16, inputs="gaussian"))
assert abs(law.cdf(law.edges[-1][1]) - 1) < 1e-9
"""
BROWSER = "from playwright.sync_api import sync_playwright"


class Extra(NamedTuple):
    """What an extra is for: a command, or Python; and how what asks for it fails without it (None: nothing asks)."""

    name: str
    command: str | None = None
    python: str | None = None
    refused: str | None = None


EXTRAS = (
    Extra("plot", command=f"law {SMALL} --plot law.png"),
    Extra("parquet", command=f"sweep {SMALL} --over beta=0.5,1 --parquet table.parquet"),
    Extra("report", command=f"report {SMALL} --draws 0 -o layer.html"),
    Extra("dask", python=DASK, refused="No module named 'distributed'"),
    Extra("browser", python=BROWSER, refused="No module named 'playwright'"),
    Extra("fast", python=FAST, refused='install "freeattn[fast]"'),
    Extra("docs", python="import furo, latex2mathml, matplotlib, myst_nb, sphinx, sphinx_copybutton",
          refused="No module named 'furo'"),  # the site itself is built by tests/test_site.py
)
# A user's own module: every line must have a type that mypy knows.
DOWNSTREAM = '''
import freeattn as fa
from fractions import Fraction

spec: fa.Attention = fa.architecture("bert-base", n_tokens=512)
law: fa.SpectralLaw = fa.law(spec)
mean: float = float(law.mean)
right: float = law.edges[-1][1]
weights = [atom.weight for atom in law.atoms]


def ratio(layer: fa.Attention) -> str:
    return str(layer.gamma_key)


def refused() -> str:
    try:
        fa.Attention(n_tokens=0, d_model=1, n_heads=1, d_key=1)
    except fa.InputError as error:
        return error.field
    return str(Fraction(1, 2))


reveal_type(law)
reveal_type(spec)
'''


class Environment:
    """A virtual environment; `below` is one whose libraries it sees too."""

    def __init__(self, folder: Path, python: str = sys.executable, below: Environment | None = None) -> None:
        self.folder, self.python = folder, folder / "bin" / "python"
        call([python, "-m", "venv", "--clear", str(folder)])  # pip would keep an older wheel of the same version
        if below is not None:
            (self.site() / "below.pth").write_text(f"{below.site()}\n")

    def site(self) -> Path:
        """The folder of its libraries."""
        (found,) = self.folder.glob("lib/python3.*/site-packages")
        return found

    def install(self, *what: str) -> None:
        """With pip, which says nothing but errors; only what is imported is compiled, and then."""
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
        call([str(self.python), *pip, *what])

    def run(self, *arguments: str, folder: Path, fails: bool = False, **variables: str) -> str:
        """What a Python process prints, without the project on its path."""
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return call([str(self.python), *arguments], folder, fails, environment | variables)


def call(
    command: Sequence[str], folder: Path | None = None, fails: bool = False, environment: dict[str, str] | None = None
) -> str:
    """Output and messages of a command that must succeed, or must not."""
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(command)[:500]}\nended with exit code {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


class Distributions(NamedTuple):
    """The sdist and the wheel that was built of it."""

    sdist: Path
    wheel: Path

    def requirements(self, extra: str | None = None) -> list[Requirement]:
        """As the wheel declares them."""
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = email.message_from_bytes(archive.read(name))
        return parsed_requirements(metadata.get_all("Requires-Dist") or [], extra)

    def with_extras(self, *extras: str) -> str:
        """The wheel as pip takes it."""
        return f"freeattn[{','.join(extras)}] @ {self.wheel.as_uri()}" if extras else str(self.wheel)


def build(folder: Path) -> Distributions:
    """Build both in an environment of their own; compare what they hold with the source."""
    tools = Environment(folder / "build")
    tools.install("build")
    out = folder / "dist"
    shutil.rmtree(out, ignore_errors=True)
    tools.run("-m", "build", "--outdir", str(out), str(ROOT), folder=folder)  # the wheel is made of the sdist
    made = found(folder)
    with zipfile.ZipFile(made.wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    same("wheel", inside, {str(path.relative_to(ROOT)) for path in source_files(ROOT / "freeattn")})
    with tarfile.open(made.sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(folder / "sdist", filter="data")
    parts = ("freeattn", "tests", "docs", "derivations")
    wanted = {str(path.relative_to(ROOT)) for part in parts for path in source_files(ROOT / part)}
    files = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", ".ci/run", ".ci/packaging.py"}
    same("sdist", inside & (wanted | files), wanted | files)
    print(f"{made.sdist.name}: {len(inside)} files; {made.wheel.name}: as freeattn/, py.typed and data included")
    return made


def found(folder: Path) -> Distributions:
    """The distributions that were built there."""
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return Distributions(sdist, wheel)


def source_files(folder: Path) -> Iterable[Path]:
    """Files that belong to the source, caches apart."""
    return (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def same(what: str, inside: set[str], source: set[str]) -> None:
    if inside != source:
        sys.exit(f"{what}: missing {sorted(source - inside)}, too many {sorted(inside - source)}")


def sdist_folder(folder: Path) -> Path:
    """Where the sdist is unpacked."""
    (unpacked,) = (folder / "sdist").iterdir()
    return unpacked


def typing(folder: Path, made: Distributions) -> None:
    """A user's module against the installed wheel, with mypy as strict as it gets."""
    user = Environment(folder / "typing")
    user.install(str(made.wheel), "mypy")
    (folder / "downstream.py").write_text(DOWNSTREAM)
    said = user.run("-m", "mypy", "--strict", "downstream.py", folder=folder)
    for name, kind in (("SpectralLaw", "SpectralLaw"), ("Attention", "Attention")):
        if not re.search(rf'Revealed type is "freeattn\S*\.{kind}"', said):
            sys.exit(f"the type of {name} is lost: {said}")
    print("a module of a user type-checks")


def extras(folder: Path, made: Distributions) -> None:
    """Each extra in an environment of its own above one that has the wheel and what it depends on."""
    base = Environment(folder / "base")
    base.install(str(made.wheel))
    work = folder / "extras-work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(sdist_folder(folder) / "docs", work / "docs")
    for name in ("CHANGELOG.md", "README.md", "derivations"):  # which pages of docs/ include
        source = sdist_folder(folder) / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, work / name)
    print(base.run("-m", "freeattn", "doctor", folder=work).splitlines()[-1])
    for extra in EXTRAS:
        started = time.monotonic()
        arguments = ["-m", "freeattn", *extra.command.split()] if extra.command else ["-c", str(extra.python)]
        asked = {"FREEATTN_BACKEND": "compiled"} if extra.name == "fast" else {}
        said = base.run(*arguments, folder=work, fails=True, **asked)
        if (extra.refused or f'pip install "freeattn[{extra.name}]"') not in said:
            sys.exit(f"without the extra {extra.name} nothing names it: {said}")
        own = Environment(folder / f"extra-{extra.name}", below=base)
        own.install(made.with_extras(extra.name))
        own.run(*arguments, folder=work)
        print(f"extra {extra.name}: refused without, works with it ({time.monotonic() - started:.0f} s)")


def lowest_python() -> str:
    """Python 3.10, on the PATH or of pyenv; this one where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for candidate in (f"python{LOWEST_PYTHON}", *sorted(pyenv.glob(f"versions/{LOWEST_PYTHON}.*/bin/python"))):
        path = shutil.which(candidate)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    print(f"no Python {LOWEST_PYTHON} here: the lowest versions run on {sys.version.split()[0]}")
    return sys.executable


def constraints(made: Distributions) -> str:
    """name==version of every lower bound."""
    needed = [one for extra in (None, *TESTED_EXTRAS) for one in made.requirements(extra)]
    needed += [one for one in made.requirements("test") if one.name in TEST_TOOLS]
    bounds = {one.name: re.search(r">=([\w.]+)", one.versions) for one in needed}
    bounds["distributed"] = bounds["dask"]  # one release of both
    lines = [f"{name}=={bound[1]}\n" for name, bound in bounds.items() if bound]
    return "".join([*lines, *OF_THEIR_TIME])


def lowest(folder: Path, made: Distributions, python: str | None, versions: str = "lowest") -> None:
    """The tests of the sdist against the wheel, with the lowest versions that are declared."""
    python = python or lowest_python()
    said = call([python, "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"]).strip()
    own = Environment(folder / f"{versions}-{said}", python=python)
    chosen = folder / "lowest.txt"
    chosen.write_text(constraints(made))
    own.install(*(("-c", str(chosen)) if versions == "lowest" else ()), made.with_extras(*TESTED_EXTRAS), *TEST_TOOLS)
    apart = folder / f"tests-{versions}-{said}"  # without freeattn/: the wheel is what is tested
    shutil.copytree(sdist_folder(folder), apart, dirs_exist_ok=True, ignore=shutil.ignore_patterns("freeattn"))
    tests = ("-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *SELECTION)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    lines = own.run(*tests, folder=apart, **threads).strip().splitlines()
    print(f"Python {said}, {versions} versions: {lines[-1].strip('= ')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)} (default: all)")
    parser.add_argument("--python")
    parser.add_argument("--versions", choices=("lowest", "newest"), default="lowest")
    given = parser.parse_args()
    folder, steps = given.folder.resolve(), given.steps or list(STEPS)
    if unknown := [name for name in steps if name not in STEPS]:
        parser.error(f"{', '.join(unknown)}: steps are {', '.join(STEPS)}")
    folder.mkdir(parents=True, exist_ok=True)
    made = build(folder) if "build" in steps else found(folder)
    jobs = {
        "lowest": lambda: lowest(folder, made, given.python, given.versions),
        "extras": lambda: (typing(folder, made) if "typing" in steps else None, extras(folder, made)),
        "typing": lambda: typing(folder, made),
    }
    chosen = [name for name in jobs if name in steps and (name != "typing" or "extras" not in steps)]
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(jobs[name]) for name in chosen]
        for one in running:
            one.result()


if __name__ == "__main__":
    main()
