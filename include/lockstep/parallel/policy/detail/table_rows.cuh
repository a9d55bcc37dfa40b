// SPDX-License-Identifier: Apache-2.0
#pragma once
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
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Touched rows of large tables' gradients, which are dense in device memory. A row is touched if it is not +0. Ranks
/// unite the bits of their touched rows. Each then packs the rows of the union, which are summed, and unpacks them. The
/// other rows are +0 on all ranks, and so are their sums.
class TableRows {
 public:
  /// Least number of elements of a table whose exchange of bits, some tens of microseconds, can be worth it.
  static constexpr Index min_size = Index{1} << 16;

  /// Handles the tables of a layout that have at least `least` elements. A single rank has none.
  /// @param type in which rows are sent
  TableRows(nn::ParameterLayout const& layout, int ranks, ElementType type, Index least) : ranks_(ranks), type_(type) {
    Index words = 0, rows = 0;
    for (auto entry = layout.entries().rbegin(); entry != layout.entries().rend(); ++entry) {  // in the arena's order
      if (ranks == 1 || !entry->by_rows() || entry->frozen || entry->size < least) continue;
      tables_.push_back({entry->offset, entry->shape[0], entry->size / entry->shape[0], nullptr});
      words += kernel::TouchedRows::words_for(entry->shape[0]);
      rows += entry->shape[0];
    }
    if (tables_.empty()) return;
    bits_.resize(static_cast<std::size_t>(words));
    listed_.resize(tables_.size());
    list_ = memory::Buffer<std::int32_t, CudaSpace>(rows, memory::CudaResource{});
    pinned_list_ = memory::PinnedResource{}.allocate(static_cast<std::size_t>(rows) * sizeof(std::int32_t));
    auto* next = bits_.data();
    for (auto& table : tables_) {
      table.words = next;
      next += table.bits().size();
    }
  }

  /// Returns the tables, in the arena's order. Their bits are those of the last step's union.
  [[nodiscard]] std::span<kernel::TouchedRows const> tables() const noexcept { return tables_; }

  /// Adds an entry per table, for the last sum.
  void add_times(std::vector<BucketTimes>& times) const {
    for (std::size_t t = 0; t < tables_.size() && ready_ > 0; ++t) {
      auto const size = static_cast<std::size_t>(tables_[t].rows * tables_[t].width);
      BucketTimes of_table{0, ready_, 0, 0, size * size_of(type_)};
      for (std::size_t i = 0; i < operations_.size(); ++i) {
        if (table_of_[i] != t) continue;
        of_table.bytes += static_cast<std::size_t>(operations_[i].count) * size_of(type_);
        if (of_table.start == 0) of_table.start = operations_[i].started_seconds;
        of_table.end = operations_[i].finished_seconds;
      }
      times.push_back(of_table);
    }
  }

 protected:
  static void copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                   memory::Stream<CudaSpace> stream) {
    memory::check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "cudaMemcpyAsync");
  }
  /// Returns the number of words and bytes that one rank's bits take.
  [[nodiscard]] Index words() const noexcept { return std::ssize(bits_); }
  [[nodiscard]] std::size_t bytes_of_bits() const noexcept { return bits_.size() * sizeof(std::uint64_t); }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] ElementType type() const noexcept { return type_; }

  /// Queues the search for this rank's rows, after all gradients.
  /// @shape found [words()] in device memory
  void find(memory::Stream<CudaSpace> stream, float const* gradients, std::uint64_t* found) const {
    for (auto const& table : tables_) {
      kernel::find_nonzero_rows<float>(stream, {gradients + table.offset, {table.rows, table.width}}, found);
      found += table.bits().size();
    }
  }
  /// Begins a sum: all gradients are complete now.
  void begin() {
    ready_ = Clock::seconds();
    operations_.clear();
    table_of_.clear();
  }
  /// Unites the bits of all ranks, and copies the list of their rows to the device. Does not list a table with more
  /// touched rows than one in `share`.
  /// @returns the number of elements of listed rows   @shape found [ranks, words()]
  Index unite(memory::Stream<CudaSpace> stream, std::uint64_t const* found, Index share) {
    for (std::size_t word = 0; word < bits_.size(); ++word) {
      bits_[word] = 0;
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank)
        bits_[word] |= found[rank * bits_.size() + word];
    }
    auto* const list = reinterpret_cast<std::int32_t*>(pinned_list_.data());
    std::size_t count = 0;
    Index elements = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      auto const& table = tables_[t];
      listed_[t] = table.count();
      if (listed_[t] > table.rows / share) listed_[t] = whole;
      if (is_whole(t)) continue;
      elements += listed_[t] * table.width;
      for (Index word = 0; word < std::ssize(table.bits()); ++word)
        for (auto left = table.words[word]; left != 0; left &= left - 1)
          list[count++] = static_cast<std::int32_t>(word * 64) + std::countr_zero(left);
    }
    if (count > 0) copy(list_.data(), list, count * sizeof *list, cudaMemcpyHostToDevice, stream);
    return elements;
  }
  /// Returns whether the last union did not list this table.
  [[nodiscard]] bool is_whole(std::size_t t) const noexcept { return listed_[t] == whole; }
  /// Calls f(number of the table, list of rows in device memory, number of rows, first element among the packed ones)
  /// for each listed table.
  template <class Function>
  void for_lists(Function const& f) const {
    auto const* rows = list_.data();
    Index packed = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      if (is_whole(t)) continue;
      f(t, rows, listed_[t], packed);
      rows += listed_[t];
      packed += listed_[t] * tables_[t].width;
    }
  }
  void pack(memory::Stream<CudaSpace> stream, float const* gradients, float* packed) const {
    for_lists([&](std::size_t t, std::int32_t const* rows, Index count, Index at) {
      auto const& table = tables_[t];
      kernel::pack_rows<float>(stream, gradients + table.offset, table.width, rows, count, packed + at);
    });
  }
  void unpack(memory::Stream<CudaSpace> stream, float const* packed, float* gradients) const {
    for_lists([&](std::size_t t, std::int32_t const* rows, Index count, Index at) {
      auto const& table = tables_[t];
      kernel::unpack_rows<float>(stream, packed + at, table.width, rows, count, gradients + table.offset);
    });
  }
  /// Adds an operation of a table's sum. Start it once all are added: they move.
  void add(std::size_t t, void* data, Index count) {
    operations_.push_back({.type = type_, .data = data, .count = count});
    table_of_.push_back(t);
  }
  [[nodiscard]] std::span<comm::CollectiveOperation> operations() noexcept { return operations_; }

 private:
  static constexpr Index whole = -1;

  int ranks_;
  ElementType type_;
  std::vector<kernel::TouchedRows> tables_;
  std::vector<std::uint64_t> bits_;               // of the tables
  std::vector<Index> listed_;                     // rows of each table, or `whole`
  memory::Buffer<std::int32_t, CudaSpace> list_;  // rows of the union, table by table
  memory::Block pinned_list_;                     // its copy on the host
  std::vector<comm::CollectiveOperation> operations_;
  std::vector<std::size_t> table_of_;  // of each operation
  double ready_ = 0;
};

}}}  // namespace lockstep::parallel::detail
