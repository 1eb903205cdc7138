#!/usr/bin/env bash
# podman.sh STATE ARGUMENT...: runs Podman with all its files below STATE. The machine's images and
# containers do not change. Root sees only cgroup version 2, because container runtimes do not
# support both versions together.
set -euo pipefail
state=$1
shift
podman=(podman --root "$state/storage" --runroot "$state/run" --storage-driver vfs
	--cgroup-manager cgroupfs)
if ((EUID)); then
	exec "${podman[@]}" "$@"
fi
# shellcheck disable=SC2016
exec unshare --mount sh -c '
	mount --make-rprivate / && umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit
	exec "$@"' sh "${podman[@]}" --runtime runc "$@"
