#!/bin/sh
# The life of one node. Outside, it enters the node's control groups and namespaces; inside, as process 1, it gives the
# node its own places, waits for its cable, and keeps its programs running. When it ends, the kernel ends all of them.
#
#   DRYDOCK_NODE      the node's name
#   DRYDOCK_ADDRESS   its address
#   DRYDOCK_GROUPS    files to write our process id to
#   DRYDOCK_CLUSTER   the cluster's folder
#   DRYDOCK_FOLDER    the node's folder in it
#   DRYDOCK_PROGRAMS  the folder of kubelet and kube-proxy
#   DRYDOCK_DEVICES   the Python that serves devices; empty for a node without any
set -eu
# Not everybody's root has the programs for administrators on its path, and a node's programs call them.
export PATH="$PATH:/usr/sbin:/sbin"

if [ $$ != 1 ]; then
    for group in $DRYDOCK_GROUPS; do
        echo $$ >"$group"
    done
    # Images come from the cluster's registry, never through the machine's proxy.
    unset http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY all_proxy ALL_PROXY || :
    exec unshare --net --uts --ipc --pid --fork --kill-child --mount --propagation slave /bin/sh "$0"
fi

# What is mounted here is seen by the node's containers, and not by the machine.
mount --make-rshared /
mount -t proc proc /proc

# Kubelets and network plugins have places that cannot be configured. They get them in memory, over the machine's own.
# The cluster's folder may lie below one of those, so it is held and put back.
exec 3<"$DRYDOCK_CLUSTER"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/containerd /run/netns /run/lib/upper /run/lib/work
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/lib/upper,workdir=/run/lib/work overlay /var/lib
mkdir -p "$DRYDOCK_CLUSTER" /var/lib/kubelet /var/lib/cni
mount --no-canonicalize --bind /proc/self/fd/3 "$DRYDOCK_CLUSTER"
exec 3<&-
mount --bind "$DRYDOCK_FOLDER/kubelet" /var/lib/kubelet
mount --bind "$DRYDOCK_FOLDER/cni" /var/lib/cni
mount --bind "$DRYDOCK_FOLDER/log" /var/log
mkdir -p /var/log/pods /var/log/containers
hostname "$DRYDOCK_NODE"
cd /

# Runs "$@" until it holds true: 20 ms between tries, ten seconds at most.
await() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || exit 1
        sleep 0.02
    done
}

has_route() {
    [ -n "$(ip -4 route show default)" ]
}

# Runs a program again whenever it ends; its words go to its log.
keep() {
    log="/var/log/$1.log"
    shift
    while :; do
        "$@" >>"$log" 2>&1 || :
        sleep 0.5
    done
}

await has_route
keep containerd containerd --config "$DRYDOCK_FOLDER/containerd.toml" &
keep kube-proxy "$DRYDOCK_PROGRAMS/kube-proxy" --config "$DRYDOCK_FOLDER/kube-proxy.json" &
# A kubelet that finds no runtime gives up.
await test -S /run/containerd/containerd.sock
# One that is not told its address asks the machine's name servers for it, and no answer can reach it here.
keep kubelet "$DRYDOCK_PROGRAMS/kubelet" --config "$DRYDOCK_FOLDER/kubelet.json" \
    --kubeconfig "$DRYDOCK_FOLDER/kubeconfig" --hostname-override "$DRYDOCK_NODE" --node-ip "$DRYDOCK_ADDRESS" &
if [ -n "$DRYDOCK_DEVICES" ]; then
    keep devices "$DRYDOCK_DEVICES" -P -m neorion.drydock.devices "$DRYDOCK_FOLDER" &
fi

# Logs are opened for appending, so emptying one under its writer is safe.
while sleep 300; do
    find /var/log -maxdepth 1 -name '*.log' -size +16M -exec truncate --size 0 {} +
done
