// SPDX-License-Identifier: Apache-2.0
// CASE other_space: TensorView
// CASE drops_const: TensorView
// CASE other_rank: TensorView
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>

using namespace lockstep;

#if defined(CASE_other_space)
using From = TensorView<float, 1, CudaSpace>;
#elif defined(CASE_drops_const)
using From = TensorView<float const, 1, HostSpace>;
#elif defined(CASE_other_rank)
using From = TensorView<float, 2, HostSpace>;
#else
using From = TensorView<float, 1, HostSpace>;
#endif
#if defined(CASE_drops_const)
using To = TensorView<float, 1, HostSpace>;
#else
using To = TensorView<float const, 1, HostSpace>;
#endif

To convert(From view) { return view; }
