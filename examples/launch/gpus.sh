#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/launch/gpus.sh N PROGRAM [flag…]: lists this host's GPUs and trains with DistributedDataParallel on the first N of
# them, one process on each; `all` takes all. On a host without GPUs the N processes compute on its cores.
set -euo pipefail
[[ $# -ge 2 && $1 =~ ^(all|[1-9][0-9]*)$ ]] || { echo "usage: $0 N|all PROGRAM [flag…]" >&2; exit 2; }
count=$1
shift

mapfile -t gpus < <(nvidia-smi -L 2>/dev/null | grep '^GPU' || true)
echo "${#gpus[@]} GPUs${gpus[*]:+:}"
((${#gpus[@]} == 0)) || printf '  %s\n' "${gpus[@]}"

if ((${#gpus[@]} == 0)); then
  [[ $count != all ]] || count=$(nproc)
  echo "training on the host with $count processes"
  exec "$@" --backend host --parallel ddp --nproc "$count"
fi
[[ $count != all ]] || count=${#gpus[@]}
if ((count > ${#gpus[@]})); then
  echo "$0: $count GPUs are asked for, and there are ${#gpus[@]}; ask for fewer" >&2
  exit 2
fi
echo "training on the first $count"
exec "$@" --backend cuda --parallel ddp --nproc "$count" --gpu-ids "$(seq -s , 0 $((count - 1)))"
