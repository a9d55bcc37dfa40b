#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# refused.sh COMPILER: flags and systems that Lockstep does not support end in an error that says so.
set -euo pipefail
compiler=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
failed=0

# preprocess FLAG…: writes the compiler's messages.
preprocess() {
  "$compiler" -std=c++20 "$@" -E -I "$root/include" -x c++ -include lockstep/core/version.hpp /dev/null 2>&1 >/dev/null
}
refuses() { # TEXT FLAG…
  local says
  if says=$(preprocess "${@:2}"); then
    echo "accepted: ${*:2}" >&2
    failed=1
  elif [[ $(grep -m 1 'error' <<<"$says") != *"Lockstep: $1"* ]]; then
    printf 'with %s, the first error should say "%s":\n%s\n' "${*:2}" "$1" "$says" >&2
    failed=1
  fi
}
preprocess
refuses 'it needs Linux' -U__linux__
refuses 'it needs C++20' -std=c++17
refuses 'it needs a libc++ newer than 19, or libstdc++' -D_LIBCPP_VERSION=190107
refuses 'it needs exceptions and type information' -fno-rtti
refuses 'it needs exceptions and type information' -fno-exceptions
refuses '-ffast-math changes results' -ffast-math
preprocess -ffast-math -fno-fast-math
if [[ $("$compiler" --version) != *clang* ]]; then # which has no macro for it
  refuses '-funsafe-math-optimizations and its parts change results' -funsafe-math-optimizations
fi
refuses 'LOCKSTEP_CONTRACT_LEVEL must be' -DLOCKSTEP_CONTRACT_LEVEL=CHEAP
refuses 'LOCKSTEP_CONTRACT_LEVEL must be' -DLOCKSTEP_CONTRACT_LEVEL
preprocess -DLOCKSTEP_CONTRACT_LEVEL=LOCKSTEP_CONTRACT_OFF
refuses "Qt's macros slots and signals" -Dslots=
exit $failed
