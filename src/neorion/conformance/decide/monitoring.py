"""Judgements about metrics of workloads, from the answers of Prometheus' query API."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]

COUNTER: Final = "neorion_conformance_requests_total"
HISTOGRAM: Final = "neorion_conformance_request_seconds"


def samples(answer: Json) -> list[Json]:
    """The samples of an instant query; none if it failed."""
    return list(answer.get("data", {}).get("result", [])) if answer.get("status") == "success" else []


def counted(name: str, found: Sequence[Json], expected: int) -> Assertion:
    """Exactly one series, with exactly the value."""
    values = [str(sample["value"][1]) for sample in found]
    held = len(values) == 1 and float(values[0]) == expected
    return Assertion(name, held, f"Found {', '.join(values) or 'no series'}, expected {expected}.")


def labelled(found: Sequence[Json], namespace: str, pod: str) -> Assertion:
    labels = [sample.get("metric", {}) for sample in found]
    held = bool(labels) and all(
        each.get("namespace") == namespace and each.get("pod") == pod for each in labels
    )
    words = ", ".join(f"{each.get('namespace', '')}/{each.get('pod', '')}" for each in labels)
    return Assertion("the series names its namespace and pod", held, f"Series of {words or 'nothing'}.")


def gone(found: Sequence[Json], seconds: float) -> Assertion:
    return Assertion(
        "the series ends with its workload",
        not found,
        f"{len(found)} series {seconds:.1f} s after the pod went.",
    )


def server_script(port: int, nonce: str) -> str:
    """A server of a counter and a histogram for any shell with httpd: it counts the requests that it answers."""
    label = f'{{run="{nonce}"}}'
    bucket = f'{{run="{nonce}",le="+Inf"}}'
    return f"""mkdir -p /tmp/www/cgi-bin; : > /tmp/count
cat > /tmp/www/cgi-bin/infer <<'END'
#!/bin/sh
echo x >> /tmp/count
printf 'Content-Type: text/plain\\r\\n\\r\\nok\\n'
END
cat > /tmp/www/cgi-bin/metrics <<'END'
#!/bin/sh
n=$(wc -l < /tmp/count)
printf 'Content-Type: text/plain; version=0.0.4\\r\\n\\r\\n'
echo '# TYPE {COUNTER} counter'
echo '{COUNTER}{label} '$n
echo '# TYPE {HISTOGRAM} histogram'
echo '{HISTOGRAM}_bucket{bucket} '$n
echo '{HISTOGRAM}_count{label} '$n
echo '{HISTOGRAM}_sum{label} 0'
END
chmod +x /tmp/www/cgi-bin/*
exec httpd -f -p {port} -h /tmp/www"""
