"""The processes of a Pod on a real node, as this machine sees them: to kill them as the kernel would."""

from pathlib import Path


def pod_processes(uid: str, words: str) -> list[int]:
    """Those with `words` in their command line, the oldest first. The kubelet names a Pod's control group after its uid."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            group, command = (entry / "cgroup").read_text(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if uid in group and words in command.replace(b"\0", b" ").decode(errors="replace"):
            found.append(int(entry.name))
    return sorted(found)
