#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/launch/torchrun.sh N PROGRAM [flag…]: torchrun starts N ranks of a trainer on this host. The program needs no
# PyTorch, only torchrun does.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 N PROGRAM [flag…]" >&2; exit 2; }
# Ranks prove to each other with it that they belong to this job: see docs/how-to/launch.md, Secret.
export LOCKSTEP_SECRET=${LOCKSTEP_SECRET:-$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')}
exec torchrun --no-python --standalone --nproc-per-node "$1" "${@:2}"
