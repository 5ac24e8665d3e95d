"""Connections to PostgreSQL with the settings that the store requires, and the meaning of their errors."""

import psycopg
from psycopg import sql
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from neorion.keel.base import Conflict, Duration, Error, Invalid, Retry, Terminal
from neorion.keel.store.engine import TransactionLost, full

Connection = psycopg.Connection[TupleRow]

_AGAIN_AFTER = Duration.of(seconds=1)
# Detects a dead server or a broken line in about ten seconds; the kernel's defaults take two hours.
_LINE = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "client_encoding": "utf8",
    "application_name": "neorion store",
}
# Without these settings an acknowledged commit may be lost in a crash of the server.
_SAFE = {"synchronous_commit": {"on", "remote_apply"}, "fsync": {"on"}, "full_page_writes": {"on"}}
# Connection errors, shutdown, a crash of another backend, a transaction idle for too long.
_GONE = ("08", "57P", "25P03")


class _BoolAsInteger(Dumper):
    """Writes booleans as SQLite does: true is 1."""

    oid = psycopg.postgres.types["int8"].oid

    def dump(self, obj: bool) -> Buffer:  # noqa: FBT001 -- the signature of psycopg
        return b"1" if obj else b"0"


class _Number(Loader):
    """Reads sums and averages as SQLite returns them: whole numbers as int."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def connect(url: str, limit: Duration) -> Connection:
    """Opens a writer's connection: no statement and no pause inside a transaction exceeds `limit`."""
    link = _connect(url)
    for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
        link.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(int(limit.ms))))
    link.execute("SET synchronous_commit = on")
    for name, good in _SAFE.items():
        row = link.execute(sql.SQL("SHOW {}").format(sql.Identifier(name))).fetchone()
        if row is None or row[0] not in good:
            link.close()
            raise Terminal(
                "store.unsafe",
                f"The PostgreSQL server runs with {name} = {row and row[0]}, so commits can be lost.",
                hint=f"Set {name} = on in postgresql.conf.",
            )
    return link


def connect_reader(url: str) -> Connection:
    link = _connect(url)
    link.execute("SET default_transaction_read_only = on")
    link.execute("SET default_transaction_isolation = 'repeatable read'")
    return link


def _connect(url: str) -> Connection:
    try:
        link = psycopg.connect(make_conninfo(url, **_LINE), autocommit=True)
    except psycopg.OperationalError as error:
        raise TransactionLost(unreachable(error)) from error
    except psycopg.Error as error:
        raise Invalid(
            "store.url",
            f"The address of the PostgreSQL server cannot be read: {_message(error)}",
            hint="Write it like postgresql://user@host:5432/database.",
        ) from error
    link.adapters.register_dumper(bool, _BoolAsInteger)
    link.adapters.register_loader("numeric", _Number)
    return link


def unreachable(error: psycopg.Error) -> Retry:
    return Retry(
        "store.unreachable",
        f"The PostgreSQL server cannot be reached; nothing was written: {_message(error)}",
        hint="Check that the server runs and that its address is right.",
        after=_AGAIN_AFTER,
    )


def unknown(error: psycopg.Error) -> Retry:
    return Retry(
        "store.unknown",
        f"The connection was lost during the commit, so its outcome is not known: {_message(error)}",
        hint="Read back by key before trying again.",
        after=_AGAIN_AFTER,
    )


def explained(error: psycopg.Error, link: Connection) -> Error | TransactionLost:
    """Translates a failed statement into the error of its transaction."""
    state = error.sqlstate or ""
    if link.closed or state.startswith(_GONE):
        # The server sends an error before it closes the connection.
        link.close()
        return TransactionLost(unreachable(error))
    if state.startswith("23"):
        return Conflict("store.constraint", f"The change breaks a rule of its tables: {_message(error)}")
    if state in {"53100", "53400"}:
        return full()
    if state.startswith(("40", "53", "55", "57")):
        return Retry(
            "store.busy", f"The server gave up on the statement: {_message(error)}", after=_AGAIN_AFTER
        )
    return Terminal("store.sql", f"The statement was refused: {_message(error)}")


def _message(error: psycopg.Error) -> str:
    # The first line only: the others quote values, and values may be secret.
    return (error.diag.message_primary or str(error).partition("\n")[0] or type(error).__name__).strip() + "."
