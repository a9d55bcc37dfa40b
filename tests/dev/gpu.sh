#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether `./dev gpu` tries everything whatever fails before, and says what failed.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../dev"

tried=$(mktemp)
trap 'rm -f "$tried"' EXIT
has_gpu() { true; }
has_nvcc() { true; }
need() { true; }
build() { true; }
try() { echo "$1" >>"$tried" && [[ $fails != *"$1"* ]]; }
run_tests() { try tests; }
train_on_gpus() { try training; }
bench() { try benchmarks; }
sanitize() { try sanitizer; }

expect() { # what fails, exit code, what is said at the end
  local code=0 says
  fails=$1
  : >"$tried"
  says=$(command_gpu 2>&1) || code=$?
  [[ $(paste -sd' ' "$tried") == 'tests training benchmarks sanitizer' && $code == "$2" && $says == *"$3" ]] ||
    { printf 'with failing "%s": tried "%s", exit code %s, said "%s"\n' "$1" "$(paste -sd' ' "$tried")" "$code" "$says"; exit 1; }
}
expect '' 0 ''
expect tests 1 'this failed: tests'
expect 'training sanitizer' 1 'this failed: training compute-sanitizer'
echo 'all as expected'
