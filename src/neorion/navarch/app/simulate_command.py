"""`navarch simulate`."""

from pathlib import Path

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, require_extra


@click.command("simulate", cls=Command)
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--seeds", type=click.IntRange(1, 10_000), help="How many runs, if not as the file says.")
@click.option("--seed", type=click.IntRange(min=0), help="Only this one: to see a run again.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write everything measured here.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with plots here.")
def simulate(out: Output, scenario: Path, **options: int | Path | None) -> int:
    """Run a fleet under virtual time and say how it fared."""
    require_extra("server", "navarch")
    import logging  # noqa: PLC0415 -- the help does not need it

    from neorion.keel.cli.exit_codes import Exit  # noqa: PLC0415 -- as above
    from neorion.keel.cli.kit import Column, Table  # noqa: PLC0415 -- as above
    from neorion.keel.config import load  # noqa: PLC0415 -- as above
    from neorion.navarch.app.simulation.html_report import page  # noqa: PLC0415 -- as above
    from neorion.navarch.app.simulation.report import (  # noqa: PLC0415 -- as above
        MetricRow,
        SimulationReport,
        Variant,
        broken,
        summary,
        to_json,
    )
    from neorion.navarch.app.simulation.runner import run_measured  # noqa: PLC0415 -- as above
    from neorion.navarch.app.simulation.scenario_file import ScenarioFile  # noqa: PLC0415 -- as above

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
