"""Judgements about disaggregated inference, and stand-in model servers of its two roles for any shell with httpd."""

from collections.abc import Mapping
from typing import Final

from neorion.conformance.model import Assertion

PREFILL: Final = "prefill"
DECODE: Final = "decode"
# Of the cache that a prefill pod hands over for each request.
CACHE_BYTES: Final = 65_536


def both_served(request: str, logs: Mapping[str, str]) -> Assertion:
    """One request is in the log of a pod of each role."""
    lacking = [role for role in (PREFILL, DECODE) if f"request {request}" not in logs.get(role, "")]
    return Assertion(
        "one request passes both roles",
        not lacking,
        f"The request is not in the log of {', '.join(lacking)}." if lacking else "Both roles logged it.",
    )


def handed_over(request: str, log: str) -> Assertion:
    """The decode pod got the whole cache of the request from the prefill pod."""
    found = [line.split()[-1] for line in log.splitlines() if line.startswith(f"cache {request} ")]
    return Assertion(
        "the cache of the request is handed over",
        found[-1:] == [str(CACHE_BYTES)],
        f"{', '.join(found) or 'No'} bytes were received, {CACHE_BYTES} were sent.",
    )


def scaled_alone(role: str, counts: Mapping[str, int], before: Mapping[str, int], expected: int) -> Assertion:
    others = [name for name in before if name != role and counts.get(name) != before[name]]
    return Assertion(
        f"{role} scales without the other role",
        counts.get(role) == expected and not others,
        f"{', '.join(f'{name} {count}' for name, count in sorted(counts.items()))} pods are ready.",
    )


def prefill_script(port: int) -> str:
    """Logs each request and answers with a cache."""
    return _server(
        port,
        "prefill",
        f'echo "request $QUERY_STRING" >> /tmp/log\nhead -c {CACHE_BYTES} /dev/zero',
    )


def decode_script(port: int, prefill: str) -> str:
    """Asks a prefill pod for the cache of each request, and fails without one."""
    return _server(
        port,
        "decode",
        'echo "request $QUERY_STRING" >> /tmp/log\n'
        f'size=$(timeout 5 wget -qO- "http://{prefill}:{port}/cgi-bin/prefill?$QUERY_STRING" | wc -c)\n'
        'echo "cache $QUERY_STRING $size" >> /tmp/log\n'
        'echo "$size"',
    )


def _server(port: int, name: str, body: str) -> str:
    return f"""mkdir -p /tmp/www/cgi-bin; : > /tmp/log
cat > /tmp/www/cgi-bin/{name} <<'END'
#!/bin/sh
printf 'Content-Type: application/octet-stream\\r\\n\\r\\n'
{body}
END
chmod +x /tmp/www/cgi-bin/*
tail -f /tmp/log &
exec httpd -f -p {port} -h /tmp/www"""
