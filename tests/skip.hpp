// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace lockstep_test {

/// What a machine may lack without a fault of its own; there is no other reason to skip.
enum class Need {
  gpu,     ///< a GPU that CUDA can use
  shared,  ///< the data folder `../shared` beside the checkout
  nvcc,    ///< an nvcc of version 12 or later
  torch,   ///< a Python with PyTorch
  python,  ///< a Python with a package that the test names
  strace,  ///< an strace that may trace processes, which some containers forbid
};

/// Reports the running case as skipped: its program then exits with 77, which ctest shows as skipped, unless a check of
/// another case failed. `what` names the thing that was looked for. The case returns right after the call.
void skip(Need need, std::string_view what);

}  // namespace lockstep_test
