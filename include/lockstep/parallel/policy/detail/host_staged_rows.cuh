// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>
#include <lockstep/parallel/detail/host_exchange.cuh>
#include <lockstep/parallel/policy/detail/table_rows.cuh>
#include <lockstep/parallel/policy/detail/table_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Ranks unite their bits on the host, where the engine also sums the packed rows.
/// @determinism bitwise, and equal to the sum of whole tables
template <>
class HostStagedRows<CudaSpace> : public TableRows {
 public:
  /// @param bucket elements of an operation
  HostStagedRows(nn::ParameterLayout const& layout, int ranks, Index bucket)
      : TableRows(layout, ranks, ElementType::float32, min_size), bucket_(bucket) {
    if (tables().empty()) return;
    found_ = memory::Buffer<std::uint64_t, CudaSpace>(words(), memory::CudaResource{});
    pinned_bits_ = memory::PinnedResource{}.allocate(bytes_of_bits());
    all_.resize(static_cast<std::size_t>(words() * ranks));
  }

  /// Queues the search for this rank's rows, after all gradients.
  void find(memory::Stream<CudaSpace> stream, float const* gradients) {
    if (tables().empty()) return;
    TableRows::find(stream, gradients, found_.data());
    copy(pinned_bits_.data(), found_.data(), bytes_of_bits(), cudaMemcpyDeviceToHost, stream);
    on_host_.record(stream);
  }
  /// Sums the rows over ranks. Work that is queued afterwards sees the sums.   @collective
  template <class Communicator>
  void sum(Communicator& communicator, HostExchange<CudaSpace>& exchange, memory::Stream<CudaSpace> stream,
           float* gradients) {
    if (tables().empty()) return;
    memory::wait_for(on_host_);
    begin();
    all_gather_bytes(communicator, pinned_bits_.data(), all_.data(), bytes_of_bits());
    auto const elements = unite(stream, all_.data(), 1);
    if (packed_.size() < elements)
      packed_ = memory::Buffer<float, CudaSpace>(elements + elements / 4, memory::CudaResource{});
    split(exchange.host());
    pack(stream, gradients, packed_.data());
    packed_end_.record(stream);
    for (std::size_t i = 0; i < slices_.size(); ++i) exchange.copy_to_host(i, packed_end_, slices_[i]);
    exchange.run(
        communicator, slices_.size(), [this](std::size_t i) -> comm::CollectiveOperation& { return operations()[i]; },
        [this](std::size_t i) { return slices_[i]; }, [] {});
    exchange.end(stream);
    unpack(stream, packed_.data(), gradients);
  }

 private:
  /// Splits the packed rows into operations.
  void split(float* host) {
    slices_.clear();
    for_lists([&](std::size_t t, std::int32_t const*, Index count, Index packed) {
      for (Index at = 0, end = count * tables()[t].width; at < end; at += bucket_) {
        slices_.push_back({packed_.data() + packed + at, std::min(bucket_, end - at), tables()[t].offset + at});
        add(t, host + slices_.back().on_host, slices_.back().count);
      }
    });
  }

  Index bucket_;
  memory::Buffer<std::uint64_t, CudaSpace> found_;      // bits of this rank's rows
  memory::Block pinned_bits_;                           // their copy on the host
  std::vector<std::uint64_t> all_;                      // bits of all ranks
  memory::Buffer<float, CudaSpace> packed_;             // gradients of the union's rows
  memory::CudaEvent on_host_, packed_end_;              // the bits are on the host; the rows are packed
  std::vector<HostExchange<CudaSpace>::Slice> slices_;  // of each operation
};

}}}  // namespace lockstep::parallel::detail
