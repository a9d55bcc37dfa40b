// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/kernel/embedding/nonzero_rows.cuh>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>
#include <lockstep/parallel/detail/host_exchange.cuh>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/detail/host_staged_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// A row is touched if it is not +0. Ranks unite the bits of their touched rows on the host. Each then packs the rows
/// of the union, which the host engine sums, and unpacks them. The other rows are +0 on all ranks, and so are their
/// sums.
/// @determinism bitwise, and equal to the sum of whole tables
template <>
class HostStagedRows<CudaSpace> {
 public:
  /// Handles the tables of a layout that are worth it: an exchange of bits costs some tens of microseconds. A single
  /// rank has none.
  /// @param bucket elements of an operation
  HostStagedRows(nn::ParameterLayout const& layout, int ranks, Index bucket) : ranks_(ranks), bucket_(bucket) {
    Index words = 0, rows = 0;
    for (auto entry = layout.entries().rbegin(); entry != layout.entries().rend(); ++entry) {  // in the arena's order
      if (ranks == 1 || !entry->by_rows() || entry->frozen || entry->size < min_size) continue;
      tables_.push_back({entry->offset, entry->shape[0], entry->size / entry->shape[0], nullptr});
      words += kernel::TouchedRows::words_for(entry->shape[0]);
      rows += entry->shape[0];
    }
    if (tables_.empty()) return;
    found_ = memory::Buffer<std::uint64_t, CudaSpace>(words, memory::CudaResource{});
    list_ = memory::Buffer<std::int32_t, CudaSpace>(rows, memory::CudaResource{});
    pinned_bits_ = memory::PinnedResource{}.allocate(static_cast<std::size_t>(words) * sizeof(std::uint64_t));
    pinned_list_ = memory::PinnedResource{}.allocate(static_cast<std::size_t>(rows) * sizeof(std::int32_t));
    all_.resize(static_cast<std::size_t>(words * ranks));
    auto* next = reinterpret_cast<std::uint64_t*>(pinned_bits_.data());
    for (auto& table : tables_) {
      table.words = next;
      next += table.bits().size();
    }
  }

  /// Returns the tables, in the arena's order. Their bits are those of the last step.
  [[nodiscard]] std::span<kernel::TouchedRows const> tables() const noexcept { return tables_; }

  /// Queues the search for this rank's rows, after all gradients.
  void find(memory::Stream<CudaSpace> stream, float const* gradients) {
    if (tables_.empty()) return;
    auto* words = found_.data();
    for (auto const& table : tables_) {
      kernel::find_nonzero_rows<float>(stream, {gradients + table.offset, {table.rows, table.width}}, words);
      words += table.bits().size();
    }
    copy(tables_[0].words, found_.data(), pinned_bits_.bytes(), cudaMemcpyDeviceToHost, stream);
    on_host_.record(stream);
  }
  /// Sums the rows over ranks. Work that is queued afterwards sees the sums.   @collective
  template <class Communicator>
  void sum(Communicator& communicator, HostExchange<CudaSpace>& exchange, memory::Stream<CudaSpace> stream,
           float* gradients) {
    if (tables_.empty()) return;
    memory::wait_for(on_host_);
    ready_ = Clock::seconds();
    unite_touched_rows(communicator);
    pack(stream, gradients);
    split(exchange.host());
    packed_end_.record(stream);
    for (std::size_t i = 0; i < slices_.size(); ++i) exchange.copy_to_host(i, packed_end_, slices_[i]);
    exchange.run(
        communicator, operations_.size(),
        [this](std::size_t i) -> comm::CollectiveOperation& { return operations_[i]; },
        [this](std::size_t i) { return slices_[i]; }, [] {});
    exchange.end(stream);
    for_lists([&](kernel::TouchedRows const& table, std::int32_t const* rows, Index count, float* packed) {
      kernel::unpack_rows<float>(stream, packed, table.width, rows, count, gradients + table.offset);
    });
  }

  /// Adds an entry per table, for the last sum.
  void add_times(std::vector<BucketTimes>& times) const {
    for (std::size_t t = 0; t < tables_.size() && ready_ > 0; ++t) {
      auto const& table = tables_[t];
      BucketTimes of_table{static_cast<std::size_t>(table.count() * table.width) * sizeof(float), ready_, 0, 0,
                           static_cast<std::size_t>(table.rows * table.width) * sizeof(float)};
      for (std::size_t i = 0; i < operations_.size(); ++i) {
        if (table_of_[i] != t) continue;
        if (of_table.start == 0) of_table.start = operations_[i].started_seconds;
        of_table.end = operations_[i].finished_seconds;
      }
      times.push_back(of_table);
    }
  }

 private:
  static constexpr Index min_size = Index{1} << 16;

  static void copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                   memory::Stream<CudaSpace> stream) {
    memory::check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "cudaMemcpyAsync");
  }
  /// Calls f(table, list of rows in device memory, their number, their packed elements) for each table.
  template <class Function>
  void for_lists(Function const& f) {
    auto const* rows = list_.data();
    auto* packed = packed_.data();
    for (auto const& table : tables_) {
      auto const count = table.count();
      f(table, rows, count, packed);
      rows += count;
      packed += count * table.width;
    }
  }
  template <class Communicator>
  void unite_touched_rows(Communicator& communicator) {
    auto const words = all_.size() / static_cast<std::size_t>(ranks_);
    auto* const bits = tables_[0].words;
    all_gather_bytes(communicator, bits, all_.data(), words * sizeof(std::uint64_t));
    for (std::size_t at = 0; at < all_.size(); ++at) bits[at % words] |= all_[at];
  }
  void pack(memory::Stream<CudaSpace> stream, float const* gradients) {
    auto* const list = reinterpret_cast<std::int32_t*>(pinned_list_.data());
    std::size_t listed = 0;
    Index elements = 0;
    for (auto const& table : tables_) {
      auto const bits = table.bits();
      for (std::size_t word = 0; word < bits.size(); ++word)
        for (auto left = bits[word]; left != 0; left &= left - 1)
          list[listed++] = static_cast<std::int32_t>(word * 64) + std::countr_zero(left);
      elements += table.count() * table.width;
    }
    if (listed == 0) return;
    if (packed_.size() < elements)
      packed_ = memory::Buffer<float, CudaSpace>(elements + elements / 4, memory::CudaResource{});
    copy(list_.data(), list, listed * sizeof *list, cudaMemcpyHostToDevice, stream);
    for_lists([&](kernel::TouchedRows const& table, std::int32_t const* rows, Index count, float* packed) {
      kernel::pack_rows<float>(stream, gradients + table.offset, table.width, rows, count, packed);
    });
  }
  /// Splits the packed rows into operations.
  void split(float* host) {
    slices_.clear();
    operations_.clear();
    table_of_.clear();
    for_lists([&](kernel::TouchedRows const& table, std::int32_t const*, Index count, float* packed) {
      for (Index at = 0, all = count * table.width; at < all; at += bucket_) {
        slices_.push_back({packed + at, std::min(bucket_, all - at), table.offset + at});
        operations_.push_back({.data = host + slices_.back().on_host, .count = slices_.back().count});
        table_of_.push_back(static_cast<std::size_t>(&table - tables_.data()));
      }
    });
  }

  int ranks_;
  Index bucket_;
  std::vector<kernel::TouchedRows> tables_;             // with this rank's bits, then those of the union
  memory::Buffer<std::uint64_t, CudaSpace> found_;      // bits of this rank's rows
  memory::Buffer<std::int32_t, CudaSpace> list_;        // rows of the union, table by table
  memory::Buffer<float, CudaSpace> packed_;             // and their gradients
  memory::Block pinned_bits_, pinned_list_;             // copies on the host
  std::vector<std::uint64_t> all_;                      // bits of all ranks
  memory::CudaEvent on_host_, packed_end_;              // the bits are on the host; the rows are packed
  std::vector<HostExchange<CudaSpace>::Slice> slices_;  // of each operation
  std::vector<comm::CollectiveOperation> operations_;
  std::vector<std::size_t> table_of_;
  double ready_ = 0;
};

}}}  // namespace lockstep::parallel::detail
