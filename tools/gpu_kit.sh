#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a kit that `./dev gpu build` has packed, on a machine with a GPU. Needs no compiler, no network and no root.
# In the kit this file is called run.
# shellcheck disable=SC2317 # stages are called by name
set -uo pipefail

kit=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
all=(smoke tests trainers kernels steps text rates sanitizer profile)
declare -A limits=([smoke]=60 [tests]=200 [trainers]=240 [kernels]=300 [steps]=350 [text]=300 [rates]=240 [sanitizer]=300 [profile]=200)

usage() {
  cat <<'TEXT'
usage: ./run [--seconds N] [--results FOLDER] [--only TEXT]… [STAGE…]

  smoke      each program finds its libraries; a copy; sixty training steps
  tests      tests of CUDA code, several at a time
  trainers   training under every policy, with kills and resumes: runs that must be equal have equal bits
  kernels    time of single kernels, and of PyTorch's
  steps      time of whole training steps, and of PyTorch's, eager and compiled
  text       text classification end to end, and in PyTorch with a DataLoader
  rates      the other trainers in the kit, on the GPU in float and bfloat16, and on the CPU
  sanitizer  compute-sanitizer on the tests, fastest first
  profile    kernels of single training steps, by ncu

  --seconds  time limit of all stages together (default 900)
  --results  output folder (default results, in the kit)
  --only     kernels and steps whose name contains TEXT; tests whose name contains TEXT

Without a STAGE, all run. Each stage has a time limit of its own, from 60 to 350 s. A stage that fails does not stop the
others. FOLDER/STAGE.tsv has a line for each check: name, outcome, seconds, note. FOLDER/STAGE.rows has measurements,
FOLDER/STAGE/ the output of each check.
TEXT
}

die() {
  printf 'run: %s\n' "$1" >&2
  exit 2
}

seconds=900
results=$kit/results
only=()
stages=()
while (($#)); do
  case $1 in
    --seconds | --results | --only)
      (($# > 1)) || die "$1 needs a value"
      case $1 in
        --seconds) [[ $2 =~ ^[1-9][0-9]*$ ]] || die "--seconds $2: must be a whole number of seconds"; seconds=$2 ;;
        --results) results=$2 ;;
        --only) only+=("$2") ;;
      esac
      shift 2
      ;;
    -h | --help) usage && exit ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] || die "no stage is called $1; there are: ${all[*]}"
      stages+=("$1")
      shift
      ;;
  esac
done
((${#stages[@]})) || stages=("${all[@]}")

{ nvidia-smi -L 2>/dev/null | grep -q '^GPU'; } || die 'there is no GPU here: nvidia-smi lists none'
mkdir -p "$results" || die "cannot write to $results"
results=$(cd "$results" && pwd)
cd "$kit" || exit 2 # tests read their files from here
end=$((SECONDS + seconds))

# ------------------------------------------------------------------------------------------------------ environment

# has_module NAME: whether the peers' Python has it, without loading it.
find_python() {
  local candidate
  for candidate in "${LOCKSTEP_PEER_PYTHON:-python3}" python3 python; do
    if "$candidate" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}
python=$(find_python)

# Folders with cuBLASLt, cuDNN and NCCL: PyTorch's wheels first, so that both sides use the same files, then CUDA
# toolkits.
library_folders() {
  echo "$kit/lib"
  if [[ -n $python ]]; then
    "$python" - <<'TEXT'
import glob, importlib.util, os
torch = importlib.util.find_spec("torch").submodule_search_locations[0]
print("\n".join(sorted(glob.glob(os.path.dirname(torch) + "/nvidia/*/lib"))))
TEXT
  fi
  compgen -G '/usr/local/cuda*/lib64' | sort -r
  compgen -G '/usr/local/cuda*/lib' | sort -r
}
libraries=$(library_folders | paste -sd:)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Environment for a program of the kit. Python finds its own libraries.
ours=(env "LD_LIBRARY_PATH=$libraries")

describe_machine() {
  cat about.txt 2>/dev/null
  echo "date $(date -u '+%Y-%m-%d %H:%M UTC')"
  nvidia-smi --query-gpu=name,memory.total,driver_version,compute_cap --format=csv,noheader | sed 's/^/gpu /'
  echo "processors $(nproc)"
  [[ -z $python ]] || timeout 60 "$python" -c 'import torch; print("torch", torch.__version__)' 2>/dev/null
}

# ----------------------------------------------------------------------------------------------------------- checks

# check NAME LIMIT COMMAND…: runs a command for at most LIMIT seconds, and not beyond the stage's end. Its output goes to
# a log, its outcome to the stage's table. Returns whether it passed.
check() {
  local name=$1 limit=$2 log=$results/$stage/${1//\//.}.log code=0 outcome note='' began
  shift 2
  ((limit <= stage_end - SECONDS)) || limit=$((stage_end - SECONDS))
  if ((limit < 1)); then
    record "$name" 'left out' 0 'no time was left'
    return 1
  fi
  began=$(date +%s%N)
  timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 </dev/null || code=$?
  case $code in
    0) outcome=passed ;;
    77) outcome=skipped ;;
    124 | 137) outcome='timed out' note="after $limit s" ;;
    *) outcome=failed note="exit code $code: $(grep -m 1 -E 'ERROR|rror:|FAILED' "$log" || tail -n 1 "$log")" ;;
  esac
  [[ $outcome != skipped ]] || note=$(grep -m 1 '^skipped' "$log")
  # A filter that matches no case tests nothing.
  if [[ $outcome == passed ]] && grep -q 'test cases: *0 ' "$log"; then outcome=failed note='no test case matches'; fi
  record "$name" "$outcome" "$(awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $began) / 1e9 }")" "$note"
  [[ $outcome == passed ]]
}
record() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(tr '\t\n' '  ' <<<"$4" | cut -c 1-300)" >>"$results/$stage.tsv"; }

# together MOST: waits until fewer than MOST background jobs run.
together() { while (($(jobs -rp | wc -l) >= $1)); do wait -n; done; }

# rows CHECK…: adds the measurements in the logs of these checks to the stage's rows, and failed rows to its table.
rows() {
  local name
  for name; do
    grep -P '^[^\t]+\t[^\t]+\t[0-9.]+' "$results/$stage/$name.log" 2>/dev/null | grep -v '^FAILED' >>"$results/$stage.rows"
    while IFS=$'\t' read -r _ row note; do record "$name: $row" failed 0 "$note"; done \
      < <(grep -P '^FAILED\t' "$results/$stage/$name.log" 2>/dev/null)
  done
}

# Prints the outcome of a stage in one line.
summary() {
  awk -F'\t' -v stage="$stage" -v file="$results/$stage.tsv" '
    { ++count[$2]; ++total }
    $2 == "failed" || $2 == "timed out" { bad = bad (bad ? ", " : "") $1 }
    END {
      if (!total) { printf "%s: nothing was checked\n", stage; exit 1 }
      printf "%s: %d of %d passed", stage, count["passed"], total
      if (count["skipped"]) printf ", %d skipped", count["skipped"]
      if (count["left out"]) printf ", %d left out", count["left out"]
      if (bad) printf "; failed or timed out: %s", (length(bad) > 200 ? substr(bad, 1, 200) "…" : bad)
      printf " (%s)\n", file
      exit bad != "" || count["passed"] + count["skipped"] == 0
    }' "$results/$stage.tsv"
}

matches_only() {
  local text
  ((${#only[@]})) || return 0
  for text in "${only[@]}"; do [[ $1 != *"$text"* ]] || return 0; done
  return 1
}

# ----------------------------------------------------------------------------------------------------------- stages

stage_smoke() {
  local program
  for program in bin/*; do
    # shellcheck disable=SC2016 # the inner shell expands these
    check "libraries of ${program##*/}" 20 bash -c '
      missing=$(LD_LIBRARY_PATH=$2 ldd "$1" 2>&1 | grep -E "not found" | sed "s/^[ \t]*//" | sort -u | paste -sd,)
      [[ -z $missing ]] || { echo "ERROR: $missing"; exit 1; }' smoke "$program" "$libraries"
  done
  [[ ! -f bin/kernel_points ]] || check 'copy' 30 "${ours[@]}" bin/kernel_points 'copy 1 GiB'
  [[ ! -f bin/text_classification ]] || train sixty_steps
}

stage_tests() {
  local name program filter
  while read -r name program filter; do
    matches_only "$name" || continue
    together "$(($(nproc) < 6 ? $(nproc) : 6))"
    check "$name" 120 "${ours[@]}" "bin/$program" ${filter:+"$filter"} &
  done <tests.txt
  wait
}

# train NAME FLAG…: trains on the kit's texts, and keeps the run in the stage's folder.
train() {
  local name=$1
  shift
  rm -rf "$results/$stage/$name.run"
  check "$name" 60 "${ours[@]}" bin/text_classification "${training[@]}" --save-dir "$results/$stage/$name.run" "$@"
}
training=(--backend cuda --data data/train.csv --threads 1 --global-batch-size 64 --max-steps 60)

hash_of() { sed -n 's/.*"parameters_sha256": *"\([0-9a-f]*\)".*/\1/p' "$results/$stage/$1.run/run.json" 2>/dev/null; }
# equal NAME RUN…: records whether these runs ended with equal parameters. Runs that were left out do not count.
equal() {
  local name=$1 run hash first='' compared=0 different=''
  shift
  for run; do
    hash=$(hash_of "$run")
    [[ -n $hash ]] || continue
    compared=$((compared + 1))
    [[ -n $first ]] || first=$hash
    [[ $hash == "$first" ]] || different+=" $run"
  done
  if ((compared < 2)); then
    record "$name" 'left out' 0 'fewer than two runs ended'
  elif [[ -n $different ]]; then
    record "$name" failed 0 "other parameters than $1:$different"
  else
    record "$name" passed 0 "$compared runs: $first"
  fi
}

# nccl RANKS NAME FLAG…: starts ranks on one GPU. NCCL refuses them unless each appears to be on its own host.
nccl() {
  local ranks=$1 name=$2
  shift 2
  rm -rf "$results/$stage/$name.run"
  # shellcheck disable=SC2016 # the inner shell expands these
  check "$name" 90 "${ours[@]}" bash -c '
    ranks=$1 failed=0
    shift
    export WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000))
    for ((rank = 0; rank < ranks; ++rank)); do
      RANK=$rank LOCAL_RANK=$rank NCCL_HOSTID=host$rank "$@" &
    done
    for ((rank = 0; rank < ranks; ++rank)); do wait -n || failed=1; done
    exit "$failed"' nccl "$ranks" bin/text_classification "${training[@]}" --parallel ddp --engine nccl \
    --save-dir "$results/$stage/$name.run" "$@"
}

# killed NAME FLAG…: trains with a checkpoint after each tenth step, kills the trainer twice, and resumes it.
killed() {
  local name=$1
  shift
  rm -rf "$results/$stage/$name.run"
  # shellcheck disable=SC2016 # the inner shell expands these
  check "$name" 120 "${ours[@]}" bash -c '
    folder=$1
    shift
    for step in 10 30; do
      "$@" --resume auto &
      for ((tries = 0; tries < 3000; ++tries)); do
        [[ -f $folder/checkpoints/step_$step.safetensors ]] && break
        kill -0 $! 2>/dev/null || { echo "ERROR: it ended before step $step"; exit 1; }
        sleep 0.02
      done
      kill -9 $!
      wait $!
    done
    exec "$@" --resume auto' killed "$results/$stage/$name.run" bin/text_classification "${training[@]}" \
    --checkpoint-every 10 --save-dir "$results/$stage/$name.run" "$@"
}

others=(activity_classification pose_to_text trajectory_transformer video_classification)

stage_trainers() {
  [[ -f bin/text_classification ]] || { record text_classification 'left out' 0 'it is not in the kit' && return; }
  train single --parallel single
  train single_again --parallel single
  train traced --parallel single --trace
  nccl 1 nccl1
  killed killed_and_resumed --parallel single
  equal 'equal: one replica' single single_again traced nccl1 killed_and_resumed
  train dp2 --parallel dp --devices 2
  train ddp_threads2 --parallel ddp --devices 2
  train ddp_processes2 --parallel ddp --nproc 2 --engine process
  nccl 2 nccl2
  nccl 2 rows_nccl2 --bucket-cap-mb 16  # sums the touched rows of the word table
  train sharded_processes2 --parallel ddp --nproc 2 --engine process --shard-optimizer
  nccl 2 sharded_nccl2 --shard-optimizer
  equal 'equal: two replicas' dp2 ddp_threads2 ddp_processes2 nccl2 rows_nccl2 sharded_processes2 sharded_nccl2
  train bf16 --parallel single --precision bf16
  killed bf16_killed_and_resumed --parallel single --precision bf16
  equal 'equal: bfloat16' bf16 bf16_killed_and_resumed
  local cudnn=(--parallel single --precision bf16 --dropout 0 --attention-kernels cudnn)
  if grep -q attention_cudnn tests.txt; then  # the kit was built with cuDNN
    train cudnn_bf16 "${cudnn[@]}"
    killed cudnn_bf16_killed_and_resumed "${cudnn[@]}"
    equal 'equal: attention by cuDNN' cudnn_bf16 cudnn_bf16_killed_and_resumed
  fi
  train reproducible1 --parallel single --reproducible 4
  train reproducible_dp4 --parallel dp --devices 4 --reproducible 4
  train reproducible_processes2 --parallel ddp --nproc 2 --engine process --reproducible 4
  equal 'equal: reproducible' reproducible1 reproducible_dp4 reproducible_processes2
  local other
  for other in "${others[@]}"; do
    [[ ! -f bin/$other ]] ||
      check "$other" 90 "${ours[@]}" "bin/$other" --backend cuda --max-steps 30 --save-dir "$results/$stage/$other.run"
  done
}

# peer NAME LIMIT SCRIPT ARGUMENT…: runs PyTorch's side of a stage.
peer() {
  local name=$1 limit=$2
  shift 2
  if [[ -n $python ]]; then
    check "$name" "$limit" "$python" "peers/$1" "${@:2}"
  else
    record "$name" skipped 0 'no Python with torch'
  fi
}

stage_kernels() {
  check lockstep 90 "${ours[@]}" bin/kernel_points "${only[@]+"${only[@]}"}"
  peer eager 100 gpu_points.py kernels eager 80 "${only[@]+"${only[@]}"}"
  peer compiled 140 gpu_points.py kernels compiled 100 "${only[@]+"${only[@]}"}"
  rows lockstep eager compiled
}

stage_steps() {
  check lockstep 90 "${ours[@]}" bin/step_points "${only[@]+"${only[@]}"}"
  peer eager 90 gpu_points.py steps eager 60 "${only[@]+"${only[@]}"}"
  peer compiled 240 gpu_points.py steps compiled 150 "${only[@]+"${only[@]}"}"
  rows lockstep eager compiled
}

# Prints the samples per second of the second half of a run.
steady_rate() {
  sed -n 's/.*"samples": *\([0-9.]*\).*"seconds": *\([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl" 2>/dev/null | awk '
    { samples[NR] = $1; seconds[NR] = $2 }
    END {
      half = int((NR + 1) / 2)
      if (NR > 1 && seconds[NR] > seconds[half]) printf "%.0f", (samples[NR] - samples[half]) / (seconds[NR] - seconds[half])
    }'
}

stage_text() {
  local precision batch kind rate
  for precision in fp32 bf16; do
    kind=$([[ $precision == fp32 ]] && echo float || echo bf16)
    for batch in 32 256; do
      rm -rf "$results/text/lockstep_${kind}_$batch.run"
      check "lockstep_${kind}_$batch" 90 "${ours[@]}" bin/text_classification --backend cuda --data data/train.csv --epochs 6 \
        --batch-size "$batch" --precision "$precision" --save-dir "$results/text/lockstep_${kind}_$batch.run"
      rate=$(steady_rate "$results/text/lockstep_${kind}_$batch.run")
      [[ -z $rate ]] || printf 'text %s b%s\tlockstep\t%s\n' "$kind" "$batch" "$rate" >>"$results/text.rows"
    done
  done
  for kind in float bf16; do
    for batch in 32 256; do
      peer "eager_${kind}_$batch" 60 gpu_text.py data/train.csv data/test.csv eager "$kind" --epochs 3 --batch "$batch"
    done
  done
  peer compiled_bf16_32 120 gpu_text.py data/train.csv data/test.csv compiled bf16 --epochs 3
  rows eager_{float,bf16}_{32,256} compiled_bf16_32
}

stage_rates() {
  local name steps way backend precision run rate
  for name in "${others[@]}"; do
    [[ -f bin/$name ]] || continue
    case $name in
      activity_classification) steps=500 ;;
      video_classification) steps=60 ;;
      *) steps=150 ;;
    esac
    for way in 'cuda fp32' 'cuda bf16' 'host fp32'; do
      read -r backend precision <<<"$way"
      run=${name}_${backend}_$precision
      rm -rf "$results/rates/$run.run"
      check "$run" 40 "${ours[@]}" "bin/$name" --backend "$backend" --precision "$precision" --max-steps "$steps" \
        --save-dir "$results/rates/$run.run"
      rate=$(sed -n 's/.*"samples_per_second_after_startup": *\([0-9.]*\).*/\1/p' "$results/rates/$run.run/run.json" 2>/dev/null)
      [[ -z $rate ]] || printf '%s %s\t%s\t%s\n' "$name" "$precision" "$backend" "$rate" >>"$results/rates.rows"
    done
  done
  [[ -s $results/rates.tsv ]] || record 'other trainers' skipped 0 'none is in the kit'
}

# find_tool NAME: prints the path of a tool of the CUDA toolkit.
find_tool() { command -v "$1" || compgen -G "/usr/local/cuda*/bin/$1" | tail -n 1; }

stage_sanitizer() {
  local sanitizer tool name program filter options
  sanitizer=$(find_tool compute-sanitizer)
  [[ -n $sanitizer ]] || { record compute-sanitizer skipped 0 'there is no compute-sanitizer here' && return; }
  # The order is by the tests' times, if these were measured.
  while read -r name program filter; do
    matches_only "$name" || continue
    for tool in memcheck racecheck; do
      options=(--tool "$tool" --error-exitcode 1)
      # Tests make CUDA calls fail on purpose, and check the errors themselves.
      [[ $tool != memcheck ]] || options+=(--report-api-errors no)
      together "$(($(nproc) < 6 ? $(nproc) : 6))"
      check "$tool $name" 60 "${ours[@]}" "$sanitizer" "${options[@]}" "bin/$program" ${filter:+"$filter"} &
    done
  done < <(awk -F'\t' 'FNR == NR { time[$1] = $3; next } { split($0, part, " "); print time[part[1]] + 0, $0 }' \
    <(cat "$results/tests.tsv" 2>/dev/null || true; echo) tests.txt | sort -sn | cut -d' ' -f2-)
  wait
}

stage_profile() {
  local ncu name
  ncu=$(find_tool ncu)
  [[ -n $ncu ]] || { record ncu skipped 0 'there is no ncu here' && return; }
  for name in 'step d128 b32 bf16' 'step d256 b256 bf16' 'step d256 b256 float' 'step imdb b128 bf16' 'step bert b32 bf16'; do
    check "$name" 90 "${ours[@]}" "$ncu" --profile-from-start off --clock-control none --csv --page raw \
      --metrics gpu__time_duration.sum bin/step_points --profile "$name" &&
      { grep -q '^"[0-9]' "$results/profile/$name.log" || record "$name: kernels" failed 0 'ncu has measured no kernel'; }
  done
}

describe_machine >"$results/machine.txt"
cat "$results/machine.txt"
failed=0
for stage in "${stages[@]}"; do
  rm -rf "${results:?}/$stage" "$results/$stage".{tsv,rows}
  mkdir -p "$results/$stage"
  : >"$results/$stage.tsv"
  began=$SECONDS
  stage_end=$((began + limits[$stage] < end ? began + limits[$stage] : end))
  ("stage_$stage")
  summary || failed=1
  printf '%s: took %s s\n' "$stage" "$((SECONDS - began))" >&2
done
exit "$failed"
