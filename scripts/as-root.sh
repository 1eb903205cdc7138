#!/usr/bin/env bash
# Runs a command as root: directly if the user is root, and through sudo otherwise. Passes
# the environment and PATH on, so that cargo and the tools are found as before.
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
