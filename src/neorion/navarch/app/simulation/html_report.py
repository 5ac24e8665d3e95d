"""The report as one page that needs nothing else: no script, no font, no address of anybody."""

from collections.abc import Iterator
from html import escape
from typing import Final

from neorion.navarch.app.simulation.measurements import Percentiles, RunResult
from neorion.navarch.app.simulation.plots import Series, bar_plot, line_plot
from neorion.navarch.app.simulation.report import SimulationReport, Variant, broken, span, summary

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem; color: #1f2328 }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #d1d9e0 }
svg { width: 100%; height: auto } svg text { font-size: 12px; fill: #59636e } .grid { stroke: #eaeef2 }
.legend span { margin-right: 1.2rem } .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem }
.broken { background: #ffebe9; padding: .6rem; white-space: pre-wrap }
"""


def page(report: SimulationReport) -> str:
    name = escape(report.scenario)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
        f"<style>{_STYLE}</style><h1>{name}</h1>{''.join(_parts(report))}</html>\n"
    )


def _parts(report: SimulationReport) -> Iterator[str]:
    for side, run in broken(report):
        yield f'<p class="broken">{escape(side)}, seed {run.seed}: {escape(run.broken)}</p>'
    yield "<h2>In short</h2>" + _table(("", *(side.name for side in report.sides)), list(_measures(report)))
    for side in report.sides:
        yield f"<h2>{escape(side.name)}</h2>" + "".join(_side(side))


def _measures(report: SimulationReport) -> Iterator[tuple[str, ...]]:
    """One row for each measure, the sides beside each other: the mean, and what it was from seed to seed."""
    lines = {(line.measure, line.side): f"{line.mean} ({line.range})" for line in summary(report)}
    for measure in dict.fromkeys(measure for measure, _ in lines):
        yield (measure, *(lines.get((measure, side.name), "none") for side in report.sides))


def _side(side: Variant) -> Iterator[str]:
    first = side.runs[0]
    yield f"<h3>Nodes over time, seed {first.seed}</h3>" + _fleet(first)
    yield "<h3>From a fault to …</h3>" + _table(
        ("", "how many", "median", "95%", "most"), list(_spreads(side))
    )
    yield "<h3>What waited, and why: minutes</h3>" + bar_plot(_totals(side, "holds"))
    yield "<h3>What happened, and how often</h3>" + bar_plot(_totals(side, "happened"))


def _fleet(run: RunResult) -> str:
    lines = [
        Series(name, [(one.hours, float(getattr(one, name))) for one in run.samples])
        for name in ("wanted", "active", "well", "down", "machines")
    ]
    return line_plot(lines, "h")


def _spreads(side: Variant) -> Iterator[tuple[str, ...]]:
    for run in side.runs:
        yield _row(f"detected, seed {run.seed}", run.detection)
        yield _row(f"cordoned, seed {run.seed}", run.cordon)
        for remedy, spread in run.repairs.items():
            yield _row(f"{remedy} done, seed {run.seed}", spread)


def _row(name: str, spread: Percentiles) -> tuple[str, ...]:
    return (name, str(spread.count), *map(span, (spread.median, spread.p95, spread.most)))


def _totals(side: Variant, what: str) -> list[tuple[str, float]]:
    sums: dict[str, float] = {}
    for run in side.runs:
        for name, value in getattr(run, what).items():
            sums[name] = sums.get(name, 0.0) + value
    return sorted(sums.items(), key=lambda row: -row[1])


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    titles = "".join(f"<th>{escape(one)}</th>" for one in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{titles}</tr>{lines}</table>"
