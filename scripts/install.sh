#!/usr/bin/env bash
# install.sh FROM TO NAME...: installs binaries, as root where the folder needs it.
set -euo pipefail
from=$1 to=$2
shift 2

# A folder that cannot be made yet is writable if the one above it is.
existing=$to
while [[ ! -e $existing ]]; do
	existing=$(dirname "$existing")
done
as_root=()
[[ -w $existing ]] || as_root=("$(dirname "$0")/as-root.sh")

for name in "$@"; do
	"${as_root[@]}" install -D -m 755 "$from/$name" "$to/$name"
done
echo "==> Installed $* in $to" >&2
