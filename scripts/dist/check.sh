#!/usr/bin/env bash
# check.sh OUT NAME...: checks the artefacts of build.sh in OUT, as root. Builds them again in a copy
# of the tree, and compares. Unpacks and installs them in systems that it makes: Debian 11, 12 and
# 13, one with musl and without glibc, one with only rpm, and containers. Each must profile a process
# there.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath "$1")
shift
tools=("$@")
work=$(mktemp -d)
trap clean EXIT
mkdir "$work/roots"
archive=$(echo "$out"/*.tar.zst)
name=$(basename "$archive" .tar.zst)
podman=(scripts/dist/podman.sh "$work/podman")

clean() {
	local status=$?
	jobs -p | xargs -r kill 2>/dev/null || true
	"${podman[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
	for root in "$work"/roots/*; do
		umount --recursive --lazy "$root/proc" 2>/dev/null || true
		umount --recursive --lazy "$root/sys" 2>/dev/null || true
	done
	chmod -R u+w "$work/podman" 2>/dev/null || true
	rm -rf --one-file-system "$work"
	exit "$status"
}

say() { echo "==> dist-check: $*" >&2; }

fail() {
	echo "dist-check: $*" >&2
	exit 1
}

# run_in ROOT COMMAND...: runs a command in the system ROOT, for a minute at most.
run_in() { timeout 60 chroot "$@"; }

# check_program ROOT FOLDER [COMMAND...]: checks that each tool of FOLDER in the system ROOT profiles
# a process there: COMMAND, or a shell.
check_program() {
	local root=$1 folder=$2 target
	shift 2
	(($#)) || set -- /bin/sh -c 'while :; do :; done'
	chroot "$root" "$@" &
	target=$!
	for tool in oncputime offcputime offwaketime 'cpudist 1'; do
		read -ra command <<<"$tool"
		run_in "$root" "$folder/${command[0]}" -p "$target" "${command[@]:1}" 1 >"$work/text" 2>"$work/said" ||
			fail "$tool in $root: $(<"$work/said")"
	done
	run_in "$root" "$folder/oncputime" -p "$target" -d 1 -F 199 >"$work/text" 2>"$work/said" ||
		fail "oncputime in $root: $(<"$work/said")"
	kill "$target"
	wait "$target" 2>/dev/null || true
	grep -qE '^(sh|spin);[^ ].* [0-9]+$' "$work/text" || fail "no stacks in $root: $(<"$work/said")"
	! grep -q 'cut short' "$work/said" || fail "stacks are cut short in $root: $(<"$work/said")"
	run_in "$root" "$folder/wallclock" --version >/dev/null || fail "wallclock does not run in $root"
	run_in "$root" "$folder/oncputime" --user root -d 1 -o /tmp/user.folded -- /bin/sh -c : >/dev/null \
		2>"$work/said" || fail "--user in $root: $(<"$work/said")"
	rm "$root/tmp/user.folded"
}

# mount_kernel ROOT: gives a system the kernel's file systems.
mount_kernel() {
	mkdir -p "$1/proc" "$1/sys"
	mount -t proc proc "$1/proc"
	mount --rbind /sys "$1/sys"
	mount --make-rslave "$1/sys"
}

check_archive() {
	local size
	(cd "$out" && sha256sum --quiet -c SHA256SUMS)
	mkdir "$work/archive"
	tar -C "$work/archive" -xf "$archive"
	size=$(stat -c %s "$work/archive/$name/bin/systemscope")
	say "the program has $size bytes"
	((size < 15000000)) || fail "the program has $size bytes, more than 15 MB"
	! ldd "$work/archive/$name/bin/systemscope" 2>/dev/null | grep -q '=>' || fail 'the program needs libraries'
}

check_reproducible() {
	mkdir "$work/copy"
	git ls-files -z --cached --others --exclude-standard |
		tar -c --null -T - --ignore-failed-read | tar -x -C "$work/copy"
	# The target folder of the build holds the compiled subcommand.
	mkdir -p "$work/copy/target"
	cp -a "$(realpath "${CARGO_TARGET_DIR:-target}")/dist-tools" "$work/copy/target/"
	SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) CARGO_TARGET_DIR='' \
		env -u CARGO_TARGET_DIR "$work/copy/scripts/dist/build.sh" "$work/again" "${tools[@]}" >&2
	diff "$out/SHA256SUMS" "$work/again/SHA256SUMS" >&2 || fail 'two builds differ'
}

# make_debian SUITE ROOT: makes a system of the essential packages of a release.
make_debian() (
	source scripts/suite.sh
	mkdir -p "$work/apt-$1"
	use_suite "$1" "$work/apt-$1"
	unset APT_CONFIG
	mmdebstrap --quiet --variant=minbase --mode=root "$1" "$2" "$work/apt-$1/sources"/* >&2
)

check_debian() {
	local release=$1 root=$work/roots/$1 package older
	make_debian "$release" "$root"
	mount_kernel "$root"
	cp -a "$work/archive/$name" "$root/opt/"
	check_program "$root" "/opt/$name/bin"

	package=$(echo "$out"/*.deb)
	chroot "$root" find / -xdev -path /proc -prune -o -path /sys -prune -o -path /var/lib/dpkg -prune \
		-o -path /var/log -prune -o -print | sort >"$work/before"
	older=$work/older.deb
	rm -rf "$work/older"
	dpkg-deb -R "$package" "$work/older"
	sed -i 's/^Version: .*/Version: 0.0.1/' "$work/older/DEBIAN/control"
	dpkg-deb --root-owner-group -Znone -b "$work/older" "$older" >/dev/null
	cp "$older" "$package" "$root/tmp/"
	for step in "-i /tmp/older.deb" "-i /tmp/${package##*/}"; do
		# shellcheck disable=SC2086
		chroot "$root" dpkg $step >"$work/said" 2>&1 || fail "dpkg $step: $(<"$work/said")"
	done
	check_program "$root" /usr/bin
	rm "$root/tmp/older.deb" "$root/tmp/${package##*/}"
	for step in -r -P; do
		chroot "$root" dpkg "$step" systemscope >"$work/said" 2>&1 || fail "dpkg $step: $(<"$work/said")"
	done
	chroot "$root" find / -xdev -path /proc -prune -o -path /sys -prune -o -path /var/lib/dpkg -prune \
		-o -path /var/log -prune -o -print | sort >"$work/after"
	diff "$work/before" "$work/after" >&2 || fail "the package left files in $release"
}

# make_small_root ROOT: makes a system with a shell and /bin/spin, a program for musl.
make_small_root() {
	local root=$1
	mkdir -p "$root"/{bin,lib,etc,opt,tmp}
	cp "$(command -v busybox)" "$root/bin/busybox"
	ln -s busybox "$root/bin/sh"
	cp -L /lib/ld-musl-x86_64.so.1 "$root/lib/"
	echo 'int main(void) { for (volatile long i = 0;; i++); }' >"$work/spin.c"
	musl-gcc -o "$root/bin/spin" "$work/spin.c"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	mount_kernel "$root"
}

# A system with musl's loader and without glibc.
check_musl() {
	local root=$work/roots/musl
	make_small_root "$root"
	cp -a "$work/archive/$name" "$root/opt/"
	check_program "$root" "/opt/$name/bin" /bin/spin
	grep -q '^spin;.*main' "$work/text" || fail 'no stack of a program of musl'
}

check_rpm() {
	local root=$work/roots/rpm package
	package=$(echo "$out"/*.rpm)
	make_small_root "$root"
	rpm --root "$root" --initdb
	find "$root" -xdev -path "$root/var/lib/rpm" -prune -o -path "$root/root/.rpmdb" -prune -o \( -type f -o -type l \) -print |
		sort >"$work/before"
	# This system has no package that provides /bin/sh.
	rpm --root "$root" --nodeps -i "$package" >&2
	check_program "$root" /usr/bin /bin/spin
	rpm --root "$root" --nodeps -U --force "$package" >&2
	rpm --root "$root" -V --nodeps systemscope >&2 || fail 'the files differ from those of the .rpm'
	rpm --root "$root" --nodeps -e systemscope >&2
	find "$root" -xdev -path "$root/var/lib/rpm" -prune -o -path "$root/root/.rpmdb" -prune -o \( -type f -o -type l \) -print |
		sort >"$work/after"
	diff "$work/before" "$work/after" >&2 || fail 'the .rpm left files'
}

# run_image CAPABILITIES COMMAND...: runs a command of the image.
run_image() {
	local rights
	mapfile -t rights < <(xargs -n 1 <<<"$1")
	shift
	timeout 120 "${podman[@]}" run --rm --network none --pids-limit 0 --ulimit nofile=1024:1024 \
		--ulimit nproc=1024:1024 --pid host "${rights[@]}" "$image" "$@"
}

# Capabilities in a container without --privileged. A container's own seccomp filter would refuse
# perf_event_open().
LEAST='--cap-drop ALL --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE --cap-add SYSLOG
	--cap-add DAC_READ_SEARCH --cap-add CHECKPOINT_RESTORE --security-opt seccomp=unconfined
	--security-opt apparmor=unconfined --security-opt unmask=all'

check_image() {
	local image rights comm
	image=$("${podman[@]}" load --quiet --input "$(echo "$out"/*.oci.tar)" | sed 's/^Loaded image: *//')
	# A process of the host, and one of another container: both have names of their own there.
	mkdir -p "$work/other/bin"
	cp "$(command -v busybox)" "$work/other/bin/other-spin"
	ln -s other-spin "$work/other/bin/sh"
	"${podman[@]}" run --rm --network none --pids-limit 0 --ulimit nofile=1024:1024 \
		--ulimit nproc=1024:1024 --rootfs "$work/other" \
		/bin/sh -c 'exec -a sh /bin/other-spin -c "while :; do :; done"' &
	cp "$(command -v busybox)" "$work/host-spin"
	(exec -a sh "$work/host-spin" -c 'while :; do :; done') &
	sleep 2
	for rights in --privileged "$LEAST"; do
		say "image, ${rights:0:20}"
		run_image "$rights" oncputime -d 1 -F 199 >"$work/text" 2>"$work/said" ||
			fail "oncputime in the image: $(<"$work/said")"
		for comm in host-spin other-spin; do
			grep -q "^$comm;" "$work/text" || fail "no stack of $comm: $(<"$work/text")"
		done
		run_image "$rights" wallclock -d 1 --all >"$work/text" 2>"$work/said" ||
			fail "wallclock in the image: $(<"$work/said")"
		grep -q '^ *CPUS' "$work/text" "$work/said" || fail "no report: $(<"$work/said")"
	done
}

check_archive
say 'two builds are equal'
check_reproducible
for suite in bullseye bookworm trixie; do
	say "Debian $suite"
	check_debian "$suite"
done
say 'lintian'
lintian --fail-on error "$out"/*.deb >&2
say 'musl'
check_musl
say 'rpm'
check_rpm
check_image
jobs -p | xargs -r kill 2>/dev/null || true
"${podman[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
say 'crates'
"${CARGO:-cargo}" package --quiet --workspace --exclude systemscope-tests --exclude library-bench \
	--exclude tamper --exclude checks --exclude demo --allow-dirty --locked
say 'all passed'
