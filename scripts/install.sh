#!/usr/bin/env bash
# install.sh FROM PREFIX NAME...: installs binaries, their manual pages and completions
# for shells, as root where the folder needs it.
set -euo pipefail
from=$1 prefix=$2
shift 2

# A folder that cannot be made yet is writable if the one above it is.
existing=$prefix/bin
while [[ ! -e $existing ]]; do
	existing=$(dirname "$existing")
done
as_root=()
[[ -w $existing ]] || as_root=("$(dirname "$0")/as-root.sh")

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# print_to FILE ARGUMENT...: what systemscope prints, into a file to be installed.
print_to() {
	local file=$made/$1
	shift
	mkdir -p "$(dirname "$file")"
	"$from/systemscope" "$@" >"$file"
}

for name in "$@"; do
	"${as_root[@]}" install -D -m 755 "$from/$name" "$prefix/bin/$name"
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
