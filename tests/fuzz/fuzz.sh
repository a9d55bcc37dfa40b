#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: fuzz.sh PROGRAM FOLDER SECONDS [format…]
# Runs libFuzzer for some seconds on each format of the corpus, or on the named ones. Inputs that it finds, and those
# that fail, are kept in FOLDER. Prints the number of inputs, and fails if there was none or if an input fails.
set -euo pipefail

program=$1 folder=$2 seconds=$3
shift 3
corpus=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/corpus" && pwd)
(($#)) || set -- "$corpus"/*
all=0 failed=()
for format; do
  format=${format##*/}
  mkdir -p "$folder/$format"
  log=$folder/$format.log code=0
  LOCKSTEP_FUZZ=$format "$program" -max_total_time="$seconds" -rss_limit_mb=1000 -timeout=10 -max_len=16384 \
    -print_final_stats=1 -artifact_prefix="$folder/$format-" "$folder/$format" "$corpus/$format" >"$log" 2>&1 || code=$?
  if ((code == 2)) && grep -q '^LOCKSTEP_FUZZ must name one of' "$log"; then
    printf '%-14s skipped: its reader needs a library that this build lacks\n' "$format"
    continue
  fi
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((code)); then
    failed+=("$format")
    printf '%-14s %s inputs; FAILED, see %s\n' "$format" "${inputs:-?}" "$log"
  else
    printf '%-14s %s inputs\n' "$format" "${inputs:-0}"
  fi
  all=$((all + ${inputs:-0}))
done
printf '%-14s %s inputs\n' all "$all"
((${#failed[@]} == 0 && all > 0))
