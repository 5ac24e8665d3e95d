"""Options of a job, and the job spec made from them."""

import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec
from protobuf import Oneof

from neorion.iris.model.constraint import Constraint
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.wire import Entry
from neorion.keel.base import Duration, Invalid, Quantity, UnitError, did_you_mean

Work = Callable[..., Any] | str | Sequence[str | os.PathLike[str]]

# The digests of this many arguments fit into one message.
TASKS_WITH_ARGS_MAX: Final = 60_000

_OPTIONS_HINT: Final = "See the options in docs/guides/iris.md."
_WRONG_TYPE: Final = re.compile(r"Expected `(.+)`, got `(.+)` - at `\$\.(.+)`")
_KINDS: Final = {
    "array": "a list",
    "object": "a mapping",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "float | str": "a number or a text",
    "null": "None",
}


class Environment(TypedDict, total=False):
    """Environment that jobs may share: variables, Python packages, and shell commands before the start."""

    env: Mapping[str, str]
    packages: Sequence[str]
    setup: Sequence[str]


class Options(Environment, total=False):
    """Options of `submit`, `map` and `gang`. All are optional."""

    # E.g. {"cpu": 2, "memory": "8Gi", "disk": "10Gi", "gpu": "H100:8"}. Defaults: one core and 1Gi.
    resources: Mapping[str, str | float]
    # The job's own values are added to it; the job's variables take precedence.
    environment: Environment
    # E.g. "zone=us-east-1a", "gpu-memory>=80". `prefer` only orders the workers that qualify.
    require: Sequence[str]
    prefer: Sequence[str]
    spread: str
    priority: str
    retries: int
    preemption_retries: int
    timeout: str | float
    scheduling_timeout: str | float
    max_failed_tasks: int
    ports: Sequence[str]
    # Folder whose files are copied to the job's working directory, e.g. ".", without git-ignored files and `exclude`.
    working_dir: str
    exclude: Sequence[str]
    # The same key gives the same job. Without a key every call makes a new job.
    key: str


class MapOptions(Options, total=False):
    """Additional options of `map`."""

    # Items per task. The default gives 64 tasks.
    chunk: int
    # An item's exception is returned as its value, and the other items continue.
    return_exceptions: bool


class BlobPayload:
    """Blobs of one submission, by their hash."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def add(self, body: bytes) -> str:
        digest = hashlib.sha256(body).hexdigest()
        self.blobs[digest] = body
        return digest

    def pickled(self, value: object, what: str) -> str:
        return self.pickled_each((value,), what)[0]

    def pickled_each(self, values: Iterable[object], what: str) -> list[str]:
        """Pickles values. The user's own modules are found once for all, because that is slower than pickling an item."""
        # Cloudpickle takes half a megabyte, and is not needed before the first function is sent.
        from neorion.iris.client.pickle_by_value import own_modules_by_value  # noqa: PLC0415 -- loaded when needed
        from neorion.iris.model.pickling import dumps  # noqa: PLC0415 -- loaded when needed

        try:
            with own_modules_by_value():
                return [self.add(dumps(value)) for value in values]
        except Exception as error:
            raise Invalid(
                "iris.unpicklable",
                f"{what} cannot be pickled: {error}.",
                hint="Pass plain data, and open files, locks and connections in the function.",
            ) from error


# Less is never enough to run a program.
_BYTES_MIN: Final = 2**20


def check_options(options: Mapping[str, object], kind: type[Options | Environment]) -> None:
    """Refuses unknown options and wrong types, which Python accepts as keyword arguments."""
    for name in options:
        if name not in kind.__annotations__:
            raise Invalid(
                "iris.option",
                f'"{name}" is not a valid option.',
                hint=did_you_mean(name, kind.__annotations__) or _OPTIONS_HINT,
            )
    try:
        msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        raise Invalid("iris.option", _WRONG_TYPE.sub(_type_error, f"{error}."), hint=_OPTIONS_HINT) from None


def _type_error(match: re.Match[str]) -> str:
    expected, got, field = match.groups()
    return f"{field} must be {_KINDS.get(expected, expected)}, not {_KINDS.get(got, got)}"


def check_replicas(replicas: object) -> None:
    if not isinstance(replicas, int) or replicas < 1:
        # On the wire, 0 means that the number is not set.
        raise Invalid(
            "iris.replicas",
            f"replicas must be a whole number of at least 1, not {replicas!r:.80}.",
            hint="Set replicas to 1 or more.",
        )


def check_function(work: object) -> None:
    if not callable(work):
        raise Invalid(
            "iris.entry", f"{work!r:.80} is not a function.", hint="Pass a function as the first argument."
        )
    if inspect.iscoroutinefunction(work):
        raise Invalid(
            "iris.entry",
            f"{_name(work)} is an async function. A task can only call a plain function.",
            hint=f"Pass a function that runs it: lambda: asyncio.run({_name(work)}()).",
        )


def check_call(work: Callable[..., Any], args: object, kwargs: object) -> None:
    """Checks the arguments against the function's signature, before a machine is allocated for the call."""
    if not isinstance(args, tuple | list):
        raise Invalid(
            "iris.arguments",
            f"args must be a tuple, not {args!r:.80}.",
            hint="Write a tuple of one as args=(value,).",
        )
    if not isinstance(kwargs, Mapping):
        raise Invalid(
            "iris.arguments",
            f"kwargs must be a mapping, not {kwargs!r:.80}.",
            hint='Write kwargs={"name": value}.',
        )
    try:
        # The signature of the function itself; a wrapped function may take other arguments.
        signature = inspect.signature(work, follow_wrapped=False)
    except ValueError:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise Invalid(
            "iris.arguments",
            f"{_name(work)} cannot be called with these arguments: {error}.",
            hint="Pass the function's arguments in args=(…) and kwargs={…}.",
        ) from None


def spec_of(work: Work, name: str, options: Options, payload: BlobPayload) -> pb.JobSpec:
    constraints = [
        *(Constraint.parse(text) for text in options.get("require", ())),
        *(Constraint.parse(text, required=False) for text in options.get("prefer", ())),
    ]
    spec = pb.JobSpec(
        name=name,
        entry=_entry(work, payload),
        resources=_resources(options.get("resources", {})),
        replicas=1,
        environment=_environment(options, payload),
        constraints=[
            pb.Constraint(key=c.key, op=c.op, values=list(c.values), preferred=not c.required)
            for c in constraints
        ],
        spread=options.get("spread", ""),
        band=options.get("priority", ""),
        wait_limit_ms=_ms("scheduling_timeout", options.get("scheduling_timeout", 0)),
        run_limit_ms=_ms("timeout", options.get("timeout", 0)),
        max_failed_tasks=options.get("max_failed_tasks", 0),
        ports=list(options.get("ports", ())),
    )
    if "retries" in options:
        spec.retries_after_failure = options["retries"]
    if "preemption_retries" in options:
        spec.retries_after_loss = options["preemption_retries"]
    return spec


def _environment(options: Options, payload: BlobPayload) -> pb.Environment:
    shared = options.get("environment", {})
    check_options(shared, Environment)
    return pb.Environment(
        variables={**shared.get("env", {}), **options.get("env", {})},
        packages=[*shared.get("packages", ()), *options.get("packages", ())],
        setup=[*shared.get("setup", ()), *options.get("setup", ())],
        bundle=_bundle(options, payload),
    )


def _bundle(options: Options, payload: BlobPayload) -> str:
    """Hash of the job's bundle, or "" without a working directory."""
    if "working_dir" not in options:
        return ""
    # Most jobs have no bundle.
    from neorion.iris.client.bundle import bundle  # noqa: PLC0415 -- loaded when needed

    return payload.add(bundle(Path(options["working_dir"]), options.get("exclude", ())).body)


def _entry(work: Work, payload: BlobPayload) -> Entry:
    if callable(work):
        check_function(work)
        return Oneof("call", pb.Call(function=payload.pickled(work, f"The function {_name(work)}")))
    argv = _argv(work)
    if not argv:
        raise Invalid(
            "iris.entry",
            f"{work!r:.80} is neither a function nor a command.",
            hint="Pass a function, a shell command as a string, or a program and its arguments as a list.",
        )
    return Oneof("command", pb.Command(argv=argv))


def _argv(work: str | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Program and arguments; empty if `work` is not a command."""
    if isinstance(work, str):
        return ["/bin/sh", "-c", work] if work.strip() else []
    try:
        return [os.fspath(word) for word in work]
    except TypeError:
        return []


def _name(work: Callable[..., Any]) -> str:
    return getattr(work, "__qualname__", repr(work))


def _resources(requested: Mapping[str, str | float]) -> pb.Resources:
    known = ("cpu", "memory", "disk", "gpu")
    for name in requested:
        if name not in known:
            raise Invalid(
                "iris.resources", f'"{name}" is not a valid resource.', hint=did_you_mean(name, known)
            )
    _check_bytes(requested)
    variant, count = _gpu(requested.get("gpu", 0))
    return pb.Resources(
        cpu_milli=_amount("cpu", requested.get("cpu", 1)).milli,
        memory_bytes=_amount("memory", requested.get("memory", "1Gi")).whole,
        disk_bytes=_amount("disk", requested.get("disk", 0)).whole,
        gpus=count,
        gpu_variant=variant,
    )


def _check_bytes(requested: Mapping[str, str | float]) -> None:
    """Refuses tiny amounts. A number without a unit is bytes, as in Kubernetes, but a user who writes 8 means 8Gi."""
    for name in ("memory", "disk"):
        value = requested.get(name, 0)
        if 0 < _amount(name, value).whole < _BYTES_MIN:
            raise Invalid(
                "iris.resources",
                f"{name}: {value} is less than 1Mi: a number without a unit is bytes.",
                hint=f'Write "{value}Gi" for gibibytes.' if str(value).isdecimal() else 'Write it as "8Gi".',
            )


def _gpu(requested: str | float) -> tuple[str, int]:
    """Parses 8, "8", "H100" or "H100:8" into variant and count."""
    variant, _, count = str(requested).rpartition(":")
    # A text without a letter is an invalid number, e.g. "-1" or "1.5".
    if not variant and re.search(r"[A-Za-z]", count):
        variant, count = count, "1"
    if not count.isdecimal():
        raise Invalid(
            "iris.resources",
            f'"{requested}" is not a valid number of GPUs.',
            hint='Write 8, "H100" or "H100:8".',
        )
    return variant, int(count)


def _amount(name: str, value: str | float) -> Quantity:
    try:
        return Quantity.parse(value)
    except UnitError as error:
        raise Invalid(
            "iris.resources", f"{name}: {error}.", hint='Write an amount like 2, "500m" or "8Gi".'
        ) from None


def _ms(name: str, value: str | float) -> int:
    try:
        # Rounded up, because 0 means no limit.
        return -(-Duration.parse(value).ns // 1_000_000)
    except UnitError as error:
        raise Invalid(
            "iris.limits", f"{name}: {error}.", hint='Write a time such as 90, "30s" or "2h".'
        ) from None
