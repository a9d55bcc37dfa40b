// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_NCCL)
#include <nccl.h>

#include <cstddef>
#include <cstdint>

#include <lockstep/comm/detail/request.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/reduction/nonzero_mask.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

[[nodiscard]] inline ncclDataType_t nccl_type(ElementType type, bool without_sign) noexcept {
  switch (type) {
    case ElementType::float32:
      return ncclFloat32;
    case ElementType::float64:
      return ncclFloat64;
    case ElementType::bfloat16:
      return ncclBfloat16;
    case ElementType::float16:
      return ncclFloat16;
    case ElementType::int32:
      return without_sign ? ncclUint32 : ncclInt32;
    case ElementType::int64:
      return without_sign ? ncclUint64 : ncclInt64;
    case ElementType::uint8:
      break;
  }
  return ncclUint8;
}

/// Runs an all_gather as one broadcast per part, since parts may have unequal sizes.
inline ncclResult_t ask_nccl_for_parts(Request const& what, ncclDataType_t type, ncclComm_t group, int rank, int ranks,
                                       cudaStream_t stream) {
  ncclResult_t result = ncclGroupStart();
  auto* out = static_cast<std::byte*>(what.out);
  for (int r = 0; r < ranks; ++r) {
    auto const n = what.part(r);
    void const* const from = r == rank ? what.in : out;
    if (n > 0 && (result == ncclSuccess || result == ncclInProgress))
      result = ncclBroadcast(from, out, static_cast<std::size_t>(n), type, r, group, stream);
    out += n * what.element_bytes();
  }
  auto const ended = ncclGroupEnd();
  return result == ncclSuccess || result == ncclInProgress ? ended : result;
}

/// Enqueues an operation on the stream. Logical operations become max (or) and min (and) of unsigned integers: 0 if
/// all, or any, are 0. See make_truth_of.
inline ncclResult_t ask_nccl(Request const& what, ncclComm_t group, int rank, int ranks, memory::Stream<CudaSpace> on) {
  bool const any = what.operation == Operation::logical_or, all = what.operation == Operation::logical_and;
  auto const type = nccl_type(what.type, any || all);
  auto const operation = any || what.operation == Operation::max ? ncclMax
                         : all                                   ? ncclMin
                         : what.operation == Operation::average  ? ncclAvg
                                                                 : ncclSum;
  auto const count = static_cast<std::size_t>(what.count);
  auto* const stream = on.get();
  switch (what.kind) {
    case Kind::all_reduce:
      return ncclAllReduce(what.in, what.out, count, type, operation, group, stream);
    case Kind::reduce_scatter:
      return ncclReduceScatter(what.in, what.out, count, type, operation, group, stream);
    case Kind::broadcast:
      return ncclBroadcast(what.out, what.out, count, type, what.root, group, stream);
    default:
      break;
  }
  if (what.counts.empty()) return ncclAllGather(what.in, what.out, count, type, group, stream);
  return ask_nccl_for_parts(what, type, group, rank, ranks, stream);
}

/// Turns the nonzero results of logical operations into 1.
inline void make_truth_of(Request const& what, memory::Stream<CudaSpace> stream) {
  bool const logical = what.operation == Operation::logical_or || what.operation == Operation::logical_and;
  if (!logical || (what.kind != Kind::all_reduce && what.kind != Kind::reduce_scatter)) return;
  auto const run = [&]<class T>(T) {
    kernel::nonzero_mask(stream, TensorView<T, 1, CudaSpace>{static_cast<T*>(what.out), {what.count}});
  };
  if (what.type == ElementType::int32) return run(std::int32_t{});
  if (what.type == ElementType::int64) return run(std::int64_t{});
  run(std::uint8_t{});
}
/// Loads make_truth_of's kernels on the current device. They are launched after work that waits for peers, when loading
/// would block.
inline void load_truths() {
  kernel::load_nonzero_mask<std::int32_t>();
  kernel::load_nonzero_mask<std::int64_t>();
  kernel::load_nonzero_mask<std::uint8_t>();
}

}}}  // namespace lockstep::comm::detail
#endif
