"""Small programs every server finds in its PATH's neighbourhood, `/opt/devserver/bin`. Plain shell and Python: any image runs them."""

from types import MappingProxyType

_TORCHRUN = """#!/bin/sh
# Runs a script on every GPU: train my_script.py --epochs 3
# On a distributed server, run it on all ranks at once: devctl exec NAME --all -- /opt/devserver/bin/train my_script.py
set -eu
if [ $# -eq 0 ]; then echo "usage: train SCRIPT [ARGUMENTS]" >&2; exit 64; fi
if ! command -v torchrun >/dev/null 2>&1; then
  echo "train: this image has no torchrun; choose an image with PyTorch (devctl create --image)." >&2; exit 69
fi
# In a rank, torchrun reads PET_NNODES, PET_MASTER_ADDR and their like.
if [ -n "${PET_NNODES:-}" ]; then exec torchrun "$@"; fi
if command -v nvidia-smi >/dev/null 2>&1; then gpus=$(nvidia-smi --list-gpus | wc -l); else gpus=0; fi
[ "$gpus" -gt 0 ] || gpus=1
exec torchrun --standalone --nproc-per-node="$gpus" "$@"
"""

_CHECK = """#!/usr/bin/env python3
# Says in a few lines what PyTorch finds here.
try:
    import torch
except ImportError:
    raise SystemExit("check-torch: this image has no PyTorch; choose one that has (devctl create --image).")
print("PyTorch", torch.__version__)
print("CUDA", torch.version.cuda if torch.cuda.is_available() else "not available")
for index in range(torch.cuda.device_count()):
    properties = torch.cuda.get_device_properties(index)
    print(f"GPU {index}: {properties.name}, {properties.total_memory // 2**30} GiB")
with open("/proc/mounts") as mounts:
    shared = next((line for line in mounts if line.split()[1] == "/dev/shm"), None)
print("shared memory:", "in memory" if shared and " tmpfs " in shared else "missing: data loaders will be slow")
"""

_CHECK_DISTRIBUTED = """#!/usr/bin/env python3
# Adds up one number of each process. On all ranks: devctl exec NAME --all -- torchrun /opt/devserver/bin/check-distributed
import os
import time

try:
    import torch
    import torch.distributed as dist
except ImportError:
    raise SystemExit("check-distributed: this image has no PyTorch; choose one that has (devctl create --image).")

begun = time.monotonic()
backend = os.environ.get("DEVSERVER_BACKEND", "gloo")
if backend == "nccl" and not torch.cuda.is_available():
    backend = "gloo"
if backend == "nccl":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend)
met = time.monotonic()
rank, world = dist.get_rank(), dist.get_world_size()
number = torch.tensor([rank + 1.0], device="cuda" if backend == "nccl" else "cpu")
dist.all_reduce(number)
right = world * (world + 1) / 2
took = f"met in {met - begun:.2f} s, all-reduce in {time.monotonic() - met:.2f} s"
print(f"process {rank} of {world} ({backend}): sum {number.item():.0f} of {right:.0f}, {took}")
dist.destroy_process_group()
raise SystemExit(0 if number.item() == right else 1)
"""

_RANK_SSH = """#!/bin/sh
# Opens a shell on another rank, or runs a command there: rank-ssh 2 [COMMAND]
# As mpirun calls it, with the name of a host in place of the number, too.
set -eu
if [ $# -eq 0 ]; then echo "usage: rank-ssh RANK [COMMAND]" >&2; exit 64; fi
case $1 in
  *[!0-9]*) host=$1 ;;
  *) host="$DEVSERVER_NAME-$1.$DEVSERVER_NAME" ;;
esac
shift
config=/opt/devserver/ranks/ssh_config
tools=/opt/devserver/tools
if [ ! -f "$config" ]; then echo "rank-ssh: this server is not distributed." >&2; exit 69; fi
if command -v ssh >/dev/null 2>&1; then exec ssh -F "$config" "$host" "$@"; fi
if [ ! -x "$tools/ssh" ]; then
  echo "rank-ssh: there is no ssh in this image and none in the cluster's tools." >&2; exit 69
fi
export NSS_WRAPPER_PASSWD=/opt/devserver/run/passwd NSS_WRAPPER_GROUP=/opt/devserver/run/group
exec "$tools/lib/ld.so" --inhibit-cache --library-path "$tools/lib" --preload "$tools/lib/libnss_wrapper.so" \\
  "$tools/ssh" -F "$config" "$host" "$@"
"""

SCRIPTS = MappingProxyType(
    {
        "train": _TORCHRUN,
        "check-torch": _CHECK,
        "check-distributed": _CHECK_DISTRIBUTED,
        "rank-ssh": _RANK_SSH,
    }
)
