#!/usr/bin/env bash
# missing.sh quick|all: prints the versions of Java, Node.js, PHP, Ruby and Go that releases of Debian
# have, and that this machine lacks for the quick tests or for all tests, as lines
# "PROGRAM VERSION SUITE".
#
# Versions that the tools do not support are in the list too. Tests check that the tools say so.
set -euo pipefail
choice=$1
fetched=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/runtimes

while read -r program version suite tests; do
	[[ $choice == all || $tests == quick ]] || continue
	[[ -x /usr/bin/$program$version || -x /usr/lib/$program-$version/bin/$program ||
		-x $fetched/$program/$version/bin/$program ]] ||
		echo "$program $version $suite"
done <<END
java 8 sid
java 11 bullseye
java 21 trixie
java 25 trixie
java 26 sid
java 27 sid
node 12 bullseye
node 18 bookworm quick
node 20 trixie quick
node 24 sid
php 7.4 bullseye
php 8.2 bookworm
php 8.4 trixie
php 8.5 experimental
php 8.6 experimental
ruby 2.7 bullseye
ruby 3.1 bookworm
ruby 3.3 trixie
ruby 3.4 experimental
go 1.22 bookworm-backports
go 1.24 trixie
go 1.27 trixie-backports
END
