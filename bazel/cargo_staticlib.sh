#!/usr/bin/env bash
# The action of cargo_staticlib.bzl: builds one package's static archive and the headers of its bridge, without the
# network and without a HOME.
#
#   cargo_staticlib.sh HOST_SH CRATES_TAR MANIFEST PACKAGE PROFILE ARCHIVE HEADERS FEATURES
#
# PROFILE: dev or release. FEATURES: of the package, between commas, and no others.
set -euo pipefail
host=$1 crates=$2 manifest=$3 package=$4 profile=$5 archive=$6 headers=$7 features=$8
# shellcheck source=/dev/null  # written by rust_host.bzl
. "$host"
workspace=$PWD/$(dirname "$manifest")
workspace=${workspace%/.}
work=$PWD/$archive.cargo
rm -rf "$work"
mkdir -p "$work/home"
trap 'rm -rf "$work"' EXIT
tar -xf "$crates" -C "$work"

# Given on the command line, because it then stands above what the folders around us may configure.
cat >"$work/config.toml" <<TOML
[source.crates-io]
replace-with = "purlin-vendored"
[source.purlin-vendored]
directory = "$work/vendor"
TOML

# As in cmake/PurlinRust.cmake: the folders of the machine that builds are kept out of panic messages. Of two prefixes
# that fit, the later counts.
rustflags=()
cxxflags="-fvisibility=hidden -fno-exceptions -w"
folder=debug
if [[ $profile == release ]]; then
  folder=release
  rustflags=("--remap-path-prefix=$workspace=purlin" "--remap-path-prefix=$work=cargo")
  cxxflags+=" -ffile-prefix-map=$work=cargo"
fi
export CARGO_HOME=$work/home CARGO_TARGET_DIR=$work/target CXXFLAGS=$cxxflags PURLIN_GENERATED_HEADERS=$PWD/$headers
export RUSTC_WRAPPER="" RUSTC_WORKSPACE_WRAPPER=""
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf %s "${rustflags[*]-}")
export CARGO_ENCODED_RUSTFLAGS
linker=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$PURLIN_RUST_TARGET")_LINKER
export "$linker=$CC"

# rustc reads its standard input while cargo probes it.
"$CARGO" --config "$work/config.toml" build --quiet --offline --locked --manifest-path "$manifest" --package "$package" \
  --no-default-features --features "$features" --profile "$profile" --target "$PURLIN_RUST_TARGET" </dev/null
cp "$CARGO_TARGET_DIR/$PURLIN_RUST_TARGET/$folder/$(basename "$archive")" "$archive"
