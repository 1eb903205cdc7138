#!/usr/bin/env bash
# Profiles a process with wallclock, or the bundled demo program if PID is empty. Settings come
# from the environment: PID, DURATION, FREQ, MIN_BLOCK, BIN.
set -euo pipefail
cd "$(dirname "$0")/.."

pid=${PID:-}
if [[ -z $pid ]]; then
	name=demo
	# A process in the background of a script ignores Ctrl-C, which is meant for wallclock.
	"$BIN/systemscope-demo" &
	pid=$!
	trap 'kill "$pid" 2>/dev/null && wait "$pid" || true' EXIT
	echo "==> Started the demo program, process $pid" >&2
else
	name=${pid//[^0-9]/-}
fi
# wallclock reports after Ctrl-C, and this script continues after it.
trap : INT

mkdir -p profiles
prefix=profiles/$name-$(date +%Y%m%d-%H%M%S)
echo "==> Profiling for $DURATION s; Ctrl-C ends it early" >&2
status=0
scripts/as-root.sh "$BIN/wallclock" "$pid" -d "$DURATION" -f "$FREQ" -m "$MIN_BLOCK" -o "$prefix" ||
	status=$?
if ((EUID != 0)); then
	scripts/as-root.sh chown -R "$(id -u):$(id -g)" profiles
fi
for page in "$prefix.html" "$prefix/report.html"; do
	if [[ -f $page ]]; then
		echo "==> Open it in a browser:  xdg-open $PWD/$page" >&2
		echo "    The file needs nothing else: copy it to a machine that has a browser, or send it" >&2
	fi
done
exit "$status"
