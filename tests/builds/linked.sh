#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# linked.sh COMPILER FOLDER LIBRARY FLAG…: a program of two files links with the library, without CMake. It does not link
# if one of the files is header-only, if a file was compiled with other checks, or without the library. --gc-sections
# leaves out the functions that the program does not use.
set -euo pipefail
compiler=$1 folder=$2 library=$3
shift 3
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$folder"
failed=0

cat >"$folder/main.cpp" <<'END'
#include <lockstep/core/json.hpp>
std::string written();
int main() { return lockstep::json::parse(written(), "written").at("answer").integer() == 42 ? 0 : 1; }
END
cat >"$folder/other.cpp" <<'END'
#include <lockstep/core/json_writer.hpp>
std::string written() {
  lockstep::json::Writer json;
  json.begin_object().member("answer", 42).end_object();
  return json.text();
}
END

compile() { # NAME FILE FLAG…
  "$compiler" -std=c++20 -pthread -ffp-contract=off "${@:3}" -I "$root/include" -c "$folder/$2.cpp" -o "$folder/$1.o"
}
compile main main -DLOCKSTEP_COMPILED "$@"
compile other other -DLOCKSTEP_COMPILED "$@"
compile header_only other "$@"
compile unchecked other -DLOCKSTEP_COMPILED -DLOCKSTEP_CONTRACT_LEVEL=LOCKSTEP_CONTRACT_OFF "$@"

link() { # FILE…
  (cd "$folder" && "$compiler" -pthread "-fuse-ld=$linker" "$@" -o program) >"$folder/log" 2>&1
}
# refuses WHAT SYMBOL FILE…: expects that the linker fails and names the symbol.
refuses() {
  if link "${@:3}"; then
    echo "$linker links $1" >&2
    failed=1
  elif ! grep -q "$2" "$folder/log"; then
    echo "$linker does not name $2 when it rejects $1:" >&2
    head -n 5 "$folder/log" >&2
    failed=1
  fi
}

tried=0
for linker in bfd gold lld lld-19; do
  "$compiler" "-fuse-ld=$linker" -Wl,--version >/dev/null 2>&1 || continue
  tried=$((tried + 1))
  if ! link main.o other.o "$library" || ! "$folder/program"; then
    echo "$linker does not link a program with $library:" >&2
    head -n 5 "$folder/log" >&2
    failed=1
  fi
  whole=$(stat -c %s "$folder/program")
  if ! link main.o other.o "$library" -Wl,--gc-sections || ! "$folder/program"; then
    echo "$linker does not link a program without unused sections:" >&2
    head -n 5 "$folder/log" >&2
    failed=1
  elif (($(stat -c %s "$folder/program") > whole * 3 / 5)); then
    echo "$linker leaves unused functions in the program: $(stat -c %s "$folder/program") of $whole bytes" >&2
    failed=1
  fi
  refuses 'a linked file and a header-only one' lockstep_is_linked_in_one_file_and_header_only_in_another \
    main.o header_only.o "$library"
  refuses 'the same without unused sections' lockstep_is_linked_in_one_file_and_header_only_in_another \
    main.o header_only.o "$library" -Wl,--gc-sections
  refuses 'a file with other checks' _off main.o unchecked.o "$library"
  refuses 'a program without the library' json main.o other.o
done
((tried)) || { echo 'no linker was tried' >&2; failed=1; }
exit $failed
