// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/detail/tree_reduce.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE void reduce_range(Reduction reduction, ElementType type, void const* const* in, int ranks,
                                  void* const* out, int outputs, Index begin, Index end) {
  auto const run = [&]<class Value>(Value) {
    reduce_range(reduction, reinterpret_cast<Value const* const*>(in), ranks, reinterpret_cast<Value* const*>(out),
                 outputs, begin, end);
  };
  switch (type) {
    case ElementType::float32:
      return run(float{});
    case ElementType::float64:
      return run(double{});
    case ElementType::bfloat16:
      return run(bfloat16{});
    case ElementType::float16:
      return run(float16{});
    case ElementType::int32:
      return run(std::int32_t{});
    case ElementType::int64:
      return run(std::int64_t{});
    case ElementType::uint8:
      return run(std::uint8_t{});
  }
}

}}}  // namespace lockstep::comm::detail
