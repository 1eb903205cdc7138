#!/usr/bin/env bash
# Runs a command as root: as it is where we are root, else through sudo, with
# our environment and PATH, so that cargo and the tools are found as before.
set -euo pipefail

if ((EUID == 0)); then
	exec "$@"
fi
if ! command -v sudo >/dev/null; then
	echo "as-root: '$1' needs root and there is no sudo: run make as root" >&2
	exit 1
fi
# sudo drops PATH and may change HOME, by which rustup finds its toolchains.
exec sudo -E env "PATH=$PATH" "HOME=$HOME" "$@"
