"""`freeattn doctor`: what is installed here, and does it work?"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import freeattn
from freeattn.cli.group import Command
from freeattn.cli.options import json_option
from freeattn.cli.records import dump_json
from freeattn.cli.reproduce import DEFAULT_STORE
from freeattn.installation import Installation, Package, examine

__all__ = ["doctor_command"]

_EPILOG = """\b
Examples:
  freeattn doctor
  freeattn doctor --json

\b
Exit codes: 0 all works, 1 a dependency is missing, too old or broken, or the
self-check failed. Extras that are not installed are no failure.
"""
_NARROWEST = 40
_INDENT = "  "


@click.command("doctor", cls=Command, epilog=_EPILOG, short_help="What is installed here, and does it work?")
@json_option
@click.pass_context
def doctor_command(context: click.Context, as_json: bool) -> None:
    """Versions of freeattn, Python and the libraries, extras, backend, threads, and one law against exact numbers.

    Each library is imported in a process of its own, so that one that is broken is named and stops nothing.
    """
    found = examine()
    if as_json:
        click.echo(dump_json({**found.to_dict(), "store": _store()}))
    else:
        click.echo("\n".join(_lines(found)))
    context.exit(1 if found.problems else 0)


def _store() -> dict[str, Any]:
    """Where finished results are kept: a file of the working folder for reproduce, elsewhere where --store says."""
    path = Path(DEFAULT_STORE).absolute()
    return {"reproduce": str(path), "exists": path.exists(), "writable": os.access(path.parent, os.W_OK | os.X_OK)}


def _lines(found: Installation) -> Iterator[str]:
    """The text; without rich, which may be what is broken."""
    width = max(shutil.get_terminal_size().columns, _NARROWEST) if sys.stdout.isatty() else None
    for title, rows in _sections(found):
        yield title
        left = max(len(name) for name, _ in rows)
        for name, text in rows:
            start = f"{_INDENT}{name:<{left}}  "
            yield from textwrap.wrap(
                text, width, initial_indent=start, subsequent_indent=" " * min(len(start), _NARROWEST // 2),
                break_long_words=False, break_on_hyphens=False,
            ) if width else [start + text]
        yield ""
    problems = found.problems
    yield f"{len(problems)} problem{'' if len(problems) == 1 else 's'}" if problems else "All works."
    yield from (f"{_INDENT}{problem}" for problem in problems)


def _sections(found: Installation) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield "Here", [
        ("freeattn", f"{freeattn.__version__}, {Path(freeattn.__file__).parent}"),
        ("Python", f"{platform.python_version()}, {sys.executable}"),
        ("platform", platform.platform()),
    ]
    if found.dependencies is None:
        yield "Dependencies", [("unknown", "freeattn is not installed here (pip install .), so that none is declared")]
    else:
        yield "Dependencies", [(one.requirement.name, _state(one)) for one in found.dependencies]
        yield "Extras", [(name, _extra(name, packages)) for name, packages in found.extras.items()]
    yield "Numbers", list(_numbers(found))


def _state(package: Package) -> str:
    allowed = f"({package.requirement.versions})" if package.requirement.versions else ""
    return f"{package.version or ''} {allowed} {package.problem or 'ok'}".strip()


def _extra(name: str, packages: Sequence[Package]) -> str:
    """What is there; where something is missing, how to get it."""
    bad = [one for one in packages if one.problem is not None]
    versions = ", ".join(f"{one.requirement.name} {one.version}" for one in packages if one.problem is None)
    if not bad:
        return f"ok: {versions}"
    if all(one.version is None for one in bad):
        missing = "" if len(bad) == len(packages) else f" ({', '.join(one.requirement.name for one in bad)} missing)"
        return f"not installed{missing}: pip install 'freeattn[{name}]'"
    wrong = "; ".join(f"{one.requirement.name}: {one.problem}" for one in bad)
    return f"{wrong}; pip install --upgrade 'freeattn[{name}]'"


def _numbers(found: Installation) -> Iterator[tuple[str, str]]:
    if found.failure is not None:
        yield "self-check", f"failed: {found.failure}"
    else:
        yield from _facts(found.facts)
    threads = {name: value for name, value in found.to_dict()["environment"].items() if value is not None}
    yield "environment", ", ".join(f"{name}={value}" for name, value in threads.items()) or "no variable is set"
    store = _store()
    place = f"{store['reproduce']}{' (exists)' if store['exists'] else ''}" if store["writable"] else "nowhere writable"
    yield "stores", f"where --store says; reproduce: {place}"


def _facts(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    check, backend, blas = facts["check"], facts["backend"], facts["blas"]
    done = check["problem"] or f"ok: {check['what']}, {check['seconds']:.2f} s"
    yield "self-check", done if check["problem"] is None else f"failed: {done}"
    yield "backend", backend["problem"] or _backend_text(backend)
    yield "BLAS", blas["problem"] or "; ".join(
        f"{one['internal_api']} {one['version']}, {one['num_threads']} threads" for one in blas["libraries"]
    ) or "none found"
    yield "cores", f"{facts['cores']} for this process (of {os.cpu_count()}); --workers all: {facts['cores']}"


def _backend_text(backend: dict[str, Any]) -> str:
    if backend["cache"] is None:
        return backend["name"]
    state = "compiled" if backend["compiled"] else "compiled at first use, a minute or two"
    writable = "" if backend["cache_writable"] else ", not writable: NUMBA_CACHE_DIR sets another"
    return f"{backend['name']} ({state}); cache {backend['cache']}{writable}"
