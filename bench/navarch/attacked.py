"""10,000 agents while strangers attack the control plane: every heartbeat is taken, and none takes much longer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.attackers import attacked, compare, raise_files
from bench.keel.rpc import call
from bench.kit import Report
from bench.navarch.agents import IN_FLIGHT, INTERVAL_S, Peer, heartbeat, served

AGENTS = 10_000
# Every agent beats at least once in each.
SPAN_S = 1.5 * INTERVAL_S
# Three heartbeats, the default; after that a node counts as silent.
SILENCE_S = 3 * INTERVAL_S


@dataclass(slots=True)
class Beats:
    """When each heartbeat was answered, and how long that took."""

    took: list[float] = field(default_factory=list[float])
    # The longest time between two answers to one agent.
    gap_s: float = 0.0
    reopened: int = 0


async def agents(ours: Peer, beats: Sequence[bytes], seen: Beats) -> None:
    """Every agent on its own connection, spread over the interval, until it is cancelled."""
    loop = asyncio.get_running_loop()
    opening = asyncio.Semaphore(IN_FLIGHT)

    async def agent(number: int) -> None:
        await asyncio.sleep(number / len(beats) * INTERVAL_S)
        stream, due, answered = None, loop.time(), loop.time()
        while True:
            sent = loop.time()
            try:
                if stream is None:
                    async with opening:
                        stream = await asyncio.open_connection("127.0.0.1", ours.port)
                await call(*stream, beats[number])
            except (OSError, EOFError):
                # The server ends idle connections; an agent connects again at once.
                seen.reopened += 1
                stream = None
                await asyncio.sleep(0.1)
                continue
            seen.took.append(loop.time() - sent)
            seen.gap_s = max(seen.gap_s, loop.time() - answered)
            answered, due = loop.time(), due + INTERVAL_S
            await asyncio.sleep(max(0.0, due - loop.time()))

    async with asyncio.TaskGroup() as group:
        for number in range(len(beats)):
            group.create_task(agent(number))


async def measured(ours: Peer) -> tuple[list[float], list[float], Beats]:
    seen = Beats()
    running = asyncio.create_task(agents(ours, [heartbeat(token) for token in ours.tokens], seen))
    await asyncio.sleep(INTERVAL_S + 5)
    seen.took.clear()
    await asyncio.sleep(SPAN_S)
    quiet = seen.took.copy()
    async with attacked(f"http://127.0.0.1:{ours.port}"):
        seen.took.clear()
        seen.gap_s = 0.0
        await asyncio.sleep(SPAN_S)
        beaten = seen.took.copy()
    running.cancel()
    await asyncio.wait([running])
    return quiet, beaten, seen


def run(report: Report) -> None:
    raise_files()
    with served(AGENTS) as ours:
        quiet, beaten, seen = asyncio.run(measured(ours))
    compare(report, f"{AGENTS:,} agents", quiet, beaten)
    report.alone(f"{AGENTS:,} agents: longest silence under attack", "s", lambda: seen.gap_s, rounds=1)
    report.alone(f"{AGENTS:,} agents: connected again", "", lambda: float(seen.reopened), rounds=1)
    assert seen.gap_s < SILENCE_S, "an agent was silent for too long"
