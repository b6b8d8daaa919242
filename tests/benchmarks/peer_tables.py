"""The results of the benchmark as tables, in plain text or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = Sequence[str]

STAGES = {
    "derive": "derive", "law": "build the law", "density": "1,000 densities", "value": "one 50-digit value",
    "certified": "one certified value", "edges": "edges to 50 digits",
}
STATISTICS = {
    "ks": "Kolmogorov-Smirnov distance", "w1": "W1 over the mean", "mean": "mean, relative",
    "left": "left edge, relative", "right": "right edge, relative",
}
COLUMNS = ("package", "time", "× freeattn", "mass", "atom", "edges", "density", "outside")
NOTHING = "–"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->"


def duration(seconds: float) -> str:
    """Three digits, in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def error(value: float | None) -> str:
    """Two digits; a dash where there is no such number."""
    return NOTHING if value is None else f"{value:.1e}" if value else "0"


def ratio(value: float) -> str:
    """How many times, with two digits."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def own_table(result: dict[str, Any]) -> list[Row]:
    """Times of freeattn: one row for each model."""
    header = ["model", *STAGES.values()]
    return [header, *([row["model"], *(duration(row[stage]) for stage in STAGES)] for row in result["rows"])]


def simulation_table(result: dict[str, Any]) -> list[Row]:
    """One draw against the law."""
    seconds, size = result["seconds"], result["n_tokens"]
    total = seconds["draw"] + seconds["diagonalize"]
    return [
        ["", f"one draw, {size} tokens", "law"],
        ["time", f"{duration(seconds['draw'])} + {duration(seconds['diagonalize'])}", duration(seconds["law"])],
        ["ratio of times", ratio(total / seconds["law"]), "1"],
        *([title, f"{result['errors'][name]:.1e}", "exact"] for name, title in STATISTICS.items()),
    ]


def law_table(result: dict[str, Any]) -> list[Row]:
    """One law: a row for each package and method that has numbers, then those that cannot or were not run."""
    rows: list[Row] = [COLUMNS]
    own = [row for row in result["rows"] if row["package"] == "freeattn" and row["status"] == "run"]
    unit = own[0]["seconds"]["warm"] if own else None
    for row in result["rows"]:
        if row["status"] != "run":
            rows.append([row["title"], row["status"], *[NOTHING] * (len(COLUMNS) - 2)])
            continue
        seconds, found = row["seconds"], row["errors"]
        rows.append(
            [
                row["title"], duration(seconds["warm"]), NOTHING if unit is None else ratio(seconds["warm"] / unit),
                error(abs(found["mass"])), error(found["atom"]), _edges(found), error(found["density"]),
                error(found["outside"]),
            ]
        )
    return rows


def first_table(laws: Sequence[dict[str, Any]]) -> list[Row]:
    """The first law that each method did in a new process, compilation included."""
    rows, seen = [["package", "first law", "time"]], set()
    for law in laws:
        for row in law["rows"]:
            if row["status"] == "run" and row["title"] not in seen:
                seen.add(row["title"])
                rows.append([row["title"], law["title"], duration(row["seconds"]["first"])])
    return rows


def _edges(found: dict[str, Any]) -> str:
    text = error(found["edges"])
    if found["candidates"] is not None:
        return f"{text} of {found['candidates']} candidates"
    return text if found["bands"] in (None, 1) else f"{text} of {found['bands']} bands"


def reasons(laws: Sequence[dict[str, Any]]) -> list[Row]:
    """What was not run, or cannot be done, and why."""
    rows: list[Row] = [["package", "law", "status", "why"]]
    for row in (row for law in laws for row in law["rows"] if row["status"] == "not run"):
        entry = [row["title"], "all", "not run", row["reason"]]
        everywhere = all(
            other["status"] == "not run" for law in laws for other in law["rows"] if other["title"] == row["title"]
        )
        if everywhere and entry not in rows:
            rows.append(entry)
    listed = {row[0] for row in rows if row[1] == "all"}
    for law in laws:
        for row in law["rows"]:
            if row["status"] != "run" and row["title"] not in listed:
                rows.append([row["title"], law["title"], row["status"], row["reason"]])
    return rows


def written(rows: Sequence[Row], markdown: bool) -> str:
    """A table as aligned text, or as Markdown."""
    if markdown:
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def has_marks(page: str) -> bool:
    """Whether a page says where the tables go."""
    return 0 <= page.find(BEGIN) < page.find(END)


def updated(page: str, tables: str) -> str:
    """A page with new tables between its marks."""
    head, rest = page.split(BEGIN, 1)
    return f"{head}{BEGIN}\n{tables}\n\n{END}{rest.split(END, 1)[1]}"


def report(result: dict[str, Any], markdown: bool = False) -> str:
    """The whole result, section by section."""
    heading = "### " if markdown else ""
    parts = [f"{name}: {value}" for name, value in result["machine"].items()]
    sections = ["  \n".join(parts) if markdown else "\n".join(parts)]
    for key, title, table in (
        ("own", "freeattn itself", own_table), ("simulation", "Against simulation", simulation_table),
    ):
        if key in result:
            found = result[key]
            body = found["reason"] if "reason" in found else written(table(found), markdown)
            sections.append(f"{heading}{title}\n\n{body}")
    for law in result.get("laws", ()):
        sections.append(f"{heading}{law['title']}\n\n{written(law_table(law), markdown)}")
    if "laws" in result:
        sections.append(f"{heading}The first law of a process\n\n{written(first_table(result['laws']), markdown)}")
    missing = reasons(result.get("laws", ()))
    if len(missing) > 1:
        sections.append(f"{heading}Not run, or not possible\n\n{written(missing, markdown)}")
    return "\n\n".join(sections)
