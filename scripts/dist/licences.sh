#!/usr/bin/env bash
# licences.sh TRIPLE: prints the licences of all that the statically linked program contains: of
# the crates, from their sources, and of the C libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."

echo "The program systemscope contains the following libraries beside its own code.

C libraries, linked statically. Their sources are in the distribution that built this program.
  glibc     LGPL-2.1-or-later
  libbpf    LGPL-2.1 OR BSD-2-Clause
  libelf    LGPL-3.0-or-later OR GPL-2.0-or-later
  zlib      Zlib
  zstd      BSD-3-Clause
systemscope is free software, and its build links it anew with a changed version of any of them.

Crates:"
seen=$(mktemp -d)
trap 'rm -rf "$seen"' EXIT
"${CARGO:-cargo}" metadata --format-version 1 --locked --filter-platform "$1" |
	jq -r --argjson used "$("${CARGO:-cargo}" tree --locked -p systemscope --target "$1" -e normal \
		--prefix none --format '{p}' | cut -d ' ' -f 1,2 | sort -u | jq -R . | jq -s .)" '
		.packages[] | select(.source) | select("\(.name) v\(.version)" as $it | $used | index($it)) |
		[.name, .version, .license // "see below", (.manifest_path | sub("/Cargo.toml$"; ""))] | @tsv' |
	sort |
	while IFS=$'\t' read -r crate version licence folder; do
		printf '\n%s\n%s %s: %s\n\n' "$(printf '=%.0s' {1..80})" "$crate" "$version" "$licence"
		find "$folder" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \
			-o -iname 'copyright*' \) -print0 | sort -z |
			while IFS= read -r -d '' file; do
				sum=$(sha256sum <"$file")
				if [[ -e $seen/${sum%% *} ]]; then
					echo "${file##*/}: the same text as above, of $(<"$seen/${sum%% *}")"
				else
					echo "$crate $version" >"$seen/${sum%% *}"
					cat -- "$file"
				fi
			done
	done
