#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sources.sh COMPILER APP FLAG…: all sources of the library compile together, without a warning. Their code is not
# generated, which would take three times as long. With 0 as APP those of app/ are left out, which need other libraries.
set -euo pipefail
compiler=$1 app=$2
shift 2
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
skipped='^$'
((app)) || skipped='/app[a-z_]*[.]cpp$'
find "$root/include/lockstep/compiled" -name '*.cpp' | sort | grep -vE "$skipped" | sed 's/.*/#include "&"/' |
  "$compiler" -std=c++20 -fsyntax-only -DLOCKSTEP_COMPILED -DLOCKSTEP_ONE_INSTRUCTION_SET -I "$root/include" -Wall -Wextra \
    -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror "$@" -x c++ -
