#!/usr/bin/env bash
# build.sh FOLDER NAME...: builds all that a release consists of into FOLDER, with a link to
# systemscope for each NAME: the archive, the packages, the image, the list of components, and their
# checksums. Two builds of the same commit make the same archive.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "$1")
shift
cargo=${CARGO:-cargo}
triple=x86_64-unknown-linux-gnu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=systemscope-$version-x86_64-linux
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Time of all files in the artefacts: that of the commit, or of the newest change that is listed.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

# Paths of this machine do not enter the program.
registry=$(realpath "${CARGO_HOME:-$HOME/.cargo}")
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static \
--remap-path-prefix=$PWD=/systemscope --remap-path-prefix=$registry=/cargo"
export CFLAGS="-ffile-prefix-map=$registry=/cargo -ffile-prefix-map=$target=/target"

echo '==> Building, linked statically' >&2
"$cargo" build --profile dist --target "$triple" -p systemscope --locked
bin=$target/dist-suite
scripts/link.sh "$target/$triple/dist" "$bin" "$@"

rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
mkdir "$stage"
scripts/install.sh "$bin" "$stage/usr" "$@"
documents=$stage/usr/share/doc/systemscope
install -D -m 644 -t "$documents" LICENSE README.md CHANGELOG.md
scripts/dist/licences.sh "$triple" >"$documents/THIRD-PARTY-LICENCES"
chmod 644 "$documents/THIRD-PARTY-LICENCES"
install -D -m 644 -t "$stage/usr/lib/systemd/system" packaging/systemscope-recorder.service

echo '==> Archive' >&2
cp -a "$stage/usr" "$work/$name"
mv -t "$work/$name" "$work/$name/share/doc/systemscope/"*
rm -r "$work/$name/share/doc"
tar -C "$work" --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
	--numeric-owner --format=gnu "$name" | zstd --quiet -19 -o "$out/$name.tar.zst"

echo '==> Packages' >&2
scripts/dist/packages.sh "$stage" "$out" "$version"

echo '==> Image' >&2
image=localhost/systemscope:$version
podman=(scripts/dist/podman.sh "$work/podman")
"${podman[@]}" build --quiet --timestamp "$SOURCE_DATE_EPOCH" --file packaging/Containerfile \
	--tag "$image" "$stage" >&2
"${podman[@]}" save --quiet --format oci-archive --output "$work/image.tar" "$image" >&2
# The archive tells when it was saved.
mkdir "$work/image"
tar -C "$work/image" -xf "$work/image.tar"
tar -C "$work/image" --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
	--numeric-owner --format=gnu --mode=u=rwX,go=rX --file "$out/$name.oci.tar" .

echo '==> List of components' >&2
tools=$target/dist-tools
[[ -x $tools/bin/cargo-cyclonedx ]] ||
	env -u CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS -u CFLAGS "$cargo" install --quiet --locked --root "$tools" --version 0.5.9 cargo-cyclonedx
"$tools/bin/cargo-cyclonedx" cyclonedx --format json --target "$triple" --quiet \
	--manifest-path tools/systemscope/Cargo.toml --override-filename "$name.cdx"
# The list tells neither paths of this machine, nor the time, nor a random number.
sum=$(sha256sum "$out/$name.tar.zst")
sed -e "s|file://$PWD|file:///systemscope|g" \
	-e "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)\"/" \
	-e "s/urn:uuid:[-0-9a-f]*/urn:uuid:${sum:0:8}-${sum:8:4}-4${sum:13:3}-8${sum:17:3}-${sum:20:12}/" \
	"tools/systemscope/$name.cdx.json" >"$out/$name.cdx.json"
# The subcommand makes a list for each package.
find bpf demo shared tests tools -name "$name.cdx.json" -delete

(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "==> Built in $out:" >&2
ls -lh "$out" >&2
