"""Targets that read files which people write: kubeconfigs, cluster files and rules."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.keel.config import loads
from neorion.keel.kube.client import read_kubeconfig
from neorion.navarch.decide.policy import NodeHistory, Policy, Rule, compiled, evaluate, policy_input
from neorion.navarch.model import EventKind, Health, HealthEvent
from neorion.navarch.testing import NOW, node
from tests.attacks.fuzz_target import Attempt, Target, folder, mutants

ROOT: Final = Path(__file__).parents[2]

YAML_TOKENS: Final = [
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b": ",
        b"- ",
        b"\n",
        b"\n  ",
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!binary ",
        b"!!int ",
    ),
    *(
        b"!!timestamp x",
        b"!!set",
        b"!!python/object:os.system ",
        b"|",
        b">-",
        b"'",
        b'"',
        b'"\\ud800"',
        b"#",
        b"? ",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%YAML 9.9\n",
        b"\t",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"null",
        b"~",
        b".nan",
        b"1e999",
    ),
    *(
        b"0b",
        b"0o9",
        b"2001-99-99",
        b"190:20:30",
        b"9" * 5_000,
        b"[" * 2_000,
        b"- " * 2_000,
        b"{a: " * 2_000,
        b"${HOME}",
    ),
]
KUBECONFIGS: Final = [
    (
        b"apiVersion: v1\nkind: Config\ncurrent-context: home\ncontexts:\n- name: home\n  context: {cluster: c, user: u}\n"
        b"clusters:\n- name: c\n  cluster:\n    server: https://h:6443\n    certificate-authority-data: Y2E=\n"
        b"users:\n- name: u\n  user:\n    token: t\n    as: ann\n    as-groups: [devs]\n"
    ),
    (
        b"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [&c {name: c, cluster: "
        b"{server: 'https://h', proxy-url: 'http://p:1'}}]\nusers:\n- name: u\n  user:\n    exec: {command: x, apiVersion: "
        b"client.authentication.k8s.io/v1, args: [a], env: [{name: A, value: b}]}\n"
    ),
]


@contextmanager
def _kubeconfigs() -> Generator[Attempt]:
    with folder() as outside:
        path = outside / "config"

        def attempt(body: bytes) -> str:
            path.write_bytes(body)
            read_kubeconfig([path]).cluster()
            return "read"

        yield attempt


CLUSTER_FILES: Final = [
    path.read_bytes() for path in sorted((ROOT / "tests/iris/cluster_files").glob("*.yaml"))
]


@contextmanager
def _cluster_files() -> Generator[Attempt]:
    def attempt(body: bytes) -> str:
        loads(body.decode(errors="replace"), ClusterFile, {"HOME": "/"})
        return "read"

    yield attempt


RULES: Final = [
    b'event.xid == 79 && node.gpu_count > 0 || event.message.startsWith("fell")',
    b"recent.exists(e, e.xid == 63) || history.same_1h > 2",
    b'event.metrics["temp"] > 90.5 ? true : size(recent) >= 3',
    b'event.type in ["xid", "ecc"] && !(node.state == "active")',
]
RULE_TOKENS: Final = [
    *(
        b"event",
        b"node",
        b"recent",
        b".xid",
        b".exists(e,e)",
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b"==",
        b"&&",
        b"!",
    ),
    *(
        b"?",
        b":",
        b"-",
        b"/",
        b"%",
        b"0",
        b"1e308",
        b"9223372036854775807",
        b'"a"',
        b"b'\\xff'",
        b".matches('(a+)+$')",
    ),
    *(
        b"(" * 500,
        b"[" * 500,
        b"!" * 500,
        b"-" * 500,
        b"a?b:" * 300,
        b"has(",
        b"dyn(",
        b"int(",
        b"timestamp('x')",
        b"\0",
    ),
    *(b".map(x,", b".all(x,", b"\xc3\xa9", b'"""', b"//", b"0x", b"1u", b"duration('9999999999h')"),
]
# Each may take as long as it likes, so evaluation happens in a process with limits. Compiling does not.
_LOOPS: Final = (".map(", ".all(", ".exists", ".filter(", "matches")
_SITUATION: Final = policy_input(HealthEvent(NOW, EventKind.XID, gpu=0, xid=79), node(), NodeHistory(), NOW)


@contextmanager
def _rules() -> Generator[Attempt]:
    def attempt(body: bytes) -> str:
        text = body.decode(errors="replace")
        policy = compiled(Policy("mine", (Rule("one", text, Health.UNHEALTHY),)))
        if not any(loop in text for loop in _LOOPS):
            evaluate(policy, _SITUATION)
        return "read"

    yield attempt


FILE_TARGETS: Final[dict[str, Target]] = {
    "kubeconfig": Target(_kubeconfigs, mutants(KUBECONFIGS, YAML_TOKENS)),
    "cluster-file": Target(_cluster_files, mutants(CLUSTER_FILES, YAML_TOKENS)),
    "cel": Target(_rules, mutants(RULES, RULE_TOKENS)),
}
