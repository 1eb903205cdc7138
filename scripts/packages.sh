#!/usr/bin/env bash
# Installs the missing system packages for a purpose. Each purpose includes the build.
#
#     packages.sh build          the build
#     packages.sh test [all]     the quick tests, or all; also packages from npm and PyPI
#     packages.sh bench          `make bench`; also packages from npm and PyPI
#     packages.sh truth          `make truth`; also packages from npm and PyPI
#     packages.sh lint           `make lint`; also packages from npm
#     packages.sh kernels        `make test-kernels`; also packages from npm
#     packages.sh dist           `make dist` and `make dist-check`
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-build}

die() {
	echo "packages: $*" >&2
	exit 1
}

check_cargo() {
	local wanted found
	wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
	found=$("${CARGO:-cargo}" --version 2>/dev/null | cut -d ' ' -f 2) || true
	[[ -n $found ]] ||
		die "cargo $wanted or later is not on the PATH: install Rust from https://rustup.rs, as the user who runs make"
	[[ $(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1) == "$wanted" ]] ||
		die "cargo is $found, and $wanted or later is needed: run 'rustup update stable'"
}

# is_for PURPOSE...: checks whether the purpose is one of these.
is_for() {
	[[ " $* " == *" $purpose "* ]]
}

has() {
	command -v "$1" >/dev/null
}

# has_peer TOOL: checks whether a tool of libbpf-tools is installed. Our tools have the same
# names, and `make install` puts them beside systemscope.
has_peer() {
	local folder
	local -a folders
	IFS=: read -ra folders <<<"$PATH:/usr/sbin"
	for folder in "${folders[@]}"; do
		[[ ! -x $folder/$1 || -e $folder/systemscope ]] || return 0
	done
	has "bpf-$1"
}

# has_header HEADER: checks whether the C compiler finds a header.
has_header() {
	has cc && echo "#include <$1>" | cc -E -x c -o /dev/null - 2>/dev/null
}

# need DEBIAN FEDORA ARCH: notes a missing package by its name in each distribution.
missing=()
need() {
	local debian=$1 fedora=$2 arch=$3
	case $manager in
	apt-get) missing+=("$debian") ;;
	dnf) missing+=("$fedora") ;;
	pacman) missing+=("$arch") ;;
	none) missing+=("$debian") ;;
	esac
}

manager=none
for candidate in apt-get dnf pacman; do
	if has "$candidate"; then
		manager=$candidate
		break
	fi
done

check_cargo
has cc || need gcc gcc gcc
has_header stdlib.h || need libc6-dev glibc-devel glibc
has make || need make make make
has clang || need clang clang clang
has pkg-config || need pkg-config pkgconf-pkg-config pkgconf
has_header gelf.h || need libelf-dev elfutils-libelf-devel libelf
has_header zlib.h || need zlib1g-dev zlib-devel zlib
has_header zstd.h || need libzstd-dev libzstd-devel zstd
if is_for test bench truth; then
	has c++ || need g++ gcc-c++ gcc
	has objcopy || need binutils binutils binutils
	has python3 || need python3 python3 python
	# Targets whose stacks the tests check, and a debugger to compare with.
	has gdb || need gdb gdb gdb
	# GNU dwp knows no DWARF 5.
	has llvm-dwp || need llvm llvm llvm
	# A server of debug files, and its client to compare with.
	has debuginfod || need debuginfod elfutils-debuginfod debuginfod
	has debuginfod-find || need debuginfod elfutils-debuginfod-client elfutils
	has go || need golang-go golang go
	has mariadb-install-db || need mariadb-server-core mariadb-server mariadb
	has mariadb || need mariadb-client mariadb mariadb-clients
	has musl-gcc || need musl-tools musl-gcc musl
	has nginx || [[ -x /usr/sbin/nginx ]] || need nginx-light nginx nginx
	has node || need nodejs nodejs nodejs
	compgen -G '/usr/sbin/php-fpm*' >/dev/null || need php-fpm php-fpm php-fpm
	has podman || need podman podman podman
	has runc || [[ -x /usr/sbin/runc ]] || need runc runc runc
	has sysbench || need sysbench sysbench sysbench
	# Readers of the tools' output.
	has jq || need jq jq jq
	has chromium || has chromium-browser || has google-chrome || need chromium chromium chromium
	has firefox || has firefox-esr || need firefox-esr firefox firefox
	[[ -e /usr/share/perl5/Devel/NYTProf/flamegraph.pl ]] || has flamegraph.pl ||
		need libdevel-nytprof-perl flamegraph perl-devel-nytprof
	python3 -c 'import jsonschema' 2>/dev/null ||
		need python3-jsonschema python3-jsonschema python-jsonschema
fi
if is_for test bench truth kernels; then
	# Runtimes of the targets' languages.
	has javac || need default-jdk-headless java-devel jdk-openjdk
	has npm || need npm npm npm
	has php || need php-cli php-cli php
	has ruby || need ruby ruby ruby
fi
if is_for bench truth; then
	# Tools to compare with. Debian's names have no prefix. Fedora's names have one.
	has_peer cpudist || need libbpf-tools libbpf-tools libbpf-tools
	has bpftrace || need bpftrace bpftrace bpftrace
	has perf || need linux-perf perf perf
fi
if [[ $purpose == truth ]]; then
	has redis-server || need redis-server redis redis
	has redis-benchmark || need redis-tools redis redis
fi
if is_for test bench truth; then
	has wrk || need wrk wrk wrk
	# The tests use the distribution's Python, even if another comes first on the PATH.
	/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || need python3-venv python3 python
fi
if [[ $purpose == kernels ]]; then
	has strip || need binutils binutils binutils
	has qemu-system-x86_64 || need qemu-system-x86 qemu-system-x86-core qemu-system-x86
	has busybox || need busybox-static busybox busybox
	[[ -x /usr/bin/python3 ]] || need python3 python3 python
	has taskset || need util-linux util-linux util-linux
fi
if [[ $purpose == lint ]]; then
	has clang-format || need clang-format clang-tools-extra clang
	has shellcheck || need shellcheck ShellCheck shellcheck
	has node || need nodejs nodejs nodejs
	has npm || need npm npm npm
fi

if [[ $purpose == dist ]]; then
	has busybox || need busybox-static busybox busybox
	has dpkg-deb || need dpkg dpkg dpkg
	has git || need git git git
	has jq || need jq jq jq
	has podman || need podman podman podman
	has rpmbuild || need rpm rpm-build rpm-tools
	has zstd || need zstd zstd zstd
	# For the check.
	has lintian || need lintian lintian lintian
	has mmdebstrap || need mmdebstrap mmdebstrap mmdebstrap
	has musl-gcc || need musl-tools musl-gcc musl
fi

install_missing() {
	local as_root=scripts/as-root.sh failed
	[[ $manager != none ]] ||
		die "missing: ${missing[*]} (Debian's names), and there is no apt-get, dnf or pacman to install them with: install them by hand"
	echo "==> Installing with $manager: ${missing[*]}" >&2
	failed="$manager could not install ${missing[*]}: see above, or install them by hand"
	case $manager in
	apt-get)
		export DEBIAN_FRONTEND=noninteractive
		"$as_root" apt-get update -q=2 || die "$failed"
		"$as_root" apt-get install -q=2 -y --no-install-recommends "${missing[@]}" >/dev/null ||
			die "$failed"
		;;
	dnf) "$as_root" dnf install -q -y "${missing[@]}" || die "$failed" ;;
	# Arch does not support an installation from a refreshed list without a full upgrade. So the script
	# does not refresh the list.
	pacman) "$as_root" pacman -S --needed --noconfirm "${missing[@]}" || die "$failed" ;;
	esac
}

((${#missing[@]} == 0)) || install_missing

# No distribution has these viewers, drivers and checkers.
viewers=tests/viewers
if is_for test lint bench &&
	[[ ! $viewers/node_modules/.package-lock.json -nt $viewers/package-lock.json ]]; then
	echo "==> Installing with npm: what $viewers/package.json names" >&2
	npm ci --prefix "$viewers" --ignore-scripts --no-audit --no-fund --silent >&2 ||
		die "npm could not install what $viewers/package.json names: see above"
fi

# Targets in Python, and another profiler of Python. A copy of the requirements in the folder marks
# a complete installation.
pypi=tests/pypi
if is_for test bench truth &&
	[[ ! $pypi/venv/requirements.txt -nt $pypi/requirements.txt ]]; then
	echo "==> Installing with pip: what $pypi/requirements.txt names" >&2
	/usr/bin/python3 -m venv --clear "$pypi/venv" ||
		die "/usr/bin/python3 could not make $pypi/venv: see above"
	"$pypi/venv/bin/pip" --quiet --disable-pip-version-check install --require-hashes --no-deps \
		--only-binary=:all: --requirement "$pypi/requirements.txt" >&2 ||
		die "pip could not install what $pypi/requirements.txt names: see above"
	cp "$pypi/requirements.txt" "$pypi/venv/"
fi

# Official builds of Node.js that tests measure.
nodes=tests/nodes
if is_for test bench truth kernels &&
	[[ ! $nodes/node_modules/.package-lock.json -nt $nodes/package-lock.json ]]; then
	echo "==> Installing with npm: what $nodes/package.json names" >&2
	npm ci --prefix "$nodes" --ignore-scripts --no-audit --no-fund --silent >&2 ||
		die "npm could not install what $nodes/package.json names: see above"
fi

# Versions of runtimes that this distribution lacks. The tests run without a version that cannot be
# fetched, and scripts/test.sh reports it.
if [[ $purpose == test ]]; then
	scripts/pythons/missing.sh | while read -r version suite; do
		scripts/pythons/fetch.sh "$version" "$suite" </dev/null || true
	done
	scripts/runtimes/missing.sh "${2:-quick}" | while read -r program version suite; do
		scripts/runtimes/fetch.sh "$program" "$version" "$suite" </dev/null || true
	done
fi
