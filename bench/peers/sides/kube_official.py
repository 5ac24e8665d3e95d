import gc
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kubernetes import client, config
from side import answers

POD = (Path(__file__).parents[2] / "kube" / "pod.json").read_text()
PAGE = 4096


def pod(api, number):
    text = POD.replace("POD_NAME", f"pod-{number}").replace("UID", f"uid-{number}")
    return api.deserialize(text, "V1Pod", "application/json")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def decode(count):
    """Microseconds for each."""
    api = client.ApiClient()
    began = time.perf_counter()
    for number in range(count):
        pod(api, number)
    return (time.perf_counter() - began) / count * 1e6


def keep(count):
    """Kilobytes for each."""
    api = client.ApiClient()
    pod(api, 0)
    gc.collect()
    before = resident()
    kept = [pod(api, number) for number in range(count)]
    gc.collect()
    return (resident() - before) / len(kept) / 1e3


def patch(count, clock):
    config.load_kube_config(os.environ["BENCH_KUBECONFIG"])
    core = client.CoreV1Api()

    def one(number):
        body = {"data": {"number": str(number)}}
        core.patch_namespaced_config_map(f"bench-{number % 32}", "default", body)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(one, range(32)))
        began = clock()
        list(pool.map(one, range(count)))
        return clock() - began


WORKS = {
    "decode": decode,
    "keep": keep,
    "rate": lambda count: count / patch(count, time.perf_counter),
    "cpu": lambda count: patch(count, time.process_time) / count * 1e6,
}

answers.write("0\n")
for line in sys.stdin:
    asked = json.loads(line)
    answers.write(f"{WORKS[asked['work']](asked['count'])}\n")
