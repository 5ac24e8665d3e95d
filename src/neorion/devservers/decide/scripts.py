"""Small programs every server finds in its PATH's neighbourhood, `/opt/devserver/bin`. Plain shell and Python: any image runs them."""

from types import MappingProxyType

_TORCHRUN = """#!/bin/sh
# Runs a script on every GPU of this server: train my_script.py --epochs 3
set -eu
if [ $# -eq 0 ]; then echo "usage: train SCRIPT [ARGUMENTS]" >&2; exit 64; fi
if ! command -v torchrun >/dev/null 2>&1; then
  echo "train: this image has no torchrun; choose an image with PyTorch (devctl create --image)." >&2; exit 69
fi
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

SCRIPTS = MappingProxyType({"train": _TORCHRUN, "check-torch": _CHECK})
