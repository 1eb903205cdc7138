#!/usr/bin/env bash
# run.sh [WORD...]: runs the tests of scripts/kernels/tests, or its lines that contain one of
# the words, on Debian kernels in virtual machines. Prints a table of the outcomes on each
# kernel, and fails if a test fails. KERNELS names the releases (all by default). With SMOKE,
# only the tests of scripts/kernels/smoke run. See docs/kernels.md.
set -euo pipefail
cd "$(dirname "$0")/../.."

kernels=${KERNELS:-bullseye bookworm trixie sid}

# Maximum boots of a guest, and limits in seconds: time until its first output, time without
# output, and time of one boot. A test may take three tries of 90 s of guest time without
# output.
BOOTS=3
BOOTING=180
SILENT=600
LONGEST=1800

# A guest's clock counts instructions of 2 ns each, and skips idle time. Other load on this machine
# does not affect the guest's times, and runs are repeatable. This requires a single CPU. Several
# CPUs would take turns, and each CPU would stand still during the turns of the others.
CLOCK=(-accel 'tcg,thread=single' -icount 'shift=1,sleep=off' -smp 1)

# Leaves out features that qemu emulates slowly (16-byte exchange, AVX), and levels of page
# tables and protection that the tests do not need.
CPU=max,-cx16,-avx,-la57,-smap,-pku

KERNEL_OPTIONS='console=ttyS0 quiet panic=-1 mitigations=off nowatchdog no_timer_check tsc=reliable'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Background processes ignore Ctrl-C, so this script ends them.
trap 'trap "" TERM; kill 0; exit 1' INT TERM
list=scripts/kernels/tests
[[ -z ${SMOKE:-} ]] || list=scripts/kernels/smoke
grep -v '^#' "$list" | grep -F "$(printf '%s\n' "${@:-}")" >"$folder/tests" || {
	echo "kernels: no line of $list has one of these in it: $*" >&2
	exit 2
}
count=$(wc -l <"$folder/tests")

# boot KERNEL FIRST FILE: boots once, and starts with test number FIRST. Writes the guest's
# output to FILE, and its kernel's output to FILE.console.
boot() {
	local kernel=$1 first=$2 said=$3 guest silent
	: >"$said"
	timeout --foreground --kill-after 5 "$LONGEST" qemu-system-x86_64 \
		"${CLOCK[@]}" -cpu "$CPU" -m 2G -net none -display none -no-reboot \
		-kernel "$kernel" -initrd "$folder/initramfs" \
		-append "$KERNEL_OPTIONS first=$first" \
		-serial "file:$said.console" -serial "file:$said" </dev/null &
	guest=$!
	while kill -0 "$guest" 2>/dev/null; do
		sleep 1
		silent=$(($(date +%s) - $(stat -c %Y "$said")))
		if ((silent > SILENT)) || { [[ ! -s $said ]] && ((silent > BOOTING)); }; then
			kill "$guest" 2>/dev/null || true
			break
		fi
	done
	wait "$guest" || true
}

# outcomes KERNEL RESULTS: boots until every test has an outcome. Adds lines to
# RESULTS: "boot", "kernel RELEASE", "start NUMBER", "ok|failed NUMBER TRIES SECONDS".
outcomes() {
	local kernel=$1 results=$2 first=1 boots said=$2.said
	: >"$results"
	for ((boots = 0; boots < BOOTS && first <= count; boots++)); do
		boot "$kernel" "$first" "$said"
		echo boot >>"$results"
		# A serial line ends lines with CR LF.
		tr -d '\r' <"$said" | sed -n 's/^@//p' >>"$results"
		grep -v '^@' "$said" >&2 || true
		first=$(awk 'NF == 4 { done = $2 } END { print done + 1 }' "$results")
		if ((first <= count)); then
			echo "kernels: the guest died at test $first; the last words of its kernel:" >&2
			tail -n 15 "$said.console" >&2 || true
		fi
	done
}

# row RESULTS: prints a row of the table from the output of outcomes(), and appends failed tests
# to the file "missed".
row() {
	local results=$1
	awk -v missed="$folder/missed" '
		FNR == NR {
			name[FNR] = $2 "::" $3
			column[FNR] = $1
			if (!total[$1]++)
				order[++columns] = $1
			next
		}
		$1 == "boot" { boots++ }
		$1 == "kernel" { kernel = $2 }
		NF == 4 { outcome[$2] = $1; again += $1 == "ok" && $3 > 1 }
		END {
			if (!kernel)
				kernel = "did not boot"
			for (number = 1; number in name; number++) {
				passed[column[number]] += outcome[number] == "ok"
				if (outcome[number] != "ok") {
					bad++
					print kernel ": " column[number] ": " name[number] >>missed
				}
			}
			printf "| %s |", kernel
			for (i = 1; i <= columns; i++)
				printf " %d/%d |", passed[order[i]], total[order[i]]
			printf " %d | %d | %s |\n", again, boots, bad ? bad " missed" : "works"
		}' "$folder/tests" "$results"
}

for suite in $kernels; do
	scripts/kernels/fetch.sh "$suite" >"$folder/kernel"
done
echo '==> Packing what the guests run' >&2
scripts/kernels/initramfs.sh "$folder/initramfs" "$folder/tests"

# Each guest takes one CPU, so as many guests run at a time as there are CPUs.
for suite in $kernels; do
	while (($(jobs -rp | wc -l) >= $(nproc))); do
		wait -n || true
	done
	echo "==> Testing on the kernel of Debian's $suite" >&2
	outcomes "$(scripts/kernels/fetch.sh "$suite")" "$folder/$suite" 2>"$folder/$suite.log" &
done
wait

: >"$folder/missed"
for suite in $kernels; do
	cat "$folder/$suite.log" >&2
	row "$folder/$suite" >>"$folder/rows"
done

columns=$(awk '!seen[$1]++ { print $1 }' "$folder/tests" | paste -sd '|' | sed 's/|/ | /g')
emulator=$(qemu-system-x86_64 --version | sed -n 's/.* version \([^ ]*\).*/\1/p')
echo "$("${CARGO_TARGET_DIR:-target}/release/tables" machine); guests in qemu $emulator without KVM"
echo
header="| kernel | $columns | tried again | boots | |"
echo "$header"
between=${header//[^|]/}
between=${between//|/|---}
echo "${between%---}"
cat "$folder/rows"
echo
if [[ -s $folder/missed ]]; then
	sed 's/.*/- missed: &/' "$folder/missed"
	echo
fi
echo "$(wc -l <"$folder/missed") of $((count * $(wc -w <<<"$kernels"))) missed"
[[ ! -s $folder/missed ]]
