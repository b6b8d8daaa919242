"""What completes in a shell: presets, files, choices, fields. Loads the list of presets at most."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

import freeattn
from freeattn.cli.spec import CHOICES

__all__ = ["complete_files", "complete_from", "complete_grid", "complete_layers", "complete_spec"]

_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_BREAKS = "=:"  # where bash ends a word, unlike other shells


def complete_from(names: Sequence[str]) -> _Complete:
    """One of a few names."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del context, parameter
        return _items(names, incomplete)

    return complete


def complete_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A file, which the shell finds itself."""
    del context, parameter
    return [CompletionItem(incomplete, type="file")]


def complete_spec(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A preset, or a configuration file where none begins so."""
    names = (preset.name for preset in freeattn.architectures())
    return _items(names, incomplete) or complete_files(context, parameter, incomplete)


def complete_layers(fields: Sequence[str]) -> _Complete:
    """A preset or file with fields of its own: NAME:FIELD=VALUE,FIELD=VALUE."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        name, colon, given = incomplete.partition(":")
        if not colon:
            return complete_spec(context, parameter, name)
        before, comma, last = given.rpartition(",")
        return _items(_assignments(fields), last, start=f"{name}:{before}{comma}")

    return complete


def complete_grid(fields: Sequence[str]) -> _Complete:
    """FIELD=VALUES; names of values complete behind each comma."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del context, parameter
        field, equals, values = incomplete.partition("=")
        if equals and field in CHOICES:
            before, comma, last = values.rpartition(",")
            return _items(CHOICES[field], last, start=f"{field}={before}{comma}")
        return _items(_assignments(fields), incomplete)

    return complete


def _assignments(fields: Iterable[str]) -> list[str]:
    """FIELD=VALUE where values have names, FIELD= elsewhere."""
    return [f"{field}={value}" for field in fields for value in CHOICES.get(field, ("",))]


def _items(names: Iterable[str], incomplete: str, start: str = "") -> list[CompletionItem]:
    return [CompletionItem(start + name) for name in names if name.startswith(incomplete)]


@final
class _WholeWords(BashComplete):
    """Completion in bash, which hands over `beta=1` as three words: they are put together again.

    What is offered replaces the last of the three, so that what stands before it is left out.
    """

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        glue = False
        for word in (*args, incomplete):
            is_break = bool(word) and not word.strip(_BREAKS)
            if words and (glue or (is_break and not words[-1].startswith("-"))):
                words[-1] += word
            else:
                words.append(word)
            glue = is_break
        *args, whole = words
        self._before = whole[: len(whole) - len(re.split(f"[{_BREAKS}]", whole)[-1])]
        return args, whole

    def format_completion(self, item: CompletionItem) -> str:
        value: Any = item.value
        return f"{item.type},{str(value).removeprefix(self._before)}"


add_completion_class(_WholeWords)
