# Shared by the scripts of deploy/; sourced, not run. Needs bash and BUSBAR_ROOT (the source folder).
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$(basename "$0"): $*"
  exit 2
}

jobs_of_host() { nproc 2>/dev/null || echo 2; }

# The packages of the named sections, one a line, none twice.
packages_of() {
  local wanted=" $* "
  awk -v wanted="$wanted" '
    /^[[:space:]]*(#|$)/ { next }
    /^\[.*\]$/ { section = substr($0, 2, length($0) - 2); next }
    index(wanted, " " section " ") && !seen[$1]++ { print $1 }' "$BUSBAR_ROOT/deploy/packages.txt"
}

# Of the packages given, those that are not installed.
missing_of() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "need root to install packages: run as root, install sudo, or use --no-install"
  fi
}

# Packages that bring a service must not start it here: what they listen on may be what a test wants.
forbid_services() {
  [ -e /usr/sbin/policy-rc.d ] && return 1
  printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
  as_root chmod 755 /usr/sbin/policy-rc.d
}

# install_sections SECTION...: says what is missing, installs it, touches nothing if nothing is.
install_sections() {
  local wanted missing forbidden=no failed=0
  # Package names have no spaces; no process substitution, which wants /proc, and a bare chroot may have none.
  read -r -d '' -a wanted <<<"$(packages_of "$@")" || true
  read -r -d '' -a missing <<<"$(missing_of "${wanted[@]}")" || true
  if [ "${#missing[@]}" = 0 ]; then
    say "packages: all ${#wanted[@]} are installed"
    return 0
  fi
  command -v apt-get >/dev/null || die "this is no Debian; install by hand: ${missing[*]}"
  say "packages: installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
  forbid_services && forbidden=yes
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2 || failed=1
  if [ "$forbidden" = yes ]; then as_root rm -f /usr/sbin/policy-rc.d; fi
  [ "$failed" = 0 ] || die "apt-get failed; see above"
}

# check_sections SECTION...: for --no-install; names what is missing and goes on, the build says what it cannot do without.
check_sections() {
  local wanted missing
  # Package names have no spaces; no process substitution, which wants /proc, and a bare chroot may have none.
  read -r -d '' -a wanted <<<"$(packages_of "$@")" || true
  read -r -d '' -a missing <<<"$(missing_of "${wanted[@]}")" || true
  if [ "${#missing[@]}" != 0 ]; then say "packages: not installed: ${missing[*]}"; fi
}

# build_preset PRESET [TARGET...]: configures and builds; build/PRESET is kept and built upon.
build_preset() {
  local preset=$1 targets=()
  shift
  if [ $# -gt 0 ]; then targets=(--target "$@"); fi
  (cd "$BUSBAR_ROOT" && cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(jobs_of_host)" "${targets[@]}") >&2
}
