#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that a kit of fake programs is packed, unpacked and run on a fake GPU. A failing, hanging or skipped check does
# not stop the others, the total time is bounded, and a machine without a GPU is refused in one sentence.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/../../dev"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf '%s\n' "$1"
  shift
  for file; do echo "--- $file" && cat "$file"; done
  exit 1
}

# A tree as after `./dev gpu build`, with scripts as programs.
source_root=$root
tree=$work/build/gpu
mkdir -p "$tree"/{tests,examples,benchmarks/gpu} "$work/bin" "$work/docs" "$work/unpacked"
ln -s "$source_root"/{tests,benchmarks,tools} "$work"
ln -s "$source_root"/docs/{how-to,reference,explanation,decisions} "$work/docs"
program() {
  cat >"$1"
  chmod +x "$1"
}
program "$tree/tests/test.cuda.fake" <<'TEXT'
#!/usr/bin/env bash
case $1 in
  *good*) [[ -f tests/golden/layers.json ]] && echo '[doctest] test cases: 1 | 1 passed' ;;
  *bad*) echo 'ERROR: CHECK( 1 == 2 ) is NOT correct!' && exit 1 ;;
  *hanging*) sleep 1000 ;;
  *skipped*) echo 'skipped: needs a GPU: more of them' && exit 77 ;;
  *empty*) echo '[doctest] test cases: 0 | 0 passed' ;;
esac
TEXT
for name in good bad skipped empty; do
  echo "kernel/$name test.cuda.fake --source-file=*/kernel/$name.test.cu"
done >"$tree/tests/cuda.txt"
program "$tree/benchmarks/gpu/kernel_points" <<'TEXT'
#!/usr/bin/env bash
printf 'copy 1 GiB\tlockstep\t700.00\t2147483648\t0\n'
printf 'FAILED\tattention forward\ttoo wide\n'
TEXT
program "$work/bin/nvidia-smi" <<'TEXT'
#!/usr/bin/env bash
[[ ${GPU:-yes} == yes ]] || exit 9
[[ $* != -L ]] || echo 'GPU 0: fake'
[[ $* != *name* ]] || echo 'NVIDIA H100 80GB HBM3, 81559 MiB, 580.0, 9.0'
TEXT
PATH=$work/bin:$PATH

root=$work
pack_kit 'architectures 90' '' >/dev/null 2>&1 || fail 'the kit was not packed'
tar -xf "$tree/kit.tar.xz" -C "$work/unpacked"
kit=$work/unpacked/kit
[[ -s $kit/data/train.csv && -s $kit/data/test.csv ]] || fail 'the kit has no texts to train on'

# run CODE ARGUMENT…: runs the kit and checks its exit code.
run() {
  local code=0 expected=$1
  shift
  LOCKSTEP_PEER_PYTHON=/none "$kit/run" "$@" >"$work/said" 2>&1 </dev/null || code=$?
  [[ $code == "$expected" ]] || fail "run $*: exit code $code instead of $expected" "$work/said"
}
says() { grep -qF -- "$1" "$work/said" || fail "it does not say: $1" "$work/said"; }
outcome() { # STAGE NAME OUTCOME
  [[ $(awk -F'\t' -v name="$2" '$1 == name { print $2 }' "$kit/results/$1.tsv") == "$3" ]] ||
    fail "$1 of $2 is not '$3'" "$kit/results/$1.tsv"
}

GPU=no run 2 tests
says 'run: there is no GPU here: nvidia-smi lists none'
run 2 nothing
says 'no stage is called nothing; there are: smoke tests'
run 2 --seconds soon
says '--seconds soon: must be a whole number of seconds'

run 1 tests kernels
says 'tests: 1 of 4 passed, 1 skipped; failed or timed out: '
says 'kernels: 1 of '
outcome tests kernel/good passed
outcome tests kernel/bad failed
outcome tests kernel/skipped skipped
outcome tests kernel/empty failed
outcome kernels lockstep passed
outcome kernels 'lockstep: attention forward' failed
grep -q $'^copy 1 GiB\tlockstep\t700.00' "$kit/results/kernels.rows" || fail 'no row of the copy' "$kit/results/kernels.rows"
grep -q 'CHECK( 1 == 2 )' "$kit/results/tests.tsv" || fail 'the failed check is not named' "$kit/results/tests.tsv"
grep -q 'H100' "$kit/results/machine.txt" || fail 'the GPU is not named' "$kit/results/machine.txt"

# A profiler that succeeds must have measured kernels.
program "$work/bin/ncu" <<'TEXT'
#!/usr/bin/env bash
echo '==PROF== connected'
[[ $* == *d128* ]] || printf '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","add(int)","1,500"\n'
TEXT
run 1 profile
outcome profile 'step d128 b32 bf16: kernels' failed
outcome profile 'step bert b32 bf16' passed

# The report has the rows and the outcomes, and each component has its tests' status.
printf '%s\n' 'kernel/loss/ctc\tpassed\t1\t' 'kernel/convolution/image_input\tfailed\t1\twrong' 'kernel/recurrent/recurrent\tskipped\t0\t' |
  sed 's/\\t/\t/g' >>"$kit/results/tests.tsv"
(root=$source_root && gpu_report "$kit/results") >"$work/said" 2>&1 || fail 'gpu report failed' "$work/said"
says '# Measurements on one H100, '
says '| copy 1 GiB | 700 | 1.00 |'
says '| `add` | 1 | 1.5 | 100 % |'
says '`kernel/bad`: exit code 1: ERROR: CHECK( 1 == 2 ) is NOT correct!'
says '2 components have a new status'
grep -q "^| CTC | H100, $(date -u +%F) |" "$kit/results/status.md" || fail 'no status of CTC' "$kit/results/status.md"
grep -q '^| image input | H100, .*, except `kernel/convolution/image_input` |' "$kit/results/status.md" ||
  fail 'no status of image input' "$kit/results/status.md"
# Components of the report are rows of the page, and each test and check that their status requires exists.
(cd "$source_root" && python3 - >"$work/said" 2>&1) <<'TEXT' || fail 'the report and the repository differ' "$work/said"
import pathlib, re, sys
sys.path.insert(0, "tools")
from gpu_report import COMPONENTS
page = pathlib.Path("docs/reference/cuda.md").read_text()
kit = pathlib.Path("tools/gpu_kit.sh").read_text()
existing = set(re.findall(r"lockstep_cuda_test\((\S+)", pathlib.Path("tests/CMakeLists.txt").read_text()))
existing |= set(re.findall(r"^  (?:train|killed|nccl \d) (\w+)", kit, re.M)) | set(re.findall(r"^  equal '(.*?)'", kit, re.M))
missing = [row for row, _ in COMPONENTS if page.count("\n| " + row) != 1]
missing += [line.split(" | ")[0][2:] for line in page.splitlines()  # components that a run on a GPU would not update
            if " | interpreted | " in line and not any(line.startswith("| " + row) for row, _ in COMPONENTS)]
missing += [name for _, names in COMPONENTS for name in names if name not in existing]
sys.exit(f"these do not exist, or not once: {missing}" if missing else 0)
TEXT
(gpu_report "$work") >"$work/said" 2>&1 && fail 'gpu report accepts a folder without results'
says 'has no results of a run (no machine.txt)'

# Other trainers are measured on the GPU and on the CPU. A kit without them skips the stage.
run 0 rates
says 'rates: 0 of 1 passed, 1 skipped'
program "$kit/bin/video_classification" <<'TEXT'
#!/usr/bin/env bash
while (($#)); do
  case $1 in
    --precision) precision=$2 ;;
    --save-dir) folder=$2 ;;
  esac
  shift
done
[[ $precision == fp32 ]] || { echo 'Error: no bfloat16' && exit 2; }
mkdir -p "$folder" && echo '  "samples_per_second_after_startup": 264.5,' >"$folder/run.json"
TEXT
run 1 rates
outcome rates video_classification_cuda_bf16 failed
[[ $(<"$kit/results/rates.rows") == $'video_classification fp32\tcuda\t264.5\nvideo_classification fp32\thost\t264.5' ]] ||
  fail 'other rates' "$kit/results/rates.rows"
(root=$source_root && gpu_report "$kit/results") >"$work/said" 2>&1 || fail 'gpu report failed' "$work/said"
says '| video_classification fp32 | 264 | 264 |'
rm "$kit/bin/video_classification"

run 0 --only good tests
says 'tests: 1 of 1 passed ('

# A test that hangs ends with the run's time limit. No later test is started.
echo 'kernel/hanging test.cuda.fake --source-file=*/kernel/hanging.test.cu' >"$kit/tests.txt"
began=$SECONDS
run 1 --seconds 8 tests kernels
((SECONDS - began < 60)) || fail 'the time limit did not end the run'
outcome tests kernel/hanging 'timed out'
outcome kernels lockstep 'left out'

# In this checkout, `./dev gpu run` runs the same kit.
(has_gpu() { true; }; gpu_run --only good tests) >"$work/said" 2>&1 || fail 'gpu run failed' "$work/said"
says 'tests: 1 of 1 passed ('
echo 'all as expected'
