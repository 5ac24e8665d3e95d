"""`navarch watch`: what happens in the fleet, as it happens."""

from collections import deque
from typing import Final

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output
from neorion.navarch.cli.options import server_option

# Stories are asked for this often; what happens is told within about a second.
_EVERY_S: Final = 1.0
_LINES: Final = 500


@click.command("watch", cls=Command)
@click.option("--pool", default="", metavar="NAME", help="Only this pool.")
@click.option("--for", "span", default="", metavar="DURATION", help="Stop after this long, as in 10m.")
@server_option
def watch(out: Output, pool: str, span: str, server: str) -> None:
    """Tell what happens in the fleet, until interrupted."""
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.keel.base import Duration, Invalid, UnitError  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.asking import ask  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.records import LINES, LineRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.client import NavarchClient  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    try:
        most = Duration.parse(span).seconds if span else None
    except UnitError as error:
        raise Invalid("navarch.span", f"{error}.", hint="write --for 10m") from None
    emit, clock = out.watch(LINES), SystemClock()

    async def follow(client: NavarchClient) -> None:
        # One that is misspelt is refused: nothing would ever happen in it.
        asked = [await client.calls.get_pool(pb.GetPoolRequest(pool=pool))] if pool else await client.pools()
        told = {one.name: deque[tuple[int, str, str]](maxlen=2 * _LINES) for one in asked}

        async def look() -> None:
            for name, known in told.items():
                request = pb.HistoryRequest(subject=f"pool/{name}", limit=_LINES)
                for line in (await client.calls.history(request)).lines:
                    key = (line.at_ms, line.event, line.sentence)
                    if key not in known:
                        known.append(key)
                        emit(LineRecord.of(line))

        # What is known already is told however short the time.
        await look()
        with anyio.move_on_after(most):
            while True:
                await clock.sleep(Duration.of(seconds=_EVERY_S))
                await look()

    ask(out, server, follow)
