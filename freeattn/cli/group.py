"""The command group: the one place where an exception becomes a line on stderr and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from freeattn.errors import BranchError, ConvergenceError, FreeattnError, InputError, did_you_mean

__all__ = ["STORE", "Command", "CommandGroup", "describe", "say"]

STORE = "freeattn.store"  # in the meta data of the context: where the command that runs keeps finished results

_FAILED = 1
_BAD_INPUT = 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_CLOSED_PIPE = 141  # 128 + SIGPIPE


class _InterruptedError(Exception):
    """KeyboardInterrupt under another name: click would print a blank line for it first."""


class _ClosedPipeError(Exception):
    """BrokenPipeError under another name: click would exit with 1, which says that a check failed."""


def say(kind: str, message: str) -> None:
    """One line on stderr, whatever the message contains."""
    click.echo(f"freeattn: {kind}: {' '.join(message.split())}", err=True)


def describe(error: FreeattnError) -> str:
    """An error in the words of the command line, where values are texts without quotes."""
    if isinstance(error, InputError):
        return error.sentence(str(error.value).strip() or repr(error.value))
    return str(error)


def _usage(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        near = ", ".join(sorted(error.possibilities or ()))
        hint = f"one of the options listed by --help{f'; did you mean {near}?' if near else ''}"
        return f"option = {error.option_name} is not allowed; expected {hint}"
    return error.format_message()


def _kept(store: str | None) -> str:
    """What is left of a command that was interrupted where nobody counts results: before them, between, or behind."""
    if store is None:
        return "interrupted: nothing is kept"
    return f"interrupted: finished results are kept in {store}; run the same again to go on from there"


def _close_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not meet the closed pipe again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _prepare_streams() -> None:
    """Nothing fails because a stream is closed or cannot show a character (its escape is written)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with >&- or 2>&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _ending_signals() -> Iterator[list[int]]:
    """A request to end (SIGTERM, as batch systems send it) is taken like Ctrl-C: what is kept is said.

    Yields the signals received. Only the main thread may set handlers.
    """
    received: list[int] = []

    def interrupt(number: int, frame: object) -> NoReturn:
        del frame
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


class Command(click.Command):
    """A command that tells what it takes when it is given one argument too many."""

    allow_extra_args = True  # `parse_args` refuses them, in other words than click's

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            arguments = (one for one in self.params if isinstance(one, click.Argument))
            taken = [(one.metavar or one.human_readable_name).strip("[]") for one in arguments]
            if taken == ["SPEC"]:
                allowed = "one layer at most; freeattn compare and freeattn report take several (options start with --)"
            else:
                allowed = f"at most one {taken[0]}" if taken else f"options only, as in freeattn {self.name} --help"
            raise InputError("argument", " ".join(ctx.args), allowed)
        return []


class CommandGroup(click.Group):
    """A click group that ends with the exit codes of freeattn: 0, 1 (a check failed), 2 (bad input)."""

    command_class = Command

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        extra["standalone_mode"] = False
        _prepare_streams()
        sys.exit(self._exit_code(args, extra))

    def _exit_code(self, args: Sequence[Any], extra: dict[str, Any]) -> int:
        with _ending_signals() as received:
            try:
                code = self._code(args, extra)
            except KeyboardInterrupt:  # before a command has begun, or a second one while the first was told
                say("error", "interrupted")
                code = _INTERRUPTED
        return 128 + received[0] if code == _INTERRUPTED and received else code

    def _code(self, args: Sequence[Any], extra: dict[str, Any]) -> int:
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
            return int(code or 0)
        except (ConvergenceError, BranchError) as error:
            say("error", str(error))
            return _FAILED
        except FreeattnError as error:
            say("error", describe(error))
        except click.ClickException as error:
            say("error", _usage(error))
        except (_InterruptedError, click.Abort) as error:
            say("error", str(error) or "interrupted")
            return _INTERRUPTED
        except (_ClosedPipeError, BrokenPipeError):  # the second by the last flush
            _close_stdout()
            return _CLOSED_PIPE
        except OSError as error:
            say("error", f"{error.filename or 'output'} cannot be written: {error.strerror or error}")
        except MemoryError as error:
            say("error", f"not enough memory; a smaller n_tokens needs less ({error or 'no details'})")
        return _BAD_INPUT

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            counted = str(error) if STORE in ctx.meta else ""  # what a command without --store cannot keep is nobody's
            raise _InterruptedError(counted or _kept(ctx.meta.get(STORE))) from None
        except BrokenPipeError:
            raise _ClosedPipeError from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            raise InputError("command", name, f"{', '.join(known)}{did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)  # in the order of use, not of the alphabet
