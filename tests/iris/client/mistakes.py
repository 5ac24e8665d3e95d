"""What users write by mistake: each with the code and the hint that it is refused with."""

import threading
from collections.abc import Callable
from typing import Any, cast

from neorion.iris.client import AsyncIrisClient
from neorion.iris.model.constraint import Constraint
from neorion.iris.model.gen import iris_pb as pb

LOCK = threading.Lock()
PLAIN = "Pass plain data, and open files, locks and connections in the function."
AMOUNT = 'Write an amount like 2, "500m" or "8Gi".'
TIME = 'Write a time such as 90, "30s" or "2h".'
NAME = "Use up to 63 letters, digits, '.', '_' and '-', beginning and ending with a letter or digit."
CALL = "Pass the function's arguments in args=(…) and kwargs={…}."
WORK = "Pass a function, a shell command as a string, or a program and its arguments as a list."
OPTIONS = "See the options in docs/guides/iris.md."
TEXT = 'Give the name as text: submit(work, "train").'
GPUS = 'Write 8, "H100" or "H100:8".'
NUMBER = "Give a smaller number."
UTF8 = "Write names and values as UTF-8; send other bytes in files or arguments."
PORT = "Use up to 63 letters, digits, '.', '_' and '-'."
RULE = 'Write "zone=us-east-1a", "gpu-memory>=80", "zone in a,b", "nvlink" or "!spot".'
LISTS = "Give at most 10000, each of at most 131072 characters; send data as files or arguments."

Submit = Callable[[AsyncIrisClient], Any]


def submit(work: Any = "true", name: str = "bad", **options: Any) -> Submit:
    return lambda client: client.submit(work, name, **options)


async def waits() -> None: ...


USER: dict[str, tuple[Submit, str, str]] = {
    "a function that cannot be pickled": (submit(lambda: LOCK), "iris.unpicklable", PLAIN),
    "an argument that cannot be pickled": (submit(print, args=(LOCK,)), "iris.unpicklable", PLAIN),
    "an item that cannot be pickled": (lambda client: client.map(print, [LOCK]), "iris.unpicklable", PLAIN),
    "a chunk of less than nothing": (
        lambda client: client.map(print, [1, 2], chunk=-1),
        "iris.chunk",
        "Set chunk to 1 or more, or omit it.",
    ),
    "more chunks than one message names": (
        lambda client: client.start_map(print, [LOCK] * 120_001, chunk=1),
        "iris.chunk",
        "Set chunk to 3 or more, or omit it.",
    ),
    "more arguments than one message names": (
        submit(print, args=(1,), replicas=100_000),
        "iris.arguments",
        "Put the arguments into the function: functools.partial(function, …).",
    ),
    "arguments for a command": (submit(args=(1,)), "iris.arguments", "Put them into the command."),
    "arguments that are no tuple": (
        submit(print, args=5),
        "iris.arguments",
        "Write a tuple of one as args=(value,).",
    ),
    "arguments that are a text": (
        submit(print, args="ab"),
        "iris.arguments",
        "Write a tuple of one as args=(value,).",
    ),
    "named arguments without names": (
        submit(print, kwargs=[1]),
        "iris.arguments",
        'Write kwargs={"name": value}.',
    ),
    "an argument too few": (submit(Constraint.parse), "iris.arguments", CALL),
    "an argument too many": (submit(lambda: 1, args=(1,)), "iris.arguments", CALL),
    "nothing to run": (submit(None), "iris.entry", WORK),
    "an empty command": (submit(" "), "iris.entry", WORK),
    "a command with a number in it": (submit(["echo", 1]), "iris.entry", WORK),
    "work and name the wrong way round": (submit("train", print), "iris.name", TEXT),  # pyright: ignore[reportArgumentType] -- that is the mistake
    "a program without a name": (submit(["", "x"]), "iris.entry", "Give one of them."),
    "a package without a name": (
        submit(packages=["numpy", " "]),
        "iris.packages",
        "Name the package, or leave it out.",
    ),
    "a port without a name": (submit(ports=[""]), "iris.ports", PORT),
    "a port whose variable no shell reads": (submit(ports=["a b"]), "iris.ports", PORT),
    "an async function": (
        submit(waits),
        "iris.entry",
        "Pass a function that runs it: lambda: asyncio.run(waits()).",
    ),
    "an async function for many": (
        lambda client: client.map(waits, [1]),
        "iris.entry",
        "Pass a function that runs it: lambda: asyncio.run(waits()).",
    ),
    "items and function the wrong way round": (
        lambda client: client.map(cast("Any", [1]), "ab"),
        "iris.entry",
        "Pass a function as the first argument.",
    ),
    "one package for a list of them": (submit(packages="numpy"), "iris.option", OPTIONS),
    "one constraint for a list of them": (submit(require="zone=moon"), "iris.option", OPTIONS),
    "a number for a variable": (submit(env={"A": 1}), "iris.option", OPTIONS),
    "a text for a number": (submit(retries="3"), "iris.option", OPTIONS),
    "a text for a number of tasks": (
        submit(replicas="4"),
        "iris.replicas",
        "Set replicas to 1 or more.",
    ),
    "resources that are a text": (submit(resources="gpu"), "iris.option", OPTIONS),
    "a misspelt part of an environment": (
        submit(environment={"package": ["x"]}),
        "iris.option",
        'did you mean "packages"?',
    ),
    "a misspelt option": (submit(retires=3), "iris.option", 'did you mean "retries"?'),
    "an option of map for submit": (
        submit(chunk=3),
        "iris.option",
        OPTIONS,
    ),
    "a misspelt resource": (submit(resources={"cpus": 1}), "iris.resources", 'did you mean "cpu"?'),
    "an amount that is none": (submit(resources={"memory": "lots"}), "iris.resources", AMOUNT),
    "memory without a unit": (
        submit(resources={"memory": 8}),
        "iris.resources",
        'Write "8Gi" for gibibytes.',
    ),
    "GPUs that are no number": (
        submit(resources={"gpu": "H100:many"}),
        "iris.resources",
        GPUS,
    ),
    "fewer GPUs than none": (submit(resources={"gpu": -1}), "iris.resources", GPUS),
    "half a GPU": (submit(resources={"gpu": 1.5}), "iris.resources", GPUS),
    "GPUs without a word": (submit(resources={"gpu": ""}), "iris.resources", GPUS),
    "less than nothing": (submit(resources={"cpu": -1}), "iris.resources", AMOUNT),
    "8 GPUs where the largest machine has 4": (
        submit(resources={"gpu": 8}),
        "iris.infeasible",
        "Request 4 GPUs or fewer per task, and more tasks.",
    ),
    "GPUs of a kind there is none of": (
        submit(resources={"gpu": "H10:1"}),
        "iris.infeasible",
        'did you mean "H100"?',
    ),
    "more memory than any machine has": (
        submit(resources={"memory": "900Ti"}),
        "iris.infeasible",
        "Request 7629Mi or less.",
    ),
    "a constraint nobody meets": (
        submit(require=["zone=moon"]),
        "iris.infeasible",
        "Drop the constraint, or see the workers' attributes with: iris worker list -o wide.",
    ),
    "a constraint that is none": (submit(require=["=="]), "iris.constraint", RULE),
    "a misspelt priority": (submit(priority="batsch"), "iris.band", 'did you mean "batch"?'),
    "a time that is none": (submit(timeout="soon"), "iris.limits", TIME),
    "a name with spaces": (submit(name="a b"), "iris.name", NAME),
    "no name": (submit(name=""), "iris.name", NAME),
    "too many tasks": (
        submit(replicas=100_001),
        "iris.replicas",
        "Put more work into each task, or submit several jobs.",
    ),
    "more tasks than there are numbers for": (submit(replicas=2**40), "rpc.unsendable", NUMBER),
    "more tries than there are numbers for": (submit(retries=2**40), "rpc.unsendable", NUMBER),
    "more GPUs than there are numbers for": (
        submit(resources={"gpu": f"H100:{2**70}"}),
        "rpc.unsendable",
        NUMBER,
    ),
    "a name that is no text": (submit(name="\udcff"), "rpc.unsendable", UTF8),
    "a variable that is no text": (submit(env={"A": "\udcff"}), "rpc.unsendable", UTF8),
    "a job by a name that is no text": (lambda client: client.get("\udcff"), "rpc.unsendable", UTF8),
    "a last line further off than there are numbers for": (
        lambda client: anext(client.calls.logs(pb.LogsRequest(job="/zoe/trained", tail_lines=2**70))),
        "rpc.unsendable",
        NUMBER,
    ),
    "no task at all": (submit(replicas=0), "iris.replicas", "Set replicas to 1 or more."),
    "fewer tries than none": (submit(retries=-1), "iris.budget", "Give 0 or more retries."),
    "a variable that is none": (
        submit(env={"A=B": "c"}),
        "iris.variable",
        "Leave '=' out of names, and NUL characters out of names and values.",
    ),
    "an oversize variable": (submit(env={"A": "x" * 200_000}), "iris.too_long", LISTS),
    "an oversize command": (submit(["echo", "x" * 200_000]), "iris.too_long", LISTS),
    "too many setup commands": (submit(setup=["true"] * 10_001), "iris.too_long", LISTS),
    "an oversize submission": (
        submit(["echo", *["x" * 100_000] * 50]),
        "rpc.too_large",
        "Send less, or in several calls.",
    ),
    "a job that is not there": (
        lambda client: client.get("/zoe/trainde"),
        "iris.no_job",
        'did you mean "trained"?',
    ),
    "something else than a job": (
        lambda client: client.wait(cast("str", 5)),
        "iris.name",
        TEXT,
    ),
    "a try that there was not": (
        lambda client: anext(client.calls.logs(pb.LogsRequest(job="/zoe/trained", attempt=9))),
        "iris.no_attempt",
        "Run: iris task attempts /zoe/trained 0.",
    ),
    "a task that is not there": (
        lambda client: client.logs("/zoe/trained", 7),
        "iris.no_task",
        "See them with: iris task list /zoe/trained.",
    ),
}
