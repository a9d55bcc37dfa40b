#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that `./dev gpu` runs all stages after a failure and reports the failures, and that the stage that checks each
# program waits for all of its processes.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../dev"

root=$(mktemp -d)
tried=$root/tried
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/build/test/tests" "$root/bin"
touch "$root"/build/test/tests/test.cuda.{1..6}
cat >"$root/bin/compute-sanitizer" <<'END'
#!/usr/bin/env bash
sleep 0.1
echo "$*" >>"$TRIED"
[[ "$*" != *"$FAILS" ]]
END
chmod +x "$root/bin/compute-sanitizer"
PATH=$root/bin:$PATH
export TRIED=$root/sanitized
for fails in none test.cuda.2; do
  : >"$TRIED"
  code=0
  FAILS=$fails sanitize 2>/dev/null || code=1
  [[ $(wc -l <"$TRIED") == 18 && $code == $([[ $fails == none ]] && echo 0 || echo 1) ]] ||
    { printf 'with failing %s: sanitize ended with %s, having tried\n' "$fails" "$code"; cat "$TRIED"; exit 1; }
done

has_gpu() { true; }
need() { true; }
try() { echo "$1" >>"$tried" && [[ $fails != *"$1"* ]]; }
build_for_gpus() { try build; }
run_tests() { try tests; }
train_on_gpus() { try training; }
bench() { try benchmarks; }
sanitize() { try sanitizer; }

expect() { # failing stage, exit code, last output
  local code=0 says
  fails=$1
  : >"$tried"
  says=$(command_gpu 2>&1) || code=$?
  [[ $(paste -sd' ' "$tried") == 'build tests training benchmarks sanitizer' && $code == "$2" && $says == *"$3" ]] ||
    { printf 'with failing "%s": tried "%s", exit code %s, said "%s"\n' "$1" "$(paste -sd' ' "$tried")" "$code" "$says"; exit 1; }
}
expect '' 0 ''
expect tests 1 'this failed: tests'
expect build 1 'this failed: build'
expect 'training sanitizer' 1 'this failed: training compute-sanitizer'
echo 'all as expected'
