"""The API reference: the public names of `freeattn`, by the package where they live, from their docstrings.

```{public-names} model
```

documents the names that `freeattn` hands on from `freeattn.model`, classes with their public methods. Docstrings are
Google's sections around plain text with `code` and Unicode formulas, so what reStructuredText would take for markup in
a formula (|x|, a*b, z_) is escaped before it is read.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import freeattn
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

CODE = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*\s][^*]*\*\*)")
MARKUP = re.compile(r"([|*]|(?<=\w)_(?!\w))")


def names_of(package: str) -> list[str]:
    """The public names whose home is in a package or top-level module, in the order of `freeattn`."""
    home = f"freeattn.{package}"
    return [name for name, module in freeattn._HOME.items() if module == home or module.startswith(f"{home}.")]


class PublicNames(SphinxDirective):
    """Every public name of one package."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        names = names_of(package)
        if not names:
            raise self.error(f"freeattn hands on no name from freeattn.{package}")
        text = "\n\n".join(self.entry(name) for name in names)
        return self.parse_text_to_nodes(f"```{{eval-rst}}\n{text}\n```", allow_section_headings=False)

    @staticmethod
    def entry(name: str) -> str:
        thing = getattr(freeattn, name)
        kind = "class" if inspect.isclass(thing) else "function" if inspect.isroutine(thing) else "data"
        if inspect.isclass(thing) and issubclass(thing, Exception):
            return f".. autoexception:: freeattn.{name}"
        members = "\n   :members:\n   :inherited-members: object" if kind == "class" else ""
        return f".. auto{kind}:: freeattn.{name}{members}"


def escaped(line: str) -> str:
    """A line of a docstring with markup inside formulas escaped; `code` and **bold** stay."""
    parts = CODE.split(line)
    return "".join(part if number % 2 else MARKUP.sub(r"\\\1", part) for number, part in enumerate(parts))


def escape_formulas(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    inside = False
    for number, line in enumerate(lines):
        literal = line.startswith((">>>", "...", "    >>>", "    ...")) or (inside and line.startswith("    "))
        lines[number] = line if literal else escaped(line)
        inside = line.rstrip().endswith("::") or (inside and (not line.strip() or line.startswith("    ")))


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
    app.connect("missing-reference", public_type)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
