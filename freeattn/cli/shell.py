"""`freeattn completion`: the lines that a shell needs to complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from freeattn.cli.completion import complete_from
from freeattn.cli.group import Command
from freeattn.errors import InputError

__all__ = ["COMPLETE_VARIABLE", "completion_command"]

COMPLETE_VARIABLE = "_FREEATTN_COMPLETE"
_PROGRAM = "freeattn"
_SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\b
Examples:
  eval "$(freeattn completion bash)"          # in ~/.bashrc
  eval "$(freeattn completion zsh)"           # in ~/.zshrc
  freeattn completion fish | source           # in ~/.config/fish/config.fish
"""


@click.command("completion", cls=Command, epilog=_EPILOG, short_help="The lines that complete freeattn in a shell.")
@click.argument("shell", required=False, metavar="[bash|zsh|fish]", shell_complete=complete_from(_SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str | None) -> None:
    """Print the function with which SHELL completes commands, options, presets, fields and files."""
    if shell not in _SHELLS:
        raise InputError("shell", shell or "(not given)", f"one of {', '.join(_SHELLS)}")
    kind = get_completion_class(shell)
    assert kind is not None  # click knows all three
    click.echo(kind(context.find_root().command, {}, _PROGRAM, COMPLETE_VARIABLE).source())
