"""What a user may say about a job besides what it runs, and the message it becomes."""

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

# Of so many tasks the names of their arguments fit into one message.
TASKS_WITH_ARGS_MAX: Final = 60_000

_OPTIONS: Final = "the options stand in docs/guides/iris.md"
_MISFIT: Final = re.compile(r"Expected `(.+)`, got `(.+)` - at `\$\.(.+)`")
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
    """What several jobs may share: variables, Python packages, and shell commands before the start."""

    env: Mapping[str, str]
    packages: Sequence[str]
    setup: Sequence[str]


class Options(Environment, total=False):
    """Every option of `submit`, `map` and `gang`. All may be left out."""

    # {"cpu": 2, "memory": "8Gi", "disk": "10Gi", "gpu": "H100:8"}; one core and 1Gi where nothing is said.
    resources: Mapping[str, str | float]
    # What the job says itself is added to it; its variables win.
    environment: Environment
    # "zone=us-east-1a", "gpu-memory>=80"; `prefer` only orders what fits.
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
    # A folder whose files the job finds in its working directory, e.g. "."; git's ignored files and `exclude` stay behind.
    working_dir: str
    exclude: Sequence[str]
    # The same key twice is the same job; without one every call is a new job.
    key: str


class MapOptions(Options, total=False):
    """What `map` may be told besides."""

    # Items per task; without one, as many as give 64 tasks.
    chunk: int
    # An item's exception is its value, and the others go on.
    return_exceptions: bool


class BlobPayload:
    """Blobs gathered for one submission, by their hash."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def add(self, body: bytes) -> str:
        digest = hashlib.sha256(body).hexdigest()
        self.blobs[digest] = body
        return digest

    def pickled(self, value: object, what: str) -> str:
        return self.pickled_each((value,), what)[0]

    def pickled_each(self, values: Iterable[object], what: str) -> list[str]:
        """Which modules are the user's own is found out once for all of them: it takes longer than to pickle an item."""
        # Cloudpickle takes half a megabyte, and is not needed before the first function is sent.
        from neorion.iris.client.pickle_by_value import own_modules_by_value  # noqa: PLC0415 -- as said
        from neorion.iris.model.pickling import dumps  # noqa: PLC0415 -- as said

        try:
            with own_modules_by_value():
                return [self.add(dumps(value)) for value in values]
        except Exception as error:
            raise Invalid(
                "iris.unpicklable",
                f"{what} cannot be pickled: {error}.",
                hint="Pass plain data, and open files, locks and connections inside of the function.",
            ) from error


# No program runs in less.
_BYTES_MIN: Final = 2**20


def check_options(options: Mapping[str, object], kind: type[Options | Environment]) -> None:
    """Python takes any keyword with any value here: a misspelt one must not pass for none, nor a text for a list of letters."""
    for name in options:
        if name not in kind.__annotations__:
            raise Invalid(
                "iris.option",
                f'"{name}" is no option.',
                hint=did_you_mean(name, kind.__annotations__) or _OPTIONS,
            )
    try:
        msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        raise Invalid("iris.option", _MISFIT.sub(_misfit, f"{error}."), hint=_OPTIONS) from None


def _misfit(found: re.Match[str]) -> str:
    wanted, got, where = found.groups()
    return f"{where} takes {_KINDS.get(wanted, wanted)}, not {_KINDS.get(got, got)}"


def check_replicas(replicas: object) -> None:
    if not isinstance(replicas, int) or replicas < 1:
        # To the controller 0 is a number that was not said.
        raise Invalid(
            "iris.replicas",
            f"A job has a whole number of tasks, at least 1, not {replicas!r:.80}.",
            hint="Submit no job where there is nothing to do.",
        )


def check_function(work: object) -> None:
    if not callable(work):
        raise Invalid("iris.entry", f"{work!r:.80} is no function.", hint="Give the function first.")
    if inspect.iscoroutinefunction(work):
        raise Invalid(
            "iris.entry",
            f"{_named(work)} is an async function, and a task calls plain ones.",
            hint=f"Give one that runs it: lambda: asyncio.run({_named(work)}()).",
        )


def check_call(work: Callable[..., Any], args: object, kwargs: object) -> None:
    """What the function would refuse is refused before a machine is got for it."""
    if not isinstance(args, tuple | list):
        raise Invalid(
            "iris.arguments",
            f"args are a tuple of arguments, not {args!r:.80}.",
            hint="Write a tuple of one as args=(value,).",
        )
    if not isinstance(kwargs, Mapping):
        raise Invalid(
            "iris.arguments",
            f"kwargs are a mapping, not {kwargs!r:.80}.",
            hint='Write kwargs={"name": value}.',
        )
    try:
        # The function itself and not what it wraps, which may take others.
        signature = inspect.signature(work, follow_wrapped=False)
    except ValueError:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise Invalid(
            "iris.arguments",
            f"{_named(work)} cannot be called like this: {error}.",
            hint="Give what it takes in args=(…) and kwargs={…}.",
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
    """The hash of the job's files; empty where it sends none."""
    if "working_dir" not in options:
        return ""
    # Archives and git are not every job's business.
    from neorion.iris.client.bundle import bundle  # noqa: PLC0415 -- as said

    return payload.add(bundle(Path(options["working_dir"]), options.get("exclude", ())).body)


def _entry(work: Work, payload: BlobPayload) -> Entry:
    if callable(work):
        check_function(work)
        return Oneof("call", pb.Call(function=payload.pickled(work, f"The function {_named(work)}")))
    argv = _argv(work)
    if not argv:
        raise Invalid(
            "iris.entry",
            f"{work!r:.80} is neither a function nor a command.",
            hint="Give a function, a text for the shell, or a list of texts: a program and its arguments.",
        )
    return Oneof("command", pb.Command(argv=argv))


def _argv(work: str | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The program and its arguments; nothing of what is no command."""
    if isinstance(work, str):
        return ["/bin/sh", "-c", work] if work.strip() else []
    try:
        return [os.fspath(word) for word in work]
    except TypeError:
        return []


def _named(work: Callable[..., Any]) -> str:
    return getattr(work, "__qualname__", repr(work))


def _resources(wanted: Mapping[str, str | float]) -> pb.Resources:
    known = ("cpu", "memory", "disk", "gpu")
    for name in wanted:
        if name not in known:
            raise Invalid("iris.resources", f'"{name}" is no resource.', hint=did_you_mean(name, known))
    _check_bytes(wanted)
    variant, count = _gpu(wanted.get("gpu", 0))
    return pb.Resources(
        cpu_milli=_amount("cpu", wanted.get("cpu", 1)).milli,
        memory_bytes=_amount("memory", wanted.get("memory", "1Gi")).whole,
        disk_bytes=_amount("disk", wanted.get("disk", 0)).whole,
        gpus=count,
        gpu_variant=variant,
    )


def _check_bytes(wanted: Mapping[str, str | float]) -> None:
    """A number without a unit is bytes, as in Kubernetes, but who writes 8 means gibibytes."""
    for name in ("memory", "disk"):
        value = wanted.get(name, 0)
        if 0 < _amount(name, value).whole < _BYTES_MIN:
            raise Invalid(
                "iris.resources",
                f"{name}: {value} is less than 1Mi: a number without a unit is bytes.",
                hint=f'Write "{value}Gi" for gibibytes.' if str(value).isdecimal() else 'Write it as "8Gi".',
            )


def _gpu(wanted: str | float) -> tuple[str, int]:
    """8, "8", "H100" or "H100:8"."""
    variant, _, count = str(wanted).rpartition(":")
    # A word without a letter is a number gone wrong: "-1", "1.5".
    if not variant and re.search(r"[A-Za-z]", count):
        variant, count = count, "1"
    if not count.isdecimal():
        raise Invalid(
            "iris.resources", f'"{wanted}" is no number of GPUs.', hint='Write 8, "H100" or "H100:8".'
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
        # Upwards: 0 is no limit at all.
        return -(-Duration.parse(value).ns // 1_000_000)
    except UnitError as error:
        raise Invalid(
            "iris.limits", f"{name}: {error}.", hint='Write a time such as 90, "30s" or "2h".'
        ) from None
