#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# linked_cuda.sh COMPILER NVCC FOLDER CUDA_INCLUDE: a file of a program that links the CUDA kernels has none of its own,
# compiled without nvcc or by nvcc. Header-only, nvcc finds kernels in it, and a rule of the program's own is one. nvcc
# compiles all of lockstep.hpp.
set -euo pipefail
compiler=$1 nvcc=$2 folder=$3 cuda=$4
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$folder"
failed=0

cat >"$folder/model.cu" <<'END'
#include <lockstep/cuda.cuh>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/binary_cross_entropy_with_logits.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/huber_loss.hpp>
#include <lockstep/nn/loss/kl_to_standard_normal.hpp>
#include <lockstep/nn/loss/mean_absolute_error.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/loss/quantile_loss.hpp>
#include <lockstep/optim/adamw.hpp>

using namespace lockstep;

nn::Loss<CudaSpace> loss(nn::Context<float, CudaSpace>& context, nn::Linear const& layer,
                         nn::Variable<float, 2, CudaSpace> x, TensorView<std::int32_t const, 1, CudaSpace> labels) {
  return nn::cross_entropy(context, nn::gelu(context, layer.forward(context, x)), labels);
}
template <class Number>  // losses without a column of targets
nn::LossOf<nn::Context<Number, CudaSpace>> without_targets(nn::Context<Number, CudaSpace>& context,
                                                           nn::Variable<Number, 2, CudaSpace> x) {
  return nn::binary_cross_entropy_with_logits(context, x, 0.9)
      .with_auxiliary(nn::mean_squared_error(context, x, 1))
      .with_auxiliary(nn::mean_absolute_error(context, x, 1))
      .with_auxiliary(nn::huber_loss(context, x, 1))
      .with_auxiliary(nn::quantile_loss(context, x, 1))
      .with_auxiliary(nn::kl_to_standard_normal(context, x, x));
}
template nn::Loss<CudaSpace> without_targets(nn::Context<float, CudaSpace>&, nn::Variable<float, 2, CudaSpace>);
template nn::Loss<CudaSpace> without_targets(nn::Context<bfloat16, CudaSpace>&, nn::Variable<bfloat16, 2, CudaSpace>);
template nn::Loss<CudaSpace> without_targets(nn::Context<float16, CudaSpace>&, nn::Variable<float16, 2, CudaSpace>);
void step(memory::Stream<CudaSpace> stream, optim::Slice<float, CudaSpace> slice,
          optim::StepScalars<CudaSpace> const* scalars) {
  optim::AdamW{}.step(stream, slice, scalars);
}
END
cat >"$folder/rule.cu" <<'END'
#include <lockstep/kernel/elementwise/elementwise.cuh>

struct Halve {
  static constexpr char const* name = "halve";
  template <class Number>
  constexpr Number operator()(Number x) const {
    return x / 2;
  }
};
void halve(lockstep::memory::Stream<lockstep::CudaSpace> stream,
           lockstep::TensorView<float, 1, lockstep::CudaSpace> x) {
  lockstep::kernel::Elementwise<lockstep::CudaSpace>::forward<Halve, float>(stream, {x.data, x.extent}, x);
}
END

printf '#include <lockstep/%s>\n' cuda.cuh lockstep.hpp >"$folder/all.cu"

# by_nvcc FLAG…: compiles a file.
by_nvcc() {
  "$nvcc" -std=c++20 --extended-lambda --expt-relaxed-constexpr -diag-suppress=177,780,1675,2810 -ccbin "$compiler" \
    -I "$root/include" "$@"
}
# kernels FILE FLAG…: prints the number of kernels that nvcc finds.
kernels() {
  by_nvcc "${@:2}" -ptx "$folder/$1.cu" -o "$folder/$1.ptx"
  grep -c '\.entry' "$folder/$1.ptx" || true
}
linked=$(kernels model -DLOCKSTEP_COMPILED)
own=$(kernels rule -DLOCKSTEP_COMPILED)
all=$(kernels rule)
[[ $linked == 0 ]] || { echo "nvcc finds $linked kernels in a linked file that has none" >&2; failed=1; }
[[ $own == 1 ]] || { echo "nvcc finds $own kernels in a linked file with one" >&2; failed=1; }
by_nvcc -DLOCKSTEP_COMPILED -c "$folder/all.cu" -o "$folder/all.o" || failed=1
((all >= 1)) || { echo "nvcc finds no kernel in a header-only file" >&2; failed=1; }

"$compiler" -std=c++20 -x c++ -DLOCKSTEP_COMPILED -ffp-contract=off -Wall -Wextra -Wpedantic -Werror -I "$root/include" \
  -isystem "$cuda" -c "$folder/model.cu" -o "$folder/model.o"
nm --demangle --undefined-only "$folder/model.o" >"$folder/symbols"
for function in Linear::forward CrossEntropy AdamWith; do
  grep -q "$function.*CudaSpace" "$folder/symbols" ||
    { echo "without nvcc, the file does not refer to the library's $function" >&2; failed=1; }
done
exit $failed
