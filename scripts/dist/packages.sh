#!/usr/bin/env bash
# packages.sh STAGE OUT VERSION: packs the installed files in STAGE/usr into a .deb and an .rpm in
# OUT. SOURCE_DATE_EPOCH is the time of all files.
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=$1 out=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make_deb: follows Debian's policy for manual pages, change logs and copyright files.
make_deb() {
	local root=$work/deb documents=$work/deb/usr/share/doc/systemscope script
	mkdir -p "$root/DEBIAN"
	cp -a "$stage/usr" "$root/"
	# Debian's folders for the completions of zsh differ.
	mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
	find "$root/usr/share/man" -type f -exec gzip -9n {} +
	cat packaging/debian/copyright LICENSE >"$documents/copyright"
	rm "$documents/LICENSE"
	mv "$documents/CHANGELOG.md" "$documents/NEWS.md"
	gzip -9n "$documents/NEWS.md" "$documents/THIRD-PARTY-LICENCES"
	install -D -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/systemscope"
	printf 'systemscope (%s) unstable; urgency=low\n\n  * See NEWS.md.gz.\n\n -- %s  %s\n' "$version" \
		"$(sed -n 's/^Maintainer: //p' packaging/debian/control)" \
		"$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$documents/changelog.gz"
	sed "s/@VERSION@/$version/; s/@SIZE@/$(du -sk "$root/usr" | cut -f 1)/" \
		packaging/debian/control >"$root/DEBIAN/control"
	for script in postinst prerm postrm; do
		install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"
	done
	(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	chmod -R u=rwX,go=rX "$root"
	dpkg-deb --root-owner-group -Zxz --build "$root" "$out/systemscope_${version}_amd64.deb" >&2
}

make_rpm() {
	chmod -R u=rwX,go=rX "$stage/usr"
	rpmbuild -bb --quiet --nodeps --define "_topdir $work/rpm" --define "stage $stage" \
		--define "suite_version $version" --define '_buildhost localhost' \
		--define 'use_source_date_epoch_as_buildtime 1' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define '_binary_payload w19.zstdio' \
		packaging/rpm/systemscope.spec >&2
	mv "$work"/rpm/RPMS/x86_64/*.rpm "$out/"
}

make_deb
make_rpm
