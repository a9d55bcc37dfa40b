#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# warnings.sh COMPILER: README's program compiles header-only without a warning of those that projects often enable.
set -euo pipefail
compiler=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(awk '/^```cpp$/ { block = 1; next } /^```$/ { if (block) exit } block' "$root/README.md")
[[ $program == *"int main()"* ]] || { echo "README.md has no program" >&2; exit 1; }
"$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast \
  -Wcast-align -Woverloaded-virtual -Wnon-virtual-dtor -Wdouble-promotion -Wextra-semi -Wundef -Werror \
  -DLOCKSTEP_ONE_INSTRUCTION_SET -I "$root/include" -x c++ - <<<"$program"
