// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_NCCL)
#include <nccl.h>

#include <cstddef>
#include <cstdint>

#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/reduction/nonzero_mask.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

[[nodiscard]] inline ncclDataType_t nccl_type(ElementType type, bool is_unsigned) noexcept {
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
      return is_unsigned ? ncclUint32 : ncclInt32;
    case ElementType::int64:
      return is_unsigned ? ncclUint64 : ncclInt64;
    case ElementType::uint8:
      break;
  }
  return ncclUint8;
}

/// Runs an all_gather as one broadcast per part, since parts may have unequal sizes.
inline ncclResult_t enqueue_all_gather_of_parts(CollectiveOperation const& operation, ncclDataType_t type,
                                                ncclComm_t group, int rank, int ranks, cudaStream_t stream) {
  ncclResult_t result = ncclGroupStart();
  auto* out = static_cast<std::byte*>(operation.data);
  for (int r = 0; r < ranks; ++r) {
    auto const n = part_elements(operation, r);
    void const* const from = r == rank ? input_of(operation) : out;
    if (n > 0 && (result == ncclSuccess || result == ncclInProgress))
      result = ncclBroadcast(from, out, static_cast<std::size_t>(n), type, r, group, stream);
    out += n * element_bytes(operation);
  }
  auto const ended = ncclGroupEnd();
  return result == ncclSuccess || result == ncclInProgress ? ended : result;
}

/// Enqueues an operation on the stream. Logical operations become max (or) and min (and) of unsigned integers: 0 if
/// all, or any, are 0. See normalize_logical_result.
inline ncclResult_t enqueue_nccl(CollectiveOperation const& operation, ncclComm_t group, int rank, int ranks,
                                 memory::Stream<CudaSpace> stream) {
  bool const any = operation.reduction == Reduction::logical_or, all = operation.reduction == Reduction::logical_and;
  auto const type = nccl_type(operation.type, any || all);
  auto const nccl_reduction = any || operation.reduction == Reduction::max ? ncclMax
                              : all                                        ? ncclMin
                              : operation.reduction == Reduction::average  ? ncclAvg
                                                                           : ncclSum;
  auto const count = static_cast<std::size_t>(operation.count);
  auto* const cuda_stream = stream.get();
  switch (operation.collective) {
    case Collective::all_reduce:
      return ncclAllReduce(input_of(operation), operation.data, count, type, nccl_reduction, group, cuda_stream);
    case Collective::reduce_scatter:
      return ncclReduceScatter(input_of(operation), operation.data, count, type, nccl_reduction, group, cuda_stream);
    case Collective::broadcast:
      return ncclBroadcast(operation.data, operation.data, count, type, operation.root, group, cuda_stream);
    default:
      break;
  }
  if (operation.counts.empty())
    return ncclAllGather(input_of(operation), operation.data, count, type, group, cuda_stream);
  return enqueue_all_gather_of_parts(operation, type, group, rank, ranks, cuda_stream);
}

/// Turns the nonzero results of logical operations into 1.
inline void normalize_logical_result(CollectiveOperation const& operation, memory::Stream<CudaSpace> stream) {
  bool const logical = operation.reduction == Reduction::logical_or || operation.reduction == Reduction::logical_and;
  if (!logical || !reduces(operation.collective)) return;
  auto const run = [&]<class Value>(Value) {
    kernel::nonzero_mask(stream,
                         TensorView<Value, 1, CudaSpace>{static_cast<Value*>(operation.data), {operation.count}});
  };
  if (operation.type == ElementType::int32) return run(std::int32_t{});
  if (operation.type == ElementType::int64) return run(std::int64_t{});
  run(std::uint8_t{});
}
/// Loads normalize_logical_result's kernels on the current device. They are launched after work that waits for peers,
/// when loading would block.
inline void load_normalize_kernels() {
  kernel::load_nonzero_mask<std::int32_t>();
  kernel::load_nonzero_mask<std::int64_t>();
  kernel::load_nonzero_mask<std::uint8_t>();
}

}}}  // namespace lockstep::comm::detail
#endif
