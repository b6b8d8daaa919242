"""The command line: parses, calls, prints. `main` is the entry point of the `freeattn` script."""

from __future__ import annotations

import gc

import click

import freeattn
from freeattn.cli.architectures import architectures_command
from freeattn.cli.compare import compare_command
from freeattn.cli.converge import converge_command
from freeattn.cli.derive import derive_command
from freeattn.cli.doctor import doctor_command
from freeattn.cli.group import CommandGroup
from freeattn.cli.law import law_command
from freeattn.cli.logs import say_logs
from freeattn.cli.predict import predict_command
from freeattn.cli.report import report_command
from freeattn.cli.reproduce import reproduce_command
from freeattn.cli.shell import completion_command
from freeattn.cli.sweep import sweep_command
from freeattn.cli.verify import verify_command

__all__ = ["commands", "main"]

_COLLECTED_AT = 100_000  # new objects, instead of 700: importing sympy makes many, and all of them stay

_EPILOG = """\b
Examples:
  freeattn law bert-base --n-tokens 512
  freeattn law --n-tokens 512 --d-model 768 --n-heads 12 --d-key 64 --json
  freeattn derive --symbolic --format document -o law.tex
  freeattn verify bert-base --n-tokens 512 --draws 10 --seed 0
  freeattn converge bert-base --n-tokens 512 --sizes 128,256,512
  freeattn sweep bert-base --n-tokens 512 --over beta=0.5:2:0.25
  freeattn architectures llama
  freeattn predict ridge bert-base --n-tokens 512
  freeattn compare bert-base bert-large --n-tokens 512
  freeattn report bert-base --n-tokens 512 -o bert-base.html
  freeattn reproduce fig-2d
  freeattn doctor

\b
Exit codes: 0 done, 1 a check failed or a solver did not converge, 2 bad
input, 130 interrupted by Ctrl-C.
Data goes to stdout, messages to stderr.

\b
Completion; put the line for your shell into its start file:
  bash  eval "$(freeattn completion bash)"
  zsh   eval "$(freeattn completion zsh)"
  fish  freeattn completion fish | source
"""


@click.group(
    name="freeattn", cls=CommandGroup, invoke_without_command=True, epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(freeattn.__version__, message="freeattn %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Limiting spectral laws of attention layers: the numbers, the equations and the evidence."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (
    law_command, derive_command, verify_command, converge_command, sweep_command, reproduce_command,
    architectures_command, predict_command, compare_command, report_command, doctor_command,
    completion_command,
):
    commands.add_command(_command)


def main() -> None:
    """Run the command line on `sys.argv`; exits with 0, 1 (a check failed) or 2 (bad input)."""
    gc.set_threshold(_COLLECTED_AT)
    say_logs()
    commands.main(prog_name="freeattn")
