// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace lockstep_test {

/// Optional parts of a machine. These are the only valid reasons to skip a test.
enum class Need {
  gpu,     ///< a GPU that CUDA can use
  shared,  ///< the data folder `../shared` next to the checkout
  nvcc,    ///< an nvcc of version 12 or later
  torch,   ///< a Python with PyTorch
  python,  ///< a Python with a package that the test names
  strace,  ///< an strace that may trace processes, which some containers forbid
  latex,   ///< pdflatex
};

/// Reports the running case as skipped: its program then exits with 77, which ctest shows as skipped unless a check of
/// another case failed. `what` names the missing part. The case returns right after the call.
void skip(Need need, std::string_view what);

}  // namespace lockstep_test
