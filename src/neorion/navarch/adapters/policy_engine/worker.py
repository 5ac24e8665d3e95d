"""The process that judges: reads policies, then answers line by line until its parent is gone."""

import resource
import signal
import sys
from typing import Final

import msgspec

from neorion.navarch.decide.policy import Policy, compiled, evaluate
from neorion.navarch.model import PolicyResult

# The interpreter, CEL and a large burst together; a rule that needs more is broken.
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024
# Processor time for one request. A rule takes a tenth of a millisecond; a burst of a whole rack some hundreds of them.
SECONDS_MAX: Final = 1.0


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = sys.stdin.buffer
    policies = msgspec.json.decode(lines.readline(), type=dict[str, Policy])
    ready = {name: compiled(policy) for name, policy in policies.items()}
    _answer([])
    for line in lines:
        request = msgspec.json.decode(line)
        rules = ready[request["policy"]]
        # The signal's default is the end of the process, in whatever it is doing.
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_MAX)
        verdicts = [evaluate(rules, situation) for situation in request["situations"]]
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _answer(verdicts)


def _answer(verdicts: list[PolicyResult]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(verdicts) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
