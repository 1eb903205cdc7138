#!/usr/bin/env bash
# Makes docs/images/page.png, the picture of README.md: the first screen of wallclock's page of the
# demo program, drawn by Chromium.
#
# usage: scripts/picture.sh FOLDER, which contains the built tools (`make picture` passes it)
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(realpath "${1:?usage: scripts/picture.sh FOLDER}")
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo 'picture.sh: chromium is missing: install the package chromium' >&2
	exit 1
}
work=$(mktemp -d)
"$bin/systemscope-demo" &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; rm -rf "$work"' EXIT

as_root=$PWD/scripts/as-root.sh
# The page shows the command line.
(cd "$work" && PATH=$bin:$PATH "$as_root" wallclock "$demo" -d 10 --timeline -o picture.html >/dev/null)
"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
	--window-size=1100,1150 --screenshot="$work/picture.png" "file://$work/picture.html" \
	>"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
mkdir -p docs/images
cp "$work/picture.png" docs/images/page.png
ls -l docs/images/page.png
