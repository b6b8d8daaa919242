"""Small layers and their pages, and a reader of HTML that keeps what the tests ask for."""

from __future__ import annotations

from html.parser import HTMLParser

import freeattn as fa

VOID = {"wbr", "meta", "input", "br", "link", "img", "hr", "path", "rect"}
GIVEN_TO_SVG = {"path", "rect"}  # closed in themselves


def small(**changes: object) -> fa.Attention:
    fields: dict[str, object] = {"n_tokens": 48, "d_model": 64, "n_heads": 4, "d_key": 16, "d_value": 12, "beta": 0.5}
    return fa.Attention(**{**fields, **changes})  # type: ignore[arg-type]


class Reader(HTMLParser):
    """Elements in order as (tag, attributes); complains about tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def named(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    def words(self, *, without: tuple[str, ...] = ("script", "style")) -> str:
        return " ".join(text for where, text in self.texts if not set(where) & set(without))
