"""Judgements about an InferencePool, and a stand-in model server for any shell with httpd."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]

# By this name the extension's own suite asks whether a GatewayClass takes pools.
FEATURE: Final = "SupportInferencePool"
# Chooses by the length of the queue alone: other reports must not blur what is looked at.
PICKER_CONFIG: Final = """\
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: queue-scorer
  - pluginRef: max-score-picker
"""


def candidates(classes: Iterable[Json]) -> tuple[list[str], bool]:
    """The accepted classes that may take pools, and whether they state it. Where none does, all that state nothing."""
    accepted = [each for each in classes if _holds(each.get("status", {}).get("conditions", ()), "Accepted")]
    features = {each["metadata"]["name"]: _features(each) for each in accepted}
    stating = [name for name, found in features.items() if FEATURE in found]
    return (stating, True) if stating else ([name for name, found in features.items() if not found], False)


def takers(pool: Json | None) -> list[str]:
    """The Gateways that have taken the pool up, by its status."""
    parents: Sequence[Json] = (pool or {}).get("status", {}).get("parents", ())
    return [
        str(each["parentRef"]["name"])
        for each in parents
        if all(_holds(each.get("conditions", ()), kind) for kind in ("Accepted", "ResolvedRefs"))
    ]


def taken_up(pool: Json | None) -> Assertion:
    found = ", ".join(takers(pool))
    return Assertion(
        "a gateway takes the pool up",
        bool(found),
        f"The pool is accepted and resolved by {found}." if found else "No gateway has accepted the pool.",
    )


def refused(name: str, answers: Mapping[str, int]) -> Assertion:
    """Every request failed at the gateway: nothing but statuses of the server's fault came back."""
    held = bool(answers) and all(each.startswith("status 5") for each in answers)
    return Assertion(name, held, f"{_counted(answers)}.")


def served(name: str, answers: Mapping[str, int], servers: Collection[str]) -> Assertion:
    """Every request was answered by a model server."""
    return Assertion(name, bool(answers) and set(answers) <= set(servers), f"{_counted(answers)}.")


def server_script(port: int, name: str) -> str:
    """A model server that says its name, and reports a queue as long as it was told."""
    return f"""mkdir -p /tmp/www/cgi-bin
cat > /tmp/www/cgi-bin/who <<'END'
#!/bin/sh
head -c "${{CONTENT_LENGTH:-0}}" >/dev/null
printf 'Content-Type: text/plain\\r\\n\\r\\n{name}'
END
cat > /tmp/www/cgi-bin/queue <<'END'
#!/bin/sh
queue=$QUERY_STRING
{{
    for metric in num_requests_running kv_cache_usage_perc; do
        echo "# TYPE vllm:$metric gauge"
        echo "vllm:$metric{{model_name=\\"stand-in\\"}} 0"
    done
    echo "# TYPE vllm:num_requests_waiting gauge"
    echo "vllm:num_requests_waiting{{model_name=\\"stand-in\\"}} $queue"
}} > /tmp/www/metrics.new
mv /tmp/www/metrics.new /tmp/www/metrics
printf 'Content-Type: text/plain\\r\\n\\r\\n%s' "$queue"
END
chmod +x /tmp/www/cgi-bin/*
exec httpd -f -p {port} -h /tmp/www"""


def _features(gateway_class: Json) -> set[str]:
    found: Sequence[Json] = gateway_class.get("status", {}).get("supportedFeatures", ())
    return {str(each["name"]) for each in found}


def _holds(conditions: Iterable[Json], kind: str) -> bool:
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _counted(answers: Mapping[str, int]) -> str:
    return ", ".join(f"{each} {count}" for each, count in sorted(answers.items())) or "No answer"
