"""Group commit: the changes of many callers in one transaction, each with its own outcome."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from neorion.keel.base import Error, Terminal
from neorion.keel.store.engine import Engine, OwnershipLost, Statements, StorageFailed, TransactionLost
from neorion.keel.store.protocols import Row, Tx, Value

Change = Callable[[Tx], Any]


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is durable."""

    value: Any


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The change left nothing behind."""

    error: BaseException


Outcome = Committed | RolledBack


class BoundTx:
    """A transaction handle that ends with its function, and stays failed once a statement failed.

    PostgreSQL refuses everything after a failed statement. So does this, on every engine: code that swallows an error
    behaves the same on all of them.
    """

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._over = False
        self.failure: Exception | None = None

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        self._ready()
        try:
            return self._statements.execute(sql, args)
        except (Error, TransactionLost, StorageFailed) as error:
            self.failure = error
            raise

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self._ready()
        try:
            self._statements.many(sql, rows)
        except (Error, TransactionLost, StorageFailed) as error:
            self.failure = error
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._over = True
        if error is None and self.failure is not None:
            raise self.failure

    def _ready(self) -> None:
        if self._over:
            raise Terminal(
                "store.over",
                "This transaction is over.",
                hint="Use the Tx only inside the function it was given to.",
            )
        if self.failure is not None:
            raise self.failure


def commit_together(engine: Engine, changes: Sequence[Change]) -> list[Outcome]:
    """Applies all changes in order under one commit; what one raises is undone alone.

    Raises `OwnershipLost` and `StorageFailed`, after which the engine must not write again.
    """
    try:
        engine.begin()
        outcomes = list[Outcome]()
        for change in changes:
            if outcomes:
                engine.keep()
            outcomes.append(_apply(engine, change))
        engine.commit()
    except (TransactionLost, Error) as error:
        engine.abandon()
        if isinstance(error, OwnershipLost):
            raise
        reason = error.error if isinstance(error, TransactionLost) else error
        # A copy for each caller, because raising adds a traceback to an exception.
        return [RolledBack(copy(reason)) for _ in changes]
    return outcomes


def _apply(engine: Engine, change: Change) -> Outcome:
    tx = BoundTx(engine)
    try:
        with tx:
            value = change(tx)
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it belongs to the caller
        if isinstance(tx.failure, TransactionLost | StorageFailed):
            raise tx.failure from None
        engine.undo()
        # A future cannot carry a StopIteration.
        return RolledBack(
            RuntimeError("the change raised StopIteration") if isinstance(error, StopIteration) else error
        )
    return Committed(value)
