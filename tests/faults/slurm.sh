#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm.sh PROGRAM TRAINER: runs PROGRAM (rank.cpp) and the text classifier with the scripts of examples/launch, under a
# private Slurm on this machine, on one node and on two emulated nodes. Runs as root; needs slurmctld, slurmd,
# slurm-client and munge.
set -uo pipefail

program=$(realpath "$1")
trainer=$(realpath "$2")
scripts=$(realpath "$(dirname -- "${BASH_SOURCE[0]}")/../../examples/launch")
folder=$(mktemp -d)
daemons=()
failures=0

end_all() {
  local pid file
  for file in "$folder"/*.pid; do
    [[ ! -e $file ]] || kill "$(cat "$file")" 2>/dev/null
  done
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null; done
  wait
  rm -rf "$folder"
}
trap end_all EXIT

# expect WHAT CODE LINES TEXT COMMAND…: checks the number of lines with the text, and the exit code (x: any but 0).
expect() {
  local what=$1 code=$2 lines=$3 text=$4 got out=$folder/out
  shift 4
  timeout 60 "$@" >"$out" 2>&1
  got=$?
  if [[ ($code == x && $got == 0) || ($code != x && $got != "$code") || $(grep -c -- "$text" "$out") != "$lines" ]]; then
    failures=$((failures + 1))
    printf 'FAILED: %s: exit code %s, %s times "%s"\n' "$what" "$got" "$(grep -c -- "$text" "$out")" "$text"
    sed 's/^/    /' "$out"
  else
    printf 'as expected: %s\n' "$what"
  fi
}

# node NAME PORT: starts a daemon for the node.
node() {
  slurmd -D -N "$1" -L "$folder/$1.log" >/dev/null 2>&1 &
  daemons+=($!)
}

host=$(hostname -s 2>/dev/null || cat /proc/sys/kernel/hostname)
mkdir "$folder"/{munge,state,spool}
chmod 755 "$folder" "$folder/munge"
head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 600 "$folder/munge/key"
munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge.pid" \
  --log-file="$folder/munge.log" --seed-file="$folder/munge/seed" || { echo 'munged does not start' >&2; exit 1; }
export SLURM_CONF=$folder/slurm.conf
cat >"$SLURM_CONF" <<TEXT
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$folder/munge/socket
ProctrackType=proctrack/linuxproc
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=2
PartitionName=main Nodes=ALL Default=YES
TEXT
slurmctld -D -L "$folder/slurmctld.log" >/dev/null 2>&1 &
daemons+=($!)
node n1
node n2
for ((i = 0; i < 60; ++i)); do
  [[ $(sinfo -h -N -o '%T' 2>/dev/null | grep -c idle) == 2 ]] && break
  sleep 0.5
done

steps=(--steps 50)
sum='all ranks have added up' # once for each run: ranks that each assume a world of one would print it twice
for mpi in none pmi2 pmix; do
  srun --mpi=list 2>&1 | grep -q -w "$mpi" || { echo "skipped: this Slurm has no --mpi=$mpi"; continue; }
  expect "srun --mpi=$mpi" 0 1 "$sum" srun -N 1 -n 2 --mpi="$mpi" "$program" "${steps[@]}"
done
expect 'two steps of one job at once' 0 2 "$sum" srun -N 1 -n 1 -O bash -c \
  "srun -O --overlap -n 2 '$program' ${steps[*]} & srun -O --overlap -n 2 '$program' ${steps[*]}; wait"
expect 'one task that starts two ranks' 0 1 "$sum" srun -N 1 -n 1 "$program" --nproc 2 "${steps[@]}"
expect 'two tasks that each start two' x 2 'each would start 2 more' srun -N 1 -n 2 "$program" --nproc 2
expect 'a batch script without srun is one process' 0 1 "$sum" salloc -Q -N 1 -n 2 "$program" "${steps[@]}"
expect 'two nodes' x 2 'on several hosts' srun -N 2 -n 2 "$program"
# The nodes' names are not host names here.
expect 'two nodes that meet at a store' 0 1 "$sum" \
  srun -N 2 -n 4 env MASTER_ADDR=localhost "$program" --engine store "${steps[@]}"
export RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none # as torchrun, in each task
expect 'a torchrun in each task' x 2 '2 tasks x 2 processes' srun -N 1 -n 2 "$program"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE TORCHELASTIC_RUN_ID
# A killed rank of three is named once, by the survivors, because srun would let them wait.
one_killed() {
  local pid out=0
  export FAULTS_FOLDER=$folder/ranks
  mkdir "$FAULTS_FOLDER"
  srun -N 1 -n 3 -O "$program" >"$FAULTS_FOLDER/err" 2>&1 &
  out=$!
  for ((i = 0; i < 400; ++i)); do
    grep -q "$sum" "$FAULTS_FOLDER/err" && break
    sleep 0.05
  done
  pid=$(cat "$FAULTS_FOLDER/1")
  kill -9 "$pid"
  wait "$out"
  cat "$FAULTS_FOLDER/err"
}
export -f one_killed
export folder program sum
expect 'a rank that is killed under srun' 0 1 'verdict: rank 1 (pid .*) is gone' bash -c one_killed
if command -v mpirun.mpich >/dev/null; then
  expect 'mpirun in an allocation' 0 1 "$sum" salloc -Q -N 1 -n 2 mpirun.mpich -n 2 "$program" "${steps[@]}"
fi

# The scripts for users, from a folder with a user's layout.
mkdir -p "$folder/job/build/release/examples" "$folder/job/data"
ln -s "$trainer" "$folder/job/build/release/examples/text_classification"
for ((i = 0; i < 120; ++i)); do echo "\"$((i % 4 + 1))\",\"title\",\"word$((i % 9)) more\""; done >"$folder/job/data/train.csv"
cd "$folder/job" || exit 1
expect 'srun.sh' 0 1 'ddp, 2 ranks' "$scripts/srun.sh" 2 "$trainer" --data data/train.csv --threads 1 --epochs 1
# batch SCRIPT: submits it for two ranks, waits for its end, and prints its output.
batch() {
  local code=0
  sbatch --wait --nodes 1 --ntasks-per-node 2 --cpus-per-task 1 --output "$folder/job/log" "$scripts/$1" || code=$?
  cat "$folder/job/log"
  return "$code"
}
export -f batch
export scripts
expect 'train.sbatch' 0 1 'ddp, 2 ranks' bash -c 'batch train.sbatch'
if srun --mpi=list 2>&1 | grep -q -w pmix && [[ $("$trainer" --engine mpi 2>&1) == *'no MPI launcher'* ]]; then
  expect 'train_mpi.sbatch' 0 1 'engine mpi' bash -c 'batch train_mpi.sbatch'
else
  echo 'skipped: train_mpi.sbatch: this Slurm has no --mpi=pmix, or the trainer no MPI'
fi

((failures == 0)) && echo 'Slurm: all as expected'
exit $((failures != 0))
