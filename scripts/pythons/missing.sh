#!/usr/bin/env bash
# missing.sh: prints the versions of Python that releases of Debian have and this machine lacks,
# as lines "VERSION SUITE". It leaves out bullseye's 3.9, because py-spy does not attribute its
# threads correctly. The tests compare with py-spy.
set -euo pipefail
fetched=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/pythons

while read -r version suite; do
	[[ -x /usr/bin/python$version ]] ||
		compgen -G "$HOME/.pyenv/versions/$version.*/bin/python$version" >/dev/null ||
		compgen -G "$fetched/$version.*/bin/python$version" >/dev/null ||
		echo "$version $suite"
done <<END
3.11 bookworm
3.13 trixie
3.14 sid
END
