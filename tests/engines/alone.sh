#!/bin/sh
# Runs a container engine apart from the machine's own: alone.sh GROUP COMMAND...
#
# Its processes, mounts and control groups lie in namespaces that end with this process, and GROUP names its control groups.
set -eu
group=$1

if [ $$ != 1 ]; then
    for controller in /sys/fs/cgroup/*/; do
        [ -e "$controller/cgroup.procs" ] || continue
        mkdir -p "$controller/$group"
        # Of the first version of control groups; without processors and memory of its own a group takes nothing in.
        for file in cpuset.mems cpuset.cpus; do
            [ ! -e "$controller/$file" ] || cat "$controller/$file" >"$controller/$group/$file"
        done
        echo $$ >"$controller/$group/cgroup.procs"
    done
    exec unshare --cgroup --pid --fork --kill-child --mount --propagation slave /bin/sh "$0" "$@"
fi

shift
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
