"""The API reference: the public names of `freeattn`, by the package where they live, from their docstrings.

```{public-names}
```

is a section for each package that has public names, classes with their public methods; a new name needs no edit here.
Docstrings are Google's sections around plain text with `code` and Unicode formulas, so what reStructuredText would
take for markup in a formula (|x|, a*b, z_) is escaped before it is read.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

import freeattn

CODE = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*\s][^*]*\*\*)")
COLON = "\ue000"  # stands for a colon while napoleon reads
MARKUP = re.compile(r"([|*]|(?<=\w)_(?!\w))")


TITLES = {
    "model": "Layers and matrices",
    "theory": "Derivations",
    "numerics": "Laws",
    "predict": "Predictions",
    "evidence": "Simulation",
    "adapters": "Configuration files, modules, spectra",
    "findings": "Reports",
    "report": "Pictures",
    "runs": "Runs",
    "errors": "Errors",
}


def public_names() -> dict[str, list[str]]:
    """Full public names by package, in the order of `TITLES`; packages handed on as a whole with the rest of theirs."""
    found: dict[str, list[str]] = {}
    for name, home in freeattn._HOME.items():
        found.setdefault(home.split(".")[1], []).append(f"freeattn.{name}")
    handed_on = [getattr(freeattn, name) for name in freeattn._HOME]
    for package in (thing for name in freeattn.__all__ if inspect.ismodule(thing := getattr(freeattn, name))):
        inner = [name for name in package.__all__ if not any(getattr(package, name) is thing for thing in handed_on)]
        found.setdefault(package.__name__.split(".")[1], []).extend(f"{package.__name__}.{name}" for name in inner)
    order = list(TITLES)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


class PublicNames(SphinxDirective):
    """Every public name, by package."""

    def run(self) -> list[nodes.Node]:
        parts = []
        for package, names in public_names().items():
            entries = "\n\n".join(entry(name) for name in names)
            parts.append(f"## {TITLES.get(package, package)}\n\n```{{eval-rst}}\n{entries}\n```")
        return self.parse_text_to_nodes("\n\n".join(parts), allow_section_headings=True)


def entry(name: str) -> str:
    """The autodoc directive of a public name."""
    home, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(home), last)
    if not inspect.isclass(thing):
        return f".. autofunction:: {name}" if inspect.isroutine(thing) else f".. py:data:: {name}"
    if issubclass(thing, Exception):
        return f".. autoexception:: {name}"
    return f".. autoclass:: {name}\n   :members:\n   :inherited-members: object"


def escaped(line: str) -> str:
    """A line of a docstring with markup inside formulas escaped; `code` and **bold** stay, also inside a word."""
    parts = CODE.split(line)
    written = [part if number % 2 else MARKUP.sub(r"\\\1", part) for number, part in enumerate(parts)]
    for number in range(1, len(parts), 2):
        before, after = parts[number - 1][-1:], parts[number + 1][:1]
        written[number] = ("\\ " if before.isalnum() else "") + parts[number] + ("\\ " if after.isalnum() else "")
    return "".join(written)


def escape_formulas(_app: Sphinx, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Escape formulas, and colons in the first line of a property, which napoleon would read as `type: meaning`."""
    inside = False
    for number, line in enumerate(lines):
        literal = line.startswith((">>>", "...", "    >>>", "    ...")) or (inside and line.startswith("    "))
        lines[number] = line if literal else escaped(line)
        inside = line.rstrip().endswith("::") or (inside and (not line.strip() or line.startswith("    ")))
    if lines and what in ("property", "attribute", "data"):
        lines[0] = lines[0].replace(":", COLON)


def restore_colons(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = [line.replace(COLON, ":") for line in lines]


def dataclass_signature(
    _app: Sphinx, _what: str, _name: str, thing: Any, _options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """The fields of a dataclass, whatever its `__new__` accepts."""
    if not (inspect.isclass(thing) and dataclasses.is_dataclass(thing)):
        return signature, returns
    found = inspect.signature(thing.__init__)
    fields = [parameter for name, parameter in found.parameters.items() if name != "self"]
    return stringify_signature(found.replace(parameters=fields, return_annotation=found.empty)), None


def public_type(
    _app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """A type named by the module where it lives is the public name of it, or plain text if it has none."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    if name not in freeattn._HOME or f"freeattn.{name}" not in env.get_domain("py").objects:
        return content
    target = env.get_domain("py").objects[f"freeattn.{name}"]
    reference = nodes.reference("", "", internal=True)
    builder = _app.builder
    reference["refuri"] = builder.get_relative_uri(node["refdoc"], target.docname) + "#" + target.node_id
    reference += content
    return reference


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", restore_colons, priority=900)  # after it
    app.connect("autodoc-process-signature", dataclass_signature)
    app.connect("missing-reference", public_type)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
