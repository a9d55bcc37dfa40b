#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/launch/srun.sh N PROGRAM [flag…]: Slurm starts N ranks of a trainer on one node, with or without an
# allocation. Ranks that survive a failed one end with it.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 N PROGRAM [flag…]" >&2; exit 2; }
# Ranks prove to each other with it that they belong to this job: see docs/how-to/launch.md, Secret.
export LOCKSTEP_SECRET=${LOCKSTEP_SECRET:-$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')}
exec srun --nodes 1 --ntasks "$1" --kill-on-bad-exit=1 "${@:2}"
