#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# builds.sh COMPILER FOLDER: checks that a training step has equal bits for all compiler flags, and that every loop
# compiled for wide vectors has its callees inlined: other calls would run with the narrowest vectors.
set -euo pipefail
compiler=$1 folder=$2
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$folder"
failed=0

build() { # NAME FLAG…
  local name=$1
  shift
  "$compiler" -std=c++20 -pthread -ffp-contract=off -I "$root/include" "$@" "$root/tests/builds/step.cpp" -o "$folder/$name"
}

# Callees of a loop's body, except functions compiled per instruction set or only once, and C functions.
calls_of_loops() {
  objdump --disassemble --demangle --no-show-raw-insn "$1" | awk '
    /^[0-9a-f]+ <.*>:$/ { loop = /::detail::call_(baseline|avx2|avx512)</; name = $0 }
    loop { ++seen }
    loop && /[ \t](call|jmp) +[0-9a-f]+ <[^+]*>$/ && !/@plt|::write_transposed|::philox_|_float16|__clang_call_terminate|_Unwind/ {
      sub(/.*[ \t](call|jmp) +[0-9a-f]+ /, ""); print name, "calls", $0
    }
    END { if (!seen) print "no loop has the requested name" }'
}

build plain -O2
build native -O2 -march=native -DLOCKSTEP_ONE_INSTRUCTION_SET # `plain` has the other sets, which take two fifths of the time
plain=$("$folder/plain") native=$("$folder/native")
if [[ -z $plain || $native != "$plain" ]]; then
  echo "-O2 gives the parameters $plain, and with -march=native $native" >&2
  failed=1
fi
for name in plain native; do
  calls=$(calls_of_loops "$folder/$name")
  if [[ -n $calls ]]; then
    printf '%s: not inlined; [[gnu::always_inline]] is missing:\n%s\n' "$name" "$calls" >&2
    failed=1
  fi
done
exit $failed
