#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/launch/torchrun.sh N PROGRAM [flag…]: torchrun starts N ranks of a trainer on this host. The program needs no
# PyTorch, only torchrun does.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 N PROGRAM [flag…]" >&2; exit 2; }
exec torchrun --no-python --standalone --nproc-per-node "$1" "${@:2}"
