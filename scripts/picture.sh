#!/usr/bin/env bash
# Makes docs/images/wallclock.png, the picture of README.md: wallclock's flame graph of four
# threads of the demo program, drawn by Chromium.
#
# usage: scripts/picture.sh FOLDER, which contains the built tools (`make picture` passes it)
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${1:?usage: scripts/picture.sh FOLDER}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo 'picture.sh: chromium is missing: install the package chromium' >&2
	exit 1
}
work=$(mktemp -d)
"$bin/systemscope-demo" &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; rm -rf "$work"' EXIT

scripts/as-root.sh "$bin/wallclock" "$demo" --thread-name '^(burner|locker-a|reader|crowd-0)$' \
	-d 10 -f 99 --reasons -o "$work/picture.svg"
height=$(grep -o -m 1 '<svg[^>]* height="[0-9]*"' "$work/picture.svg" | grep -o '[0-9]*"$' | tr -d '"')
"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
	--window-size="1200,$height" --screenshot="$work/picture.png" "file://$work/picture.svg" \
	>"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
mkdir -p docs/images
cp "$work/picture.png" docs/images/wallclock.png
ls -l docs/images/wallclock.png
