#!/usr/bin/env bash
# initramfs.sh FILE TESTS: packs the tools, the test programs named in TESTS (lines "column
# program test"), their workloads and libraries into the initramfs of a guest. Everything must
# be built already, in CARGO_TARGET_DIR.
set -euo pipefail
cd "$(dirname "$0")/../.."
file=$1 tests=$2
target=$(realpath "${CARGO_TARGET_DIR:-target}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

die() {
	echo "kernels: $*" >&2
	exit 1
}

# Every user must be able to enter the guest's root folder.
chmod 755 "$stage"
mkdir -p "$stage"/{bin,usr/bin,dev,etc,proc,root,sys,tmp,target/release/deps}
chmod 1777 "$stage/tmp"
install -m 755 scripts/kernels/init "$stage/init"
cp "$tests" "$stage/tests"
cp "$(command -v busybox)" "$stage/bin/busybox"
# The tests use options of these programs that busybox lacks.
for program in nsenter taskset unshare; do
	cp "$(command -v $program)" "$stage/usr/bin/"
done
printf '%s:/bin/sh\n' root:x:0:0::/root nobody:x:65534:65534::/ >"$stage/etc/passwd"

strip -o "$stage/bin/systemscope" "$target/release/systemscope"
for tool in tools/*; do
	tool=${tool##*/}
	[[ $tool == systemscope ]] || ln -s systemscope "$stage/bin/$tool"
done

# Lists the paths of the test programs, as "accounting /…/deps/accounting-0123456789abcdef".
programs=$("${CARGO:-cargo}" test --profile bench --quiet --no-run --locked --package systemscope-tests \
	--lib --test '*' --message-format json |
	sed -n 's|.*"executable":"\([^"]*/\([^/"]*\)-[0-9a-f]*\)".*|\2 \1|p')
mapfile -t needed < <(cut -d ' ' -f 2 "$tests" | sort -u)
for program in "${needed[@]}"; do
	path=$(sed -n "s|^$program ||p" <<<"$programs")
	[[ -n $path ]] || die "there is no test program $program"
	strip -o "$stage/target/release/deps/$program" "$path"
	there=$("$path" --list)
	# `--exact` with an unknown name would run no test, and pass.
	while read -r test; do
		grep -qxF "$test: test" <<<"$there" || die "there is no test $test in $program"
	done < <(sed -n "s/^[^ ]* $program //p" "$tests")
done

# Tests find the workloads at the path of their sources.
mkdir -p "$stage$PWD/tests"
cp -r tests/workloads "$stage$PWD/tests/"
mkdir "$stage/target/release/workloads"
find "$target/release/workloads" -maxdepth 1 -type f -exec cp {} "$stage/target/release/workloads/" \;

# Copies the distribution's Python with its standard library, without modules that few programs
# import and files that the guest compiles itself.
if grep -q '^Python ' "$tests"; then
	python=$(realpath /usr/bin/python3)
	library=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
	tar -C / -c --exclude={__pycache__,config-*,ensurepip,idlelib,lib2to3,pydoc_data,tkinter,turtledemo} \
		--exclude={test,tests,'_test*'} usr/bin/python3 "${python#/}" "${library#/}" |
		tar -C "$stage" -x
fi

# Copies the default runtimes of other languages, as their columns need them. The virtual machine of
# Java gets only the modules that the tests use. The guest compiles the Java program itself.
if grep -q '^Java ' "$tests"; then
	jlink=$(dirname "$(realpath /usr/bin/java)")/jlink
	"$jlink" --add-modules java.base,java.management,jdk.compiler,jdk.zipfs --output "$stage/usr/lib/java"
	ln -s ../lib/java/bin/java "$stage/usr/bin/java"
	# Names of classes, and thus of files, are not ASCII.
	cp -r --parents /usr/lib/locale/C.utf8 "$stage"
fi
if grep -q '^JavaScript ' "$tests"; then
	install -D -t "$stage$PWD/tests/nodes/node_modules/node-24/bin" \
		tests/nodes/node_modules/node-24/bin/node
fi
if grep -q '^PHP ' "$tests"; then
	cp -L /usr/bin/php "$stage/usr/bin/"
	# Debian's PHP warns without a time zone.
	install -D -t "$stage/usr/share/zoneinfo" /usr/share/zoneinfo/{UTC,iso3166.tab,zone.tab}
fi
if grep -q '^Ruby ' "$tests"; then
	cp -L /usr/bin/ruby "$stage/usr/bin/"
	tar -C / -c --exclude=gems usr/lib/ruby usr/lib/x86_64-linux-gnu/ruby | tar -C "$stage" -x
fi

# ldd fails for static programs. Libraries that Python loads need not be executable.
{ find "$stage" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + || true; } 2>/dev/null |
	sed -n 's|^\t[^/]*\(/[^ ]*\.so[^ ]*\) .*|\1|p' | sort -u |
	while read -r library; do
		install -D "$library" "$stage$library"
	done

(cd "$stage" && find . | busybox cpio -o -H newc) >"$file"
