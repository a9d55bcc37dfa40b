// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/parallel/detail/add_touched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums one replica's gradients over its shards, in turns, bit-identical to one replica per shard, in the tree of
/// core/tree_sum.hpp. Each shard's gradients are written in the replica's arena. Pending sums are kept like the digits
/// of a binary counter, so n shards need log2(n) more arenas. For steps of several micro-batches every shard also needs
/// an arena for its gradients between micro-batches.
/// @determinism bitwise
template <class Space>
class ShardSum {
 public:
  using Stream = memory::Stream<Space>;

  /// @param shards a power of two
  /// @param tables their bits must outlive this object
  [[gnu::cold]] ShardSum(int shards, Index size, std::span<kernel::TouchedRows const> tables)
      : shards_(static_cast<unsigned>(shards)), size_(size), tables_(tables.begin(), tables.end()) {
    for (unsigned n = 1; n < shards_; n *= 2) pending_.push_back(make());
  }

  [[nodiscard]] int shards() const noexcept { return static_cast<int>(shards_); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (pending_.size() + saved_.size()) * static_cast<std::size_t>(size_) * sizeof(float);
  }

  /// Saves a shard's gradients until its next micro-batch. `written` flags the parameters that have some.
  /// @shape gradients [size]   @shape totals [2]
  void save(Stream stream, int shard, float const* gradients, double const* totals,
            std::span<std::uint8_t const> written) {
    while (saved_.size() < shards_) saved_.push_back(make());
    auto& saved = saved_[static_cast<std::size_t>(shard)];
    copy_rows(tables_, saved.tables);
    saved.written.assign(written.begin(), written.end());
    copy(stream, gradients, saved.gradients.data());
    kernel::Copy<Space>::template run<double>(stream, totals, saved.totals.data(), 2);
  }
  /// Restores a shard's gradients.   @returns flags of the parameters that have some
  [[nodiscard]] std::span<std::uint8_t const> restore(Stream stream, int shard, float* gradients,
                                                      double* totals) const {
    auto const& saved = saved_[static_cast<std::size_t>(shard)];
    copy_rows(saved.tables, tables_);
    copy(stream, saved.gradients.data(), gradients);
    kernel::Copy<Space>::template run<double>(stream, saved.totals.data(), totals, 2);
    return saved.written;
  }

  /// Selects the sums of this shard. The following calls of `add` pass all of the shard's gradients.
  void begin(int shard) {
    auto const k = static_cast<unsigned>(shard);
    terms_.clear();
    auto const before = static_cast<std::size_t>(std::popcount(k));      // pending sums
    auto const complete = static_cast<std::size_t>(std::countr_one(k));  // sums that this shard completes
    for (std::size_t j = 1; j <= complete; ++j) terms_.push_back(&pending_[before - j]);
    destination_ = k + 1 < shards_ ? &pending_[before - complete] : nullptr;
  }
  /// Unites the touched rows of all operands. Call it before `add` for tables.
  void unite_touched_rows(float* gradients) {
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      for (auto* term : terms_) add_touched_rows(tables_[i], term->tables[i].words, gradients);
      for (auto* term : terms_) add_touched_rows(term->tables[i], tables_[i].words, term->gradients.data());
    }
    if (destination_) copy_rows(tables_, destination_->tables);
  }
  /// Adds elements [begin, end) of the replica's arena, all of which are written. After the last shard they hold the
  /// sum.
  void add(Stream stream, float* gradients, Index begin, Index end) const {
    sum(stream, gradients, begin, end, [](Node& node) { return node.gradients.data(); });
  }
  /// Adds loss and weight. @shape totals [2]
  void add_totals(Stream stream, double* totals) const {
    sum(stream, totals, 0, 2, [](Node& node) { return node.totals.data(); });
  }

 private:
  /// Sum over some shards.
  struct Node {
    memory::Buffer<float, Space> gradients;
    memory::Buffer<double, Space> totals;
    std::vector<std::uint64_t> rows;          // bits of touched rows, for all tables
    std::vector<kernel::TouchedRows> tables;  // the tables, with these bits
    std::vector<std::uint8_t> written;        // flags of a saved shard
  };

  [[nodiscard, gnu::cold]] Node make() const {
    std::size_t words = 0;
    for (auto const& table : tables_) words += table.bits().size();
    Node node{memory::Buffer<float, Space>(size_, memory::DefaultResource<Space>{}),
              memory::Buffer<double, Space>(2, memory::DefaultResource<Space>{}),
              std::vector<std::uint64_t>(words),
              tables_,
              {}};
    auto* next = node.rows.data();
    for (auto& table : node.tables) {
      table.words = next;
      next += table.bits().size();
    }
    return node;
  }
  void copy(Stream stream, float const* from, float* to) const {
    kernel::for_written(tables_, 0, size_, [&](Index begin, Index end) {
      kernel::Copy<Space>::template run<float>(stream, from + begin, to + begin, end - begin);
    });
  }
  template <class Value, class Of>
  void sum(Stream stream, Value* own, Index begin, Index end, Of const& of) const {
    Extents<1> const count{end - begin};
    own += begin;
    for (auto* term : terms_)
      kernel::BinaryOperation<Space>::template forward<kernel::Plus, Value>(stream, {of(*term) + begin, count},
                                                                            {own, count}, {own, count});
    if (destination_) kernel::Copy<Space>::template run<Value>(stream, own, of(*destination_) + begin, end - begin);
  }

  static void copy_rows(std::vector<kernel::TouchedRows> const& from, std::vector<kernel::TouchedRows> const& to) {
    for (std::size_t i = 0; i < from.size(); ++i)
      std::copy(from[i].bits().begin(), from[i].bits().end(), to[i].bits().begin());
  }

  unsigned shards_;
  Index size_;
  std::vector<kernel::TouchedRows> tables_;
  std::vector<Node> pending_, saved_;
  std::vector<Node*> terms_;     // operands of the sum that the current shard completes, the nearest first
  Node* destination_ = nullptr;  // destination of that sum
};

}}}  // namespace lockstep::parallel::detail
