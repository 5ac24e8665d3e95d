"""The error families: named by what the caller does next, not by what went wrong.

Error:
    ├── Retry            wait, then try the same again      503  exit 6
    │   └── Deadline     the time given was not enough      504  exit 124
    ├── Conflict         read again, decide again           409  exit 5
    ├── Terminal         stop: trying again cannot help     500  exit 1
    ├── NoCapacity       ask elsewhere                      503  exit 7
    ├── QuotaExceeded    free something, or ask for more    429  exit 8
    ├── NotFound         check the name                     404  exit 3
    ├── Denied           ask for the right                  403  exit 4
    │   └── Unauthenticated  say who you are                401  exit 4
    └── Invalid          correct the input                  400  exit 2

Every error carries a stable code ("store.fenced"), one sentence for a person, and a hint that says what to do.

"""

from typing import ClassVar

from neorion.keel.base.units import Duration


class Error(Exception):
    """An error with a family, a stable code, one sentence and one hint. Raise a family, never this class."""

    family: ClassVar[str]
    http_status: ClassVar[int]
    exit_code: ClassVar[int]

    def __init__(self, code: str, sentence: str, *, hint: str = "") -> None:
        super().__init__(code, sentence)
        self.code = code
        self.sentence = sentence
        self.hint = hint
        if hint:
            # A traceback shows the notes of an error, so the hint appears there too.
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return self.sentence

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross processes by pickle; keyword-only fields would be lost by the default form.
        return _rebuild, (type(self), self.code, self.sentence, self.__dict__)


def _rebuild(family: type[Error], code: str, sentence: str, fields: dict[str, object]) -> Error:
    error = family.__new__(family)
    Exception.__init__(error, code, sentence)
    error.__dict__.update(fields)
    return error


class Retry(Error):
    """The same call may work later. `after` is the shortest useful wait, if the other side sent one."""

    family = "retry"
    http_status = 503
    exit_code = 6

    def __init__(self, code: str, sentence: str, *, hint: str = "", after: Duration | None = None) -> None:
        super().__init__(code, sentence, hint=hint)
        self.after = after


class Deadline(Retry):
    """The time given was not enough; whether the work was done is unknown."""

    family = "deadline"
    http_status = 504
    exit_code = 124


class Conflict(Error):
    """The state is not the one that the caller assumed: read it again, then decide again."""

    family = "conflict"
    http_status = 409
    exit_code = 5


class Terminal(Error):
    """Trying again cannot help."""

    family = "terminal"
    http_status = 500
    exit_code = 1


class NoCapacity(Error):
    """There is none to be had in `scope` now; another scope may have some."""

    family = "no_capacity"
    http_status = 503
    exit_code = 7

    def __init__(self, code: str, sentence: str, *, hint: str = "", scope: str = "") -> None:
        super().__init__(code, sentence, hint=hint)
        self.scope = scope


class QuotaExceeded(Error):
    """A limit set by people is reached in `scope`."""

    family = "quota_exceeded"
    http_status = 429
    exit_code = 8

    def __init__(self, code: str, sentence: str, *, hint: str = "", scope: str = "") -> None:
        super().__init__(code, sentence, hint=hint)
        self.scope = scope


class NotFound(Error):
    """No such thing, or none the caller may see."""

    family = "not_found"
    http_status = 404
    exit_code = 3


class Denied(Error):
    """The caller is known and may not."""

    family = "denied"
    http_status = 403
    exit_code = 4


class Unauthenticated(Denied):
    """The caller is not known."""

    family = "unauthenticated"
    http_status = 401


class Invalid(Error):
    """The input is wrong and was refused whole."""

    family = "invalid"
    http_status = 400
    exit_code = 2


FAMILIES: dict[str, type[Error]] = {
    family.family: family
    for family in (
        Retry, Deadline, Conflict, Terminal, NoCapacity, QuotaExceeded, NotFound, Denied, Unauthenticated, Invalid,
    )
}  # fmt: skip
