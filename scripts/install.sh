#!/usr/bin/env bash
# install.sh FROM PREFIX NAME...: installs systemscope and a link to it for each other tool,
# with manual pages and completions for shells. It becomes root if the folder requires it. DEBUG
# may name a folder with the program and its line tables. The script then installs that program,
# and puts the line tables into the folder that debuggers search. GROUP may name a group. Its
# members, and nobody else, can then run the tools without being root.
set -euo pipefail
from=$1 prefix=$2
shift 2

# A missing folder can be created if the nearest existing folder above it is writable.
existing=$prefix/bin
while [[ ! -e $existing ]]; do
	existing=$(dirname "$existing")
done
as_root=()
[[ -w $existing ]] || as_root=("$(dirname "$0")/as-root.sh")

made=$(mktemp -d)
trap 'rm -rf "$made" "$made.debug" "$made.program"' EXIT

# print_to FILE ARGUMENT...: writes the output of systemscope to a file to be installed.
print_to() {
	local file=$made/$1
	shift
	mkdir -p "$(dirname "$file")"
	"$from/systemscope" "$@" >"$file"
}

program=$from/systemscope
if [[ -n ${DEBUG:-} ]]; then
	id=$(readelf --notes "$DEBUG/systemscope" | sed -n 's/^ *Build ID: //p')
	[[ -n $id ]] || {
		echo "install: $DEBUG/systemscope has no build ID: pass -Wl,--build-id to the linker" >&2
		exit 1
	}
	objcopy --only-keep-debug "$DEBUG/systemscope" "$made.debug"
	program=$made.program
	objcopy --strip-debug "$DEBUG/systemscope" "$program"
	"${as_root[@]}" install -D -m 644 "$made.debug" \
		"$prefix/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
fi

"${as_root[@]}" install -D -m 755 "$program" "$prefix/bin/systemscope"
if [[ -n ${GROUP:-} ]]; then
	capabilities=cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_dac_read_search,cap_checkpoint_restore
	getent group "$GROUP" >/dev/null || "${as_root[@]}" groupadd --system "$GROUP"
	"${as_root[@]}" chgrp "$GROUP" "$prefix/bin/systemscope"
	"${as_root[@]}" chmod 750 "$prefix/bin/systemscope"
	"${as_root[@]}" setcap "$capabilities+ep" "$prefix/bin/systemscope"
fi
for name in "$@"; do
	# A link replaces a tool that an older version installed as a program.
	[[ $name == systemscope ]] ||
		"${as_root[@]}" ln -sfn systemscope "$prefix/bin/$name"
	print_to "bash-completion/completions/$name" completions bash "$name"
	print_to "zsh/site-functions/_$name" completions zsh "$name"
	print_to "fish/vendor_completions.d/$name.fish" completions fish "$name"
	print_to "man/man1/$name.1" man "$name"
done
for name in export report diff info; do
	print_to "man/man1/systemscope-$name.1" man "$name"
done
mapfile -t files < <(cd "$made" && find . -type f)
for file in "${files[@]}"; do
	"${as_root[@]}" install -D -m 644 "$made/$file" "$prefix/share/$file"
done
echo "==> Installed $* in $prefix" >&2
