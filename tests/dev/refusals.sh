#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that `./dev` refuses invalid arguments with one sentence and exit code 2, before any build, also if it is started
# through a link in another folder.
set -uo pipefail
dev=$(dirname -- "${BASH_SOURCE[0]}")/../../dev

refuses() { # text, argument…
  local text=$1 says code
  shift
  says=$("$dev" "$@" 2>&1)
  code=$?
  [[ $code == 2 && $says == *"$text"* ]] || { printf './dev %s: exit code %s\n%s\n' "$*" "$code" "$says"; exit 1; }
}

refuses 'no command is called quikstart' quikstart
refuses 'run needs the name of an example: activity_classification compare' run
refuses 'no example is called nothing; there are: activity_classification compare' run nothing
refuses 'study needs the name of a trainer: activity_classification' study
refuses 'no trainer is called compare; there are: activity_classification' study compare
refuses 'no check is called msan; there are gcc, asan, tsan, fuzz, ptx, faults, attacks, slurm, verdict, alone, programs, bench, docs, debian13, aarch64' check msan

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$(realpath -- "$dev")" "$folder/dev"
cd "$folder" && dev=./dev
refuses 'run needs the name of an example: activity_classification compare' run
echo 'all as expected'
