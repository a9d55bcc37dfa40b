#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# faults.sh PROGRAM short|long: kills ranks of PROGRAM (rank.cpp) at random instants, under every installed launcher.
# Checks that the killed rank is named and that no processes are left, and prints the detection times.
set -uo pipefail

program=$1
here=$(dirname -- "${BASH_SOURCE[0]}")
case $2 in
  short) own=12 mpi=3 torch=0 jobs=20 ;;
  long) own=300 mpi=60 torch=10 jobs=100 ;;
  *) echo "faults.sh: short or long?" >&2; exit 2 ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
python=${LOCKSTEP_PEER_PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n' "$1" >&2
  [[ -z ${2:-} ]] || sed 's/^/    /' "$2" >&2
}

# await SECONDS CONDITION…: returns whether the condition became true.
await() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS <= until)) || return 1
    sleep 0.005
  done
}
ended() { [[ ! -e /proc/$1 ]] || grep -q ') Z' "/proc/$1/stat" 2>/dev/null; }
all_ended() { local pid; for pid; do ended "$pid" || return 1; done; }

# start NAME SIZE LAUNCHER…: starts a background job; `job` is its process, and the ranks write their process ids to
# FAULTS_FOLDER.
start() {
  export FAULTS_FOLDER=$folder/$1
  mkdir "$FAULTS_FOLDER"
  : >"$FAULTS_FOLDER/err"
  "${@:2}" 2>"$FAULTS_FOLDER/err" >/dev/null &
  job=$!
}
# The process id of rank $1; of all ranks.
pid_of() { cat "$FAULTS_FOLDER/$1"; }
pids() { cat "$FAULTS_FOLDER"/[0-9] 2>/dev/null; }

# end_job: waits for the job, and kills it after a timeout.
end_job() {
  await 30 ended "$job" || { fail "$1: does not end" "$FAULTS_FOLDER/err"; kill -9 "$job"; }
  wait "$job" 2>/dev/null
  code=$?
  # shellcheck disable=SC2046 # one process id per word
  await 5 all_ended $(pids) || { fail "$1: left a process" "$FAULTS_FOLDER/err"; kill -9 $(pids) 2>/dev/null; }
}

# kills COUNT WHAT VERDICT LAUNCHER…: kills one of three ranks at a random instant, COUNT times.
kills() {
  local count=$1 what=$2 verdict=$3 i victim pid killed before err news=() rank
  shift 3
  for ((i = 0; i < count; ++i)); do
    start "$what-$i" "$@"
    err=$FAULTS_FOLDER/err
    victim=$((RANDOM % 3))
    # Kills every third rank as early as it is found, the others after some work.
    ((i % 3 == 0)) || { await 20 grep -q 'added up' "$err"; sleep "0.$((RANDOM % 20 + 10))"; }
    await 20 test -e "$FAULTS_FOLDER/$victim" || fail "$what: rank $victim does not start" "$err"
    pid=$(pid_of "$victim")
    before=$(grep -c 'added up' "$err")
    killed=$(date +%s%N)
    kill -9 "$pid"
    end_job "$what"
    ((code != 0)) || fail "$what: exit code 0 after a kill" "$err"
    # Before the ranks have connected, only their launcher knows them.
    [[ $what == own || $before != 0 ]] || continue
    [[ $(grep -c "verdict: rank $victim (pid $pid) $verdict" "$err") == 1 && $(grep -c verdict: "$err") == 1 ]] ||
      fail "$what: rank $victim (pid $pid) is not named, once" "$err"
    grep -v "rank $victim (pid $pid)" "$err" | grep -q survivor && fail "$what: a survivor names another" "$err"
    if [[ $before != 0 ]]; then
      for rank in 0 1 2; do
        [[ $rank == "$victim" ]] || grep -q "survivor $rank: rank $victim " "$err" ||
          fail "$what: survivor $rank did not say" "$err"
      done
    fi
    news+=($(($(grep -m1 verdict: "$err" | sed 's/.*\(rank [0-9]\] \)//; s/ .*//') / 1000000 - killed / 1000000)))
  done
  ((${#news[@]})) || return 0
  # shellcheck disable=SC2207 # process ids
  news=($(printf '%s\n' "${news[@]}" | sort -n))
  printf '%s: %d kills, the news took %d ms (p50), %d ms (p99)\n' "$what" "$count" \
    "${news[${#news[@]} / 2]}" "${news[${#news[@]} * 99 / 100]}"
}

kills "$own" own 'was killed by signal 9' "$program" --nproc 3
if command -v mpirun.openmpi >/dev/null; then
  kills "$mpi" mpirun 'is gone' mpirun.openmpi --oversubscribe -n 3 "$program"
else
  echo 'skipped: needs mpirun.openmpi (openmpi-bin): kills under mpirun'
fi

# MPICH's mpirun kills the survivors with SIGKILL as soon as it notices: the verdict is correct or missing. In rare
# cases rank 0, which alone watches all others, is killed before it has looked, and a rank that survives it by a moment
# can only name rank 0: two of 1,260 kills on a busy machine.
mpich() {
  local i victim pid err told=0 misled=0
  for ((i = 0; i < mpi; ++i)); do
    start "mpich-$i" mpirun.mpich -n 3 "$program"
    err=$FAULTS_FOLDER/err
    await 20 grep -q 'added up' "$err" || fail 'mpich: does not start' "$err"
    victim=$((RANDOM % 3))
    pid=$(pid_of "$victim")
    kill -9 "$pid"
    end_job mpich
    ((code != 0)) || fail 'mpich: exit code 0 after a kill' "$err"
    if grep -q verdict: "$err"; then
      [[ $(grep -c verdict: "$err") == 1 ]] || fail 'mpich: more than one verdict' "$err"
      if grep -q "verdict: rank $victim (pid $pid) is gone" "$err"; then
        told=$((told + 1))
      elif grep -q "verdict: rank 0 (pid $(pid_of 0)) is gone" "$err"; then
        misled=$((misled + 1))
      else
        fail "mpich: rank $victim (pid $pid) is not named" "$err"
      fi
    fi
  done
  ((misled <= 1 + mpi / 20)) || fail "mpich: rank 0 named in place of another in $misled of $mpi kills"
  printf "MPICH's mpirun: %d kills, the rank named in %d, rank 0 in its place in %d\n" "$mpi" "$told" "$misled"
}
if command -v mpirun.mpich >/dev/null; then
  mpich
else
  echo 'skipped: needs mpirun.mpich (mpich): kills under it'
fi
# Two torchruns as on two hosts: their ranks connect to a store separate from the agents' store.
two_torchruns() {
  local agent agents=()
  for agent in 0 1; do
    "$python" -m torch.distributed.run --no-python --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d \
      --rdzv-endpoint "localhost:$((20000 + $$ % 10000))" --rdzv-id "faults-$$" \
      "$program" --engine store --steps 50 2>"$folder/agent-$agent" &
    agents+=($!)
  done
  for agent in "${agents[@]}"; do wait "$agent" || fail 'two torchruns: one failed' "$folder/agent-0"; done
  [[ $(cat "$folder"/agent-[01] | grep -c 'added up') == 1 ]] ||
    fail 'two torchruns: the ranks have not added up, all together' "$folder/agent-0"
}
if ((torch)); then
  if "$python" -c 'import torch' 2>/dev/null; then
    two_torchruns
    kills "$torch" torchrun 'is gone' \
      "$python" -m torch.distributed.run --no-python --standalone --nproc-per-node 3 "$program"
  else
    echo 'skipped: needs a Python with torch: kills under torchrun'
  fi
fi

# For comparison, PyTorch over Gloo under torchrun: the time until a survivor reports an error, and whether it names the
# rank.
gloo() {
  local i victim killed news=() named=0
  for ((i = 0; i < torch; ++i)); do
    start "gloo-$i" "$python" -m torch.distributed.run --standalone --nproc-per-node 3 "$here/gloo.py"
    await 60 grep -q 'added up' "$FAULTS_FOLDER/err" || fail 'gloo: does not start' "$FAULTS_FOLDER/err"
    victim=$((RANDOM % 3))
    killed=$(date +%s%N)
    kill -9 "$(pid_of "$victim")"
    end_job gloo
    grep -q survivor "$FAULTS_FOLDER/err" || continue
    news+=($(($(grep -m1 survivor "$FAULTS_FOLDER/err" | sed 's/ .*//') / 1000000 - killed / 1000000)))
    grep survivor "$FAULTS_FOLDER/err" | grep -q "rank $victim\b" && named=$((named + 1))
  done
  # shellcheck disable=SC2207 # process ids
  news=($(printf '%s\n' "${news[@]}" | sort -n))
  printf 'for comparison, gloo: %d kills, a survivor said something in %d, after %d ms (p50), and named the rank in %d\n' \
    "$torch" "${#news[@]}" "${news[${#news[@]} / 2]:-0}" "$named"
}
((torch == 0)) || ! "$python" -c 'import torch' 2>/dev/null || gloo

# If a launcher is killed, its ranks end too.
for what in own mpirun; do
  launcher=("$program" --nproc 3)
  [[ $what == own ]] || launcher=(mpirun.openmpi --oversubscribe -n 3 "$program")
  command -v "${launcher[0]}" >/dev/null || continue
  start "$what-launcher" "${launcher[@]}"
  await 20 grep -q 'added up' "$FAULTS_FOLDER/err"
  kill -9 "$job"
  end_job "$what, launcher killed"
done

# A stopped rank is named while others wait for it, and is not killed.
start stall "$program" --nproc 3 --warn 0.5
await 20 grep -q 'added up' "$FAULTS_FOLDER/err"
kill -STOP "$(pid_of 1)"
await 5 grep -q "warning: .* for rank 1 (pid $(pid_of 1))" "$FAULTS_FOLDER/err" ||
  fail 'a stopped rank: no warning' "$FAULTS_FOLDER/err"
ended "$(pid_of 0)" && fail 'a stopped rank: rank 0 gave up' "$FAULTS_FOLDER/err"
kill -9 "$job"
end_job 'a stopped rank'

# Concurrent jobs do not interfere: half are started by the program itself, half as by torchrun.
began=$(date +%s%N)
for ((i = 0; i < jobs; ++i)); do
  if ((i % 2)); then
    "$program" --nproc 2 --steps 3 2>"$folder/job-$i" &
  else
    for rank in 0 1; do
      RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$((i + 1)) \
        "$program" --steps 3 2>>"$folder/job-$i" &
    done
  fi
done
for job in $(jobs -p); do wait "$job" || fail "of $jobs jobs at once one failed"; done
[[ $(cat "$folder"/job-* | grep -c 'added up') == "$jobs" ]] || fail "of $jobs jobs at once not all have added up"
printf '%d jobs at once: %d ms\n' "$jobs" $((($(date +%s%N) - began) / 1000000))

# Two hosts whose network silently drops all packets: after a short loss the run continues; after a permanent one the
# ranks of both hosts notice.
lost_network() {
  local a=lockstep-a-$$ b=lockstep-b-$$ began one two took steps
  local job=(env WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 TORCHELASTIC_RUN_ID=faults-$$)
  ip netns add "$a" && ip netns add "$b" &&
    ip link add eth0 netns "$a" type veth peer name eth0 netns "$b" || return 77
  ip -n "$a" addr add 10.77.0.1/24 dev eth0
  ip -n "$b" addr add 10.77.0.2/24 dev eth0
  ip -n "$a" link set eth0 up
  ip -n "$a" link set lo up
  ip -n "$b" link set eth0 up
  # To an address of no network card: frames leave and arrive nowhere.
  cut_off() {
    ip -n "$a" neigh replace 10.77.0.2 lladdr 02:00:00:00:00:77 dev eth0 nud permanent
    ip -n "$b" neigh replace 10.77.0.1 lladdr 02:00:00:00:00:77 dev eth0 nud permanent
  }
  ip netns exec "$a" "${job[@]}" RANK=0 "$program" --engine store --silence 8 2>"$folder/host-0" &
  one=$!
  ip netns exec "$b" "${job[@]}" RANK=1 "$program" --engine store --silence 8 2>"$folder/host-1" &
  two=$!
  await 10 grep -q 'have added up' "$folder/host-0" || fail 'lost network: the ranks do not meet' "$folder/host-0"
  cut_off
  sleep 5
  steps=$(grep -c 'step' "$folder/host-0" || true)
  ip -n "$a" neigh del 10.77.0.2 dev eth0
  ip -n "$b" neigh del 10.77.0.1 dev eth0
  steps_after() { (($(grep -c 'step' "$folder/host-0") > steps + 1)); }
  await 10 steps_after || fail 'lost network: the run does not go on when the network is back' "$folder/host-0"
  began=$(date +%s%N)
  cut_off
  wait "$one"
  took=$((($(date +%s%N) - began) / 1000000))
  wait "$two"
  grep -q 'survivor 0: rank 1 (pid [0-9]* on .*) is gone' "$folder/host-0" ||
    fail 'lost network: rank 0 does not name rank 1' "$folder/host-0"
  grep -q 'survivor 1: rank 0 (pid [0-9]* on .*) is gone' "$folder/host-1" ||
    fail 'lost network: rank 1 does not name rank 0' "$folder/host-1"
  [[ $(cat "$folder"/host-[01] | grep -c verdict:) == 2 ]] || fail 'lost network: not one verdict on each host'
  ((took <= 9000)) || fail "lost network: noticed after $took ms"
  printf 'lost network: both hosts noticed after %d ms\n' "$took"
  ip netns del "$a"
  ip netns del "$b"
}
if [[ $2 == short ]]; then
  :
elif ((EUID)) || ! command -v ip >/dev/null; then
  echo 'skipped: needs root and ip (iproute2): the lost network'
else
  lost_network || echo 'skipped: needs network namespaces: the lost network'
fi

[[ -z $(find /dev/shm -name '*lockstep*' 2>/dev/null) ]] || fail 'left a name in /dev/shm'
((failures == 0)) && echo 'all faults were told, and nothing was left'
exit $((failures != 0))
