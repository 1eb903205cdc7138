#!/usr/bin/env bash
# missing.sh: prints the versions of php, ruby and go that releases of Debian have and this machine
# lacks, as lines "PROGRAM VERSION SUITE".
set -euo pipefail
fetched=${XDG_CACHE_HOME:-$HOME/.cache}/systemscope/runtimes

while read -r program version suite; do
	[[ -x /usr/bin/$program$version || -x /usr/lib/$program-$version/bin/$program || -x $fetched/$program/$version/bin/$program ]] ||
		echo "$program $version $suite"
done <<END
php 8.2 bookworm
php 8.4 trixie
ruby 3.1 bookworm
ruby 3.3 trixie
go 1.22 bookworm-backports
go 1.24 trixie
go 1.27 trixie-backports
END
