"""A thousand nodes for a day under virtual time, the whole control plane; and what it keeps in memory from day to day.

`python -m bench.navarch.fleet NODES DAYS WEAR` runs one fleet in a process of its own and prints what each day took. The original in
Go has no virtual time: 120 s of a thousand nodes take it 156 s and 49 s of CPU, and 630 MB.
"""

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import apsw

from bench.kit import Report
from neorion.keel.base import Duration
from neorion.keel.sim import SimulationLimits, World, simulate
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.app.simulation import FailureRates, Scenario, SimulatedFleet
from neorion.navarch.model import PoolSpec
from neorion.navarch.model.spec import Offer, Scaling, SpendLimits

DAY = Duration.of(hours=24)
# Published rates are a few faults a day for a thousand nodes; ten times that keeps every part busy.
WEAR = 10.0


def scene(nodes: int, wear: float) -> Scenario:
    spec = PoolSpec(
        "training",
        (Offer("fake", "gpu_8x_h100_sxm5", ("us-west-2",)),),
        scaling=Scaling(nodes, nodes),
        spending=SpendLimits(per_hour=2 * nodes),
    )
    return Scenario({spec.name: spec}, {"default": default_policy()}, FailureRates(wear=wear, bugs=wear))


async def days(world: World, nodes: int, count: int, wear: float) -> None:
    stage = SimulatedFleet(world, scene(nodes, wear))
    stage.start()
    before = time.process_time()
    assert await stage.settled(Duration.of(hours=2))
    host = world.host("storm")

    async def storm(_: object) -> None:
        await stage.storm.run()

    host.start(storm)
    for _ in range(count):
        await world.clock.sleep(DAY)
        now = time.process_time()
        print(json.dumps({"seconds": now - before, "mb": resident_mb() - disk_mb()}), flush=True)
        before = now


def disk_mb() -> float:
    """What the simulated disk holds: rows that are not in memory where there is a real one. SQLite is used by nothing else here."""
    return apsw.memory_used() / 1e6


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line for line in lines if line.startswith("VmRSS")]
    return int(found.split()[1]) / 1000


def measured(nodes: int, count: int, wear: float) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "bench.navarch.fleet", str(nodes), str(count), str(wear)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(report: Report) -> None:
    large = measured(1_000, 1, WEAR)
    report.alone("1,000 nodes, one day (goal: 60)", "s of CPU", lambda: large[0]["seconds"], rounds=1)
    report.alone("1,000 nodes, after one day (goal: 150)", "MB", lambda: large[0]["mb"], rounds=1)
    small = measured(100, 10, 10 * WEAR)
    report.alone("100 nodes, after one day", "MB", lambda: small[0]["mb"], rounds=1)
    report.alone("100 nodes, after ten days", "MB", lambda: small[-1]["mb"], rounds=1)
    print(f"from the second day to the tenth: {small[-1]['mb'] / small[1]['mb']:.2f} times the memory")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    nodes, count, wear = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    limits = SimulationLimits(steps=10**9, time=Duration.of(hours=24 * (count + 2)))
    simulate(lambda world: days(world, nodes, count, wear), 1, limits=limits).check()
