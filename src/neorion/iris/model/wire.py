"""Conversion between the model and messages. Incoming messages are validated completely here."""

import re
from functools import lru_cache
from typing import Literal

from protobuf import Oneof

from neorion.iris.model import record
from neorion.iris.model.constraint import Constraint, Op
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.ids import Digest, JobName
from neorion.iris.model.pending_reason import PendingReason
from neorion.iris.model.resources import Resources
from neorion.iris.model.spec import (
    Command,
    FunctionCall,
    JobSpec,
    Placement,
    PriorityBand,
    RetryBudget,
    TaskEnvironment,
    TimeLimits,
)
from neorion.iris.model.usage import Usage
from neorion.keel.base import Duration, Instant, Invalid, did_you_mean

REPLICAS_MAX = 100_000
# Limits so that names, values and lists fit into a message, a log line and a process's environment.
TEXT_CHARS_MAX = 128 * 1024
LIST_MAX = 10_000
# A job without its inputs: it is in memory while the job is known, and is sent to a worker with each task.
SPEC_BYTES_MAX = 1024 * 1024
_DIGEST_CHARS = 64
# The name becomes part of a variable's name.
_PORT = re.compile(r"[A-Za-z0-9._-]{1,63}")


def resources(message: pb.Resources | None) -> Resources:
    m = message or pb.Resources()
    amounts = (m.cpu_milli, m.memory_bytes, m.disk_bytes, m.gpus)
    if any(amount < 0 for amount in amounts):
        raise Invalid("iris.resources", "Resources cannot be negative.", hint="Give amounts of 0 or more.")
    return Resources(m.cpu_milli, m.memory_bytes, m.disk_bytes, m.gpus, m.gpu_variant)


def resources_message(value: Resources) -> pb.Resources:
    return pb.Resources(
        cpu_milli=value.cpu_milli,
        memory_bytes=value.memory,
        disk_bytes=value.disk,
        gpus=value.gpus,
        gpu_variant=value.gpu_variant,
    )


def usage(message: pb.Usage | None) -> Usage:
    m = message or pb.Usage()
    return Usage(m.cpu_ms, m.cpu_milli, m.memory_bytes, m.memory_peak_bytes, m.processes)


def usage_message(value: Usage) -> pb.Usage | None:
    """Message of the usage, or None if it is unknown."""
    if value == Usage():
        return None
    return pb.Usage(
        cpu_ms=value.cpu_ms,
        cpu_milli=value.cpu_milli,
        memory_bytes=value.memory,
        memory_peak_bytes=value.memory_peak,
        processes=value.processes,
    )


def spec(message: pb.JobSpec, name: JobName) -> JobSpec:
    _check_size(message)
    replicas = message.replicas or 1
    if not 1 <= replicas <= REPLICAS_MAX:
        raise Invalid(
            "iris.replicas",
            f"A job has between 1 and {REPLICAS_MAX} tasks, not {replicas}.",
            hint="Put more work into each task, or submit several jobs.",
        )
    if message.inputs and len(message.inputs) != replicas:
        raise Invalid(
            "iris.inputs",
            f"{len(message.inputs)} inputs do not fit {replicas} tasks.",
            hint="Give one input for each task, or none.",
        )
    if message.wait_limit_ms < 0 or message.run_limit_ms < 0 or message.max_failed_tasks < 0:
        raise Invalid("iris.limits", "A limit cannot be negative.", hint="Omit the limit to have none.")
    return JobSpec(
        name=name,
        entry=entry(message.entry),
        resources=resources(message.resources),
        replicas=replicas,
        inputs=tuple(digest(text) for text in message.inputs),
        environment=environment(message.environment),
        placement=Placement(_constraints(message), message.gang, message.spread),
        band=_band(message.band),
        budget=_budget(message),
        limits=TimeLimits(_span(message.wait_limit_ms), _span(message.run_limit_ms)),
        max_failed_tasks=message.max_failed_tasks,
        ports=_ports(message),
        warm=message.warm,
    )


def dedup_content(message: pb.JobSpec) -> bytes:
    """Content of a submission, to compare two submissions.

    Pickles are left out, because two runs of one program seldom pickle a function to the same bytes.
    """
    plain = pb.JobSpec.from_binary(message.to_binary())
    plain.inputs = []
    if plain.entry is not None and plain.entry.field == "call":
        plain.entry = Oneof("call", pb.Call())
    if plain.environment is not None:
        plain.environment.variables = dict(sorted(plain.environment.variables.items()))
    return plain.to_binary()


Entry = Oneof[Literal["command"], pb.Command] | Oneof[Literal["call"], pb.Call]


def entry_message(entry: Command | FunctionCall) -> Entry:
    if isinstance(entry, Command):
        return Oneof("command", pb.Command(argv=list(entry.argv)))
    return Oneof("call", pb.Call(function=entry.function))


def environment(message: pb.Environment | None) -> TaskEnvironment:
    m = message or pb.Environment()
    for name in m.variables:
        if not name or "=" in name or "\0" in name or "\0" in m.variables[name]:
            raise Invalid(
                "iris.variable",
                f"{name[:80]!r} is not a valid environment variable.",
                hint="Leave '=' out of names, and NUL characters out of names and values.",
            )
    _texts("variables", list(m.variables.values()))
    return TaskEnvironment(
        variables=tuple(sorted(m.variables.items())),
        bundle=digest(m.bundle) if m.bundle else Digest(""),
        packages=_packages(m),
        setup=_texts("setup", m.setup),
    )


def environment_message(value: TaskEnvironment) -> pb.Environment:
    return pb.Environment(
        variables=dict(value.variables),
        bundle=value.bundle,
        packages=list(value.packages),
        setup=list(value.setup),
    )


# Few digests occur often: a job's function with each start, the value None with each end.
@lru_cache(maxsize=4096)
def digest(text: str) -> Digest:
    if len(text) != _DIGEST_CHARS or not set(text) <= set("0123456789abcdef"):
        raise Invalid(
            "iris.digest",
            f"{text[:80]!r} is not a valid SHA-256 in hexadecimal.",
            hint="Use 64 hexadecimal digits in lower case.",
        )
    return Digest(text)


def ending_message(ending: record.Outcome) -> pb.Ending:
    return pb.Ending(
        cause=ending.cause or "",
        code=ending.code,
        message=ending.message,
        result=ending.result,
        result_bytes=ending.result_bytes,
    )


def reason_message(reason: PendingReason | None) -> pb.Reason | None:
    return reason and pb.Reason(code=reason.code, sentence=reason.sentence, hint=reason.hint)


def ms(moment: Instant | None) -> int:
    return moment.ns // 1_000_000 if moment else 0


def entry(message: Entry | None) -> Command | FunctionCall:
    match message:
        case Oneof(field="command", value=pb.Command() as command) if (
            command.argv and command.argv[0].strip()
        ):
            return Command(_texts("argv", command.argv))
        case Oneof(field="call", value=pb.Call() as call):
            return FunctionCall(digest(call.function))
        case _:
            raise Invalid(
                "iris.entry", "A job needs a command or a function to run.", hint="Give one of them."
            )


def _check_size(message: pb.JobSpec) -> None:
    size = len(message.to_binary()) - sum(map(len, message.inputs))
    if size - 2 * len(message.inputs) > SPEC_BYTES_MAX:
        raise Invalid(
            "iris.spec_too_large",
            f"The job's spec has {size} bytes; at most {SPEC_BYTES_MAX} are allowed.",
            hint="Put data into the arguments of a function or into files, not into commands and variables.",
        )


def _constraints(message: pb.JobSpec) -> tuple[Constraint, ...]:
    known = [op.value for op in Op]
    for one in message.constraints:
        if one.op not in known:
            raise Invalid(
                "iris.constraint",
                f'"{one.op[:40]}" is not a valid comparison.',
                hint=did_you_mean(one.op, known),
            )
        if (Op(one.op) in (Op.EXISTS, Op.ABSENT)) == bool(one.values):
            raise Invalid(
                "iris.constraint",
                f'"{one.key[:80]} {one.op}" has the wrong number of values.',
                hint='Write "key", "!key", "key=value" or "key in a,b".',
            )
    return tuple(Constraint(c.key, Op(c.op), tuple(c.values), not c.preferred) for c in message.constraints)


def _band(text: str) -> PriorityBand:
    known = {band.name.lower(): band for band in PriorityBand}
    if text and text not in known:
        raise Invalid("iris.band", f'"{text[:40]}" is not a valid priority.', hint=did_you_mean(text, known))
    return known.get(text, PriorityBand.INTERACTIVE)


def _budget(message: pb.JobSpec) -> RetryBudget:
    default = RetryBudget()
    failures = (
        message.retries_after_failure if message.has_field("retries_after_failure") else default.failures
    )
    losses = message.retries_after_loss if message.has_field("retries_after_loss") else default.losses
    if failures < 0 or losses < 0:
        raise Invalid(
            "iris.budget", "The number of retries cannot be negative.", hint="Give 0 or more retries."
        )
    return RetryBudget(failures, losses)


def _packages(message: pb.Environment) -> tuple[str, ...]:
    if not all(name.strip() for name in message.packages):
        raise Invalid(
            "iris.packages", "One of the packages has no name.", hint="Name the package, or leave it out."
        )
    return _texts("packages", message.packages)


def _ports(message: pb.JobSpec) -> tuple[str, ...]:
    for name in message.ports:
        if not _PORT.fullmatch(name):
            raise Invalid(
                "iris.ports",
                f"{name[:80]!r} is not a valid name of a port.",
                hint="Use up to 63 letters, digits, '.', '_' and '-'.",
            )
    return _texts("ports", message.ports)


def _texts(what: str, values: "list[str]") -> tuple[str, ...]:
    if len(values) > LIST_MAX or any(len(value) > TEXT_CHARS_MAX or "\0" in value for value in values):
        raise Invalid(
            "iris.too_long",
            f"{what}: too many, too long, or with a NUL character.",
            hint=f"Give at most {LIST_MAX}, each of at most {TEXT_CHARS_MAX} characters; send data as files or arguments.",
        )
    return tuple(values)


def _span(milliseconds: int) -> Duration | None:
    return Duration(milliseconds * 1_000_000) if milliseconds else None
