#!/bin/sh
# Runs a container engine apart from the machine's own: alone.sh PARENT NAME COMMAND...
#
# Its processes, mounts and control groups lie in namespaces that end with this process. The control groups are PARENT/NAME.
set -eu
group=$1/$2

if [ $$ != 1 ]; then
    for controller in /sys/fs/cgroup/*/; do
        [ -e "$controller/cgroup.procs" ] || continue
        for folder in "$controller/$1" "$controller/$group"; do
            mkdir -p "$folder"
            # Of the first version of control groups; without processors and memory of its own a group takes nothing in.
            for file in cpuset.mems cpuset.cpus; do
                [ ! -e "$folder/$file" ] || cat "$folder/../$file" >"$folder/$file"
            done
        done
        echo $$ >"$controller/$group/cgroup.procs"
    done
    exec unshare --cgroup --pid --fork --kill-child --mount --propagation slave /bin/sh "$0" "$@"
fi

shift 2
mount -t proc proc /proc
for controller in /sys/fs/cgroup/*/; do
    [ ! -e "$controller/$group" ] || mount --bind "$controller/$group" "$controller"
done
# Engines keep sockets here, wherever the rest of them lies.
for folder in /run/containerd /run/docker; do
    mkdir -p "$folder"
    mount -t tmpfs tmpfs "$folder"
done
# A shell takes in the processes that engines leave behind.
"$@" &
wait $!
