#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that `./dev test` reports a skip without a reason on this machine.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../dev"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/checkout/build/t"
root=$work/checkout

entry() { # name, element, output
  printf '<testcase name="%s" status="notrun">\n%s\n<properties/>\n<system-out>%s\n</system-out>\n</testcase>\n' "$@"
}
skip='<skipped message="SKIP_RETURN_CODE=77"/>'
{
  entry gpu "$skip" 'skipped: needs a GPU: CudaSpace'
  entry shared "$skip" 'skipped: needs ../shared: AG News'
  entry nvcc "$skip" 'skipped: needs an nvcc of version 12 or later: x.test.cu'
  entry nccl "$skip" 'skipped: needs the component nccl: u.test.cu'
  entry cudnn "$skip" 'skipped: needs the component cudnn: t.test.cu'
  entry torch "$skip" 'skipped: needs a Python with torch: y'
  entry python "$skip" 'skipped: needs a Python with the package: numpy'
  entry libtorch "$skip" 'skipped: needs LibTorch: v'
  entry strace "$skip" 'skipped: needs an strace that may trace: w'
  entry latex "$skip" 'skipped: needs pdflatex: the table'
  entry mood "$skip" 'skipped: needs a better mood: z'
  entry silent "$skip" ''
  entry ran '' 'skipped: needs nothing: it ran'
} >"$root/build/t/junit.xml"

expect() { # description, names of the tests that should be reported
  local told
  told=$(wrongly_skipped t | sed 's/^ *//; s/:.*//' | paste -sd' ')
  [[ $told == "$2" ]] || { printf '%s: told of "%s" instead of "%s"\n' "$1" "$told" "$2"; exit 1; }
}

has_gpu() { false; }
has_nvcc() { false; }
printf '%s\n' 'note: NCCL is skipped: there is no target lockstep::nccl' \
  'note: cuDNN is skipped: there is no target lockstep::cuda, and so none lockstep::cudnn' >"$root/build/t/dev.notes"
has_torch() { false; }
has_python_package() { false; }
has_libtorch() { false; }
can_trace() { false; }
has_latex() { false; }
expect 'a machine that has nothing' 'mood silent'
has_gpu() { true; }
has_nvcc() { true; }
: >"$root/build/t/dev.notes"
has_torch() { true; }
has_python_package() { [[ $1 == numpy ]]; }
has_libtorch() { true; }
can_trace() { true; }
has_latex() { true; }
mkdir "$work/shared"
expect 'a machine that has everything' 'gpu shared nvcc nccl cudnn torch python libtorch strace latex mood silent'
echo 'all as expected'
