#!/usr/bin/env bash
# link.sh FROM FOLDER NAME...: puts the programs of FROM and a link for each tool into FOLDER.
set -euo pipefail
from=$1 folder=$2
shift 2

mkdir -p "$folder"
for program in systemscope systemscope-demo; do
	# A release has no demo.
	[[ -e $from/$program ]] || continue
	ln -f "$from/$program" "$folder/$program" 2>/dev/null || cp -f "$from/$program" "$folder/"
done
for name in "$@"; do
	[[ $name == systemscope ]] || ln -sf systemscope "$folder/$name"
done
