#!/usr/bin/env bash
# Installs this build and uses the prefix as users do. ctest runs one step each, with the environment that
# tests/CMakeLists.txt gives; `install` comes first and the others share its prefix.
#
#   tests/consumer/run.sh install | static | shared | moved | no_exceptions | package | pkg_config_shared |
#                         pkg_config_static | archive | deb | second_rust | cargo | fetch_content | features |
#                         add_subdirectory
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
step=${1-}
[[ $step =~ ^(install|static|shared|moved|no_exceptions|package|pkg_config_shared|pkg_config_static|archive|deb|second_rust|cargo|fetch_content|features|add_subdirectory)$ ]] ||
  usage "no such step: '$step'"
no_arguments "${@:2}"
here=$(cd "$(dirname "$0")" && pwd)
prefix=$PURLIN_WORK_DIR/prefix
work=$PURLIN_WORK_DIR/$step
warnings="-Wall -Wextra -Wpedantic -Wconversion -Werror"
package=purlin
[[ $PURLIN_CONFIG == Debug ]] && package=purlind
rm -rf "$work"
mkdir -p "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }

# Runs a command with a PATH whose Rust tools only leave a mark: users of the prefix need none.
without_rust() (
  mkdir -p "$work/no_rust"
  for tool in cargo rustc rustup; do
    printf '#!/bin/sh\necho "%s $*" >>"%s/no_rust/calls"\nexit 1\n' "$tool" "$work" >"$work/no_rust/$tool"
    chmod +x "$work/no_rust/$tool"
  done
  export PATH=$work/no_rust:$PATH
  "$@"
  [[ ! -e $work/no_rust/calls ]] || fail "Rust was called: $(cat "$work/no_rust/calls")"
)

# cmake_project SOURCE BUILD [ARGUMENT...]: configures, builds and runs the program `consumer`.
cmake_project() {
  local source=$1 build=$2
  shift 2
  "$CMAKE" -S "$source" -B "$build" -G "$CMAKE_GENERATOR" -DCMAKE_MAKE_PROGRAM="$CMAKE_MAKE_PROGRAM" \
    -DCMAKE_BUILD_TYPE="$PURLIN_CONFIG" -DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON "$@"
  "$CMAKE" --build "$build"
  "$build/consumer"
}

# small_project SOURCE BUILD [ARGUMENT...]: a project that builds Purlin itself, with nothing of what can be left out
# and as Debug, because that is built soonest. Such projects share the crates of others.
small_project() {
  PURLIN_CONFIG=Debug cmake_project "$@" -DPURLIN_CARGO="$PURLIN_CARGO" -DPURLIN_RUSTC="$PURLIN_RUSTC" \
    -DPURLIN_CUDA=OFF -DPURLIN_INTERCHANGE=OFF -DPURLIN_PJRT=OFF -DPURLIN_SIM=OFF -DPURLIN_XLA_CPU=OFF \
    -DPURLIN_CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PURLIN_WORK_DIR/cargo_consumer}"
}

# find_package_project PREFIX BUILD [ARGUMENT...]
find_package_project() {
  local from=$1 build=$2
  shift 2
  without_rust cmake_project "$here/project" "$build" -DCMAKE_PREFIX_PATH="$from" -DCMAKE_CXX_FLAGS="$warnings" "$@"
}

needs_shared() { readelf -dW "$1" | grep -q "NEEDED.*\[lib${package}\.so\.0\]"; }

# pkg_config_project PREFIX PROGRAM [ARGUMENT...]: compiles with what pkg-config answers to ARGUMENTs.
pkg_config_project() {
  local from=$1 program=$2 answer
  shift 2
  if ! command -v pkg-config >/dev/null; then
    echo "skipped: pkg-config is not here"
    exit 77
  fi
  answer=$(PKG_CONFIG_PATH="$from/$PURLIN_LIBDIR/pkgconfig" pkg-config --cflags --libs "$@" "$package")
  # eval, because pkg-config quotes for the shell.
  eval "without_rust \"\$CXX\" -std=c++17 \$warnings \"\$here/project/main.cc\" -o \"\$program\" ${linker_flags-} $answer"
}

# pack GENERATOR: this build as a package, in $work/packed.
pack() {
  mkdir -p "$work/packed"
  (cd "$PURLIN_BUILD_DIR" && "$(dirname "$CMAKE")/cpack" -G "$1" -B "$work/cpack") >"$work/packed/log" || { cat "$work/packed/log"; fail "cpack"; }
  find "$work/cpack" -maxdepth 1 -type f -exec mv {} "$work/packed" \;
}

# compare_prefix FOLDER: what is in it is what `cmake --install` writes.
compare_prefix() { diff -rq "$prefix" "$1" || fail "the package is not the installed prefix"; }

case $step in
install)
  rm -rf "$prefix"
  "$CMAKE" --install "$PURLIN_BUILD_DIR" --prefix "$prefix"
  if (cd "$prefix" && find . -name '*cxx*' -o -name '*.rs*' -o -name '*_rust*') | grep .; then
    fail "the prefix holds files of Rust or cxx"
  fi
  # The licences of all that is in the libraries.
  for file in LICENSE THIRD_PARTY_LICENSES.txt rust-std-COPYRIGHT.html; do
    [[ -s $prefix/share/doc/purlin/$file ]] || [[ $file == rust-std* && ! -e $("$PURLIN_RUSTC" --print sysroot)/share/doc/rust/COPYRIGHT-library.html ]] ||
      fail "the prefix has no $file"
  done
  # The driver of tests answers to the name of NVIDIA's: where it was installed, programs would find it.
  if find "$prefix" -iname '*fakecuda*' -o -iname '*fakenvrtc*' -o -name 'libcuda*' -o -name 'libnvidia*' -o -name 'libnvrtc*' | grep .; then
    fail "the prefix holds a driver of CUDA's, or a fake one"
  fi
  if grep -rliaE 'fakecuda|fakenvrtc' "$prefix"; then fail "these files know the fake driver"; fi
  folders="$(for folder in "$PURLIN_BUILD_DIR" "$PURLIN_SOURCE_DIR" "${CARGO_HOME:-$HOME/.cargo}" "$prefix"; do
    printf '(^|[^[:alnum:]._/-])%s/\n' "$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$folder")"
  done)"
  if grep -rIlE "$folders" "$prefix"; then fail "these text files name folders of the machine that built them"; fi
  if [[ $PURLIN_CONFIG == Release ]] && grep -rlaE "$folders" "$prefix"; then
    fail "these binaries name folders of the machine that built them"
  fi
  ;;
static)
  find_package_project "$prefix" "$work"
  ! needs_shared "$work/consumer" || fail "linked the shared library, though nothing asked for it"
  ;;
shared)
  find_package_project "$prefix" "$work" -DBUILD_SHARED_LIBS=ON
  needs_shared "$work/consumer" || fail "BUILD_SHARED_LIBS did not choose the shared library"
  ;;
moved)
  "$CMAKE" --install "$PURLIN_BUILD_DIR" --prefix "$work/first" >/dev/null
  mv "$work/first" "$work/second place"
  find_package_project "$work/second place" "$work/cmake_static"
  find_package_project "$work/second place" "$work/cmake_shared" -DPURLIN_USE_STATIC_LIBS=OFF
  needs_shared "$work/cmake_shared/consumer" || fail "PURLIN_USE_STATIC_LIBS=OFF did not choose the shared library"
  pkg_config_project "$work/second place" "$work/pkg_config"
  LD_LIBRARY_PATH="$work/second place/$PURLIN_LIBDIR" "$work/pkg_config"
  ;;
no_exceptions)
  warnings+=" -fno-exceptions -fno-rtti"
  find_package_project "$prefix" "$work/static"
  find_package_project "$prefix" "$work/shared" -DBUILD_SHARED_LIBS=ON
  ;;
package)
  # What find_package must refuse, and what it must say.
  ask() {
    local build=$work/ask
    rm -rf "$build" && mkdir "$build"
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(ask LANGUAGES NONE)\nfind_package(purlin %s)\n' "$1" >"$build/CMakeLists.txt"
    shift
    "$CMAKE" -S "$build" -B "$build/b" -G "$CMAKE_GENERATOR" -DCMAKE_MAKE_PROGRAM="$CMAKE_MAKE_PROGRAM" \
      -DCMAKE_PREFIX_PATH="$prefix" "$@" >"$build/log" 2>&1
  }
  version=$(sed -n 's/.*PURLIN_VERSION_STRING "\(.*\)"/\1/p' "$prefix/include/purlin/version.h")
  ask "$version CONFIG REQUIRED COMPONENTS static shared" || { cat "$work/ask/log"; fail "$version is not found"; }
  ! ask "0.99 CONFIG REQUIRED" || fail "version 0.99 was found"
  ! ask "1.0 CONFIG REQUIRED" || fail "version 1.0 was found"
  ! ask "CONFIG REQUIRED COMPONENTS nonsense" || fail "component nonsense was found"
  # A prefix with the archive alone: the rule falls back on it, and says so when that is forbidden.
  for component in purlin_devel purlin_static; do
    "$CMAKE" --install "$PURLIN_BUILD_DIR" --prefix "$work/archive_only" --component "$component" >/dev/null
  done
  prefix=$work/archive_only
  ask "CONFIG REQUIRED" -DBUILD_SHARED_LIBS=ON || { cat "$work/ask/log"; fail "the archive alone is not found"; }
  ! ask "CONFIG REQUIRED" -DPURLIN_USE_STATIC_LIBS=OFF || fail "a shared library was found where there is none"
  grep -q "asks for the shared library, which is not in" "$work/ask/log" || { cat "$work/ask/log"; fail "no reason was given"; }
  ;;
pkg_config_shared)
  pkg_config_project "$prefix" "$work/consumer"
  needs_shared "$work/consumer" || fail "pkg-config did not choose the shared library"
  LD_LIBRARY_PATH=$prefix/$PURLIN_LIBDIR "$work/consumer"
  ;;
pkg_config_static)
  linker_flags="-static -Wl,--fatal-warnings" pkg_config_project "$prefix" "$work/consumer" --static
  ! readelf -dW "$work/consumer" | grep NEEDED || fail "a static program needs shared libraries"
  "$work/consumer"
  says_static() { grep -q '^UNAVAILABLE: .*linked statically' || fail "$1 is not told why it has no CUDA"; }
  "$work/consumer" cuda | says_static "a static program"
  # Also where there is a driver to be found, by the names that programs look for.
  "$here/../cuda/on_fake.sh" "$work/consumer" cuda | says_static "a static program with a driver on its path"
  ;;
archive)
  # Unpacked anywhere, on a machine without Rust; its checksum is that of the file beside it.
  pack TGZ
  (cd "$work/packed" && sha256sum --check --quiet ./*.tar.gz.sha256)
  tar -C "$work" -xzf "$work"/packed/*.tar.gz
  compare_prefix "$work"/purlin-*/
  find_package_project "$(echo "$work"/purlin-*/)" "$work/build"
  ;;
deb)
  command -v dpkg >/dev/null || { echo "skipped: there is no dpkg here"; exit 77; }
  pack DEB
  dpkg-deb -f "$work"/packed/*.deb Depends | grep -E 'libc6.*libgcc-s1.*libstdc\+\+6' >/dev/null || fail "the package does not say what it needs"
  # Into a root of its own, with dpkg's own account of what is there; the packages that it needs are those of this
  # machine.
  root=$work/root
  mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} && touch "$root"/var/lib/dpkg/{status,available}
  debian() { dpkg --root="$root" --log=/dev/null --force-not-root,script-chrootless,depends "$@"; }
  debian --install "$work"/packed/*.deb
  debian --verify purlin
  compare_prefix "$root/usr"
  find_package_project "$root/usr" "$work/build"
  debian --remove purlin
  [[ -z $(find "$root/usr" -type f 2>/dev/null) ]] || fail "files stay when the package is removed"
  ;;
second_rust)
  # Twice: with debug code and with everything optimised into one unit, because their global names differ.
  for profile in dev release; do
    RUSTC=$PURLIN_RUSTC CARGO_TARGET_DIR=$PURLIN_WORK_DIR/second_rust_cargo "$PURLIN_CARGO" build --locked \
      --manifest-path "$here/second_rust/Cargo.toml" --profile "$profile" </dev/null
    folder=$profile
    [[ $profile == dev ]] && folder=debug
    second=$PURLIN_WORK_DIR/second_rust_cargo/$folder/libsecond_rust.a
    first=$prefix/$PURLIN_LIBDIR/lib$package.a
    "$CXX" -std=c++17 $warnings -I"$prefix/include" "$here/second_rust/main.cc" "$first" "$second" -o "$work/first_$profile"
    "$CXX" -std=c++17 $warnings -I"$prefix/include" "$here/second_rust/main.cc" "$second" "$first" -o "$work/second_$profile"
    "$CXX" -std=c++17 $warnings -I"$prefix/include" "$here/second_rust/main.cc" \
      -Wl,--whole-archive "$first" "$second" -Wl,--no-whole-archive -o "$work/whole_$profile"
    for order in first second whole; do "$work/${order}_$profile"; done
  done
  ;;
cargo)
  # Neither the prefix nor CMake's build: cargo compiles all of it, but crates that scripts/test has compiled.
  RUSTC=$PURLIN_RUSTC CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PURLIN_WORK_DIR/cargo_consumer} "$PURLIN_CARGO" run --quiet --locked \
    --manifest-path "$here/cargo/Cargo.toml" </dev/null | grep -q '^the C++ of this program says 42$'
  ;;
fetch_content)
  # All of the tree as a commit of a repository of its own, cloned by its URL.
  git init --quiet --initial-branch=main "$work/git"
  (cd "$PURLIN_SOURCE_DIR" && tracked | tar --null --files-from=- -cf -) | tar -C "$work/git" -xf -
  git -C "$work/git" add --all
  git -C "$work/git" -c user.name=consumer -c user.email=consumer@localhost commit --quiet --message "all of it"
  small_project "$here/fetched" "$work/build" -DPURLIN_GIT="file://$work/git" -DPURLIN_INSTALL=ON
  ;;
features)
  # All that can be left out was, in the build of fetch_content: neither its headers nor its code are there, and the
  # rest works.
  build=$PURLIN_WORK_DIR/fetch_content/build
  "$CMAKE" --install "$build" --prefix "$work/prefix" >/dev/null
  for header in compile_cache.h cuda.h dlpack.h npy.h safetensors.h xla_cpu.h xla_ffi_host.h adapters/pjrt_abi.h adapters/pjrt_tables.h; do
    [[ ! -e $work/prefix/include/purlin/$header ]] || fail "$header is installed, and what it declares is left out"
  done
  # shellcheck disable=SC2086  # warnings are words
  "$CXX" -std=c++17 $warnings -I"$work/prefix/include" "$here/features/main.cc" "$work/prefix/$PURLIN_LIBDIR/libpurlind.a" \
    -lpthread -ldl -lm -o "$work/consumer"
  "$work/consumer"
  if nm -C "$work/prefix/$PURLIN_LIBDIR/libpurlind.a" | grep -m 3 -E 'purlin_(interchange|sim|pjrt|xla_cpu)::'; then
    fail "code that was left out is in the archive"
  fi
  # Where the prelink step cannot be had, CMake says so when it configures; the shared library needs none.
  configure() {
    "$CMAKE" -S "$PURLIN_SOURCE_DIR" -B "$work/asked" -G "$CMAKE_GENERATOR" -DCMAKE_MAKE_PROGRAM="$CMAKE_MAKE_PROGRAM" \
      -DPURLIN_CARGO="$PURLIN_CARGO" -DPURLIN_RUSTC="$PURLIN_RUSTC" -DPURLIN_BUILD_TESTS=OFF -DPURLIN_BUILD_EXAMPLES=OFF \
      -DPURLIN_LD= "$@" 2>&1 | tr -s ' \n' ' ' >"$work/configured"
  }
  ! configure || fail "an archive without a linker"
  grep -F 'libpurlin.a is made by a prelink step, and there is no linker with' "$work/configured" >/dev/null ||
    fail "CMake does not say why there is no archive: $(cat "$work/configured")"
  configure -DPURLIN_BUILD_STATIC=OFF || fail "the shared library needs a linker for the archive: $(cat "$work/configured")"
  ;;
add_subdirectory)
  small_project "$here/subdirectory" "$work" -DPURLIN_SOURCE_DIR="$PURLIN_SOURCE_DIR"
  tests=$("$(dirname "$CMAKE")/ctest" --test-dir "$work" -N | sed -n 's/^Total Tests: //p')
  [[ $tests == 1 ]] || fail "the parent project has $tests tests, not its own one"
  "$CMAKE" --install "$work" --prefix "$work/prefix" >/dev/null
  [[ ! -e $work/prefix/include/purlin ]] || fail "installing the parent installed Purlin"
  ;;
esac
echo "consumer step '$step' passed"
