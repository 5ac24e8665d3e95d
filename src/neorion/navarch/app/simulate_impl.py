"""The work of `navarch simulate`."""

import logging
from pathlib import Path

from neorion.keel.cli.exit_codes import Exit
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.config import load
from neorion.navarch.app.simulation.html_report import page
from neorion.navarch.app.simulation.report import (
    MetricRow,
    SimulationReport,
    Variant,
    broken,
    summary,
    to_json,
)
from neorion.navarch.app.simulation.runner import run_measured
from neorion.navarch.app.simulation.scenario_file import ScenarioFile


def simulate(out: Output, scenario: Path, **options: int | Path | None) -> int:
    file = load(scenario, ScenarioFile, out.env)
    first, count = file.first_seed, options["seeds"] or file.seeds
    seeds = range(first, first + int(str(count)))
    if options["seed"] is not None:
        seeds = [int(str(options["seed"]))]
    scenes = file.scenes(scenario.parent, out.env)
    # What a simulated control plane logs is of no interest: what came of it is told.
    logging.disable(logging.CRITICAL)
    try:
        sides = [
            Variant(name, [run_measured(scene, seed) for seed in seeds]) for name, scene in scenes.items()
        ]
    finally:
        logging.disable(logging.NOTSET)
    found = SimulationReport(file.name or scenario.stem, sides)
    if isinstance(options["json_file"], Path):
        options["json_file"].write_bytes(to_json(found))
    if isinstance(options["html"], Path):
        options["html"].write_text(page(found))
    table: Table[MetricRow] = Table(
        (
            Column("MEASURE", lambda it: it.measure),
            Column("SIDE", lambda it: it.side),
            Column("MEAN", lambda it: it.mean, right=True),
            Column("FROM SEED TO SEED", lambda it: it.range, right=True),
        ),
        name=lambda it: it.measure,
    )
    out.show(summary(found), table)
    for side, run in broken(found):
        out.say(f"{side}, seed {run.seed}: {run.broken}")
    return Exit.FAILED if broken(found) else Exit.OK
