// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Rows of all replicas, and which of them are this replica's.
template <class Context>
struct Gathered {
  VariableOf<Context, 2> rows;  ///< of all replicas, by replica
  Index first = 0;              ///< row of `rows` that is this replica's first
  Index count = 0;              ///< number of this replica's rows
};

namespace detail {

/// Numbers of rows of several replicas, which may differ.
class ReplicaRowCounts {
 public:
  template <class Context>
  ReplicaRowCounts(Context& context, ReplicaGroup& group, Index mine)
      : counts_(context.template persistent<std::vector<Index>>(&group)) {
    counts_.resize(static_cast<std::size_t>(group.size()));
    group.all_gather(mine, counts_.data());
    max_ = *std::max_element(counts_.begin(), counts_.end());
    total_ = std::accumulate(counts_.begin(), counts_.end(), Index{0});
    first_ = std::accumulate(counts_.begin(), counts_.begin() + group.rank(), Index{0});
  }
  [[nodiscard]] Index max() const noexcept { return max_; }
  [[nodiscard]] Index total() const noexcept { return total_; }
  /// Returns the index of this replica's first row.
  [[nodiscard]] Index first() const noexcept { return first_; }
  [[nodiscard]] bool equal() const noexcept { return total_ == max_ * std::ssize(counts_); }
  /// Calls f(first row in blocks of `max`, first row without gaps, rows) for each replica.
  template <class Function>
  void for_each(Function&& f) const {
    Index block = 0, first = 0;
    for (auto const rows : counts_) f(std::exchange(block, block + max_), std::exchange(first, first + rows), rows);
  }

 private:
  std::vector<Index>& counts_;
  Index max_ = 0, total_ = 0, first_ = 0;
};

}  // namespace detail

/// Concatenates the rows of all replicas' x, in rank order. Backward sums all replicas' gradients of x. For a loss
/// whose negatives are the samples of all ranks or devices, as in CLIP. For a single replica, and in evaluation,
/// returns x.
/// @shape x [rows of this replica, width]   @shape returns [rows of all, width]
/// @determinism bitwise, and equal under every policy, except gradients over NCCL   @collective in training
template <class Context>
[[nodiscard]] Gathered<Context> all_gather(Context& context, VariableOf<Context, 2> x) {
  using Scalar = typename Context::Scalar;
  using Real = typename Context::Real;
  using Copy = kernel::Copy<typename Context::Space>;
  auto* const group = context.recording() ? context.group() : nullptr;
  if (!group) return {x, 0, x.extent(0)};
  auto const width = x.extent(1);
  detail::ReplicaRowCounts const rows(context, *group, x.extent(0));
  Extents<3> const blocks{group->size(), rows.max(), width};
  auto const bytes = static_cast<std::size_t>(rows.max() * width) * sizeof(Scalar);
  auto const y = context.template variable<2>({rows.total(), width});
  if (rows.equal()) {
    group->all_gather(x.value.data, y.value.data, bytes);
  } else {
    Staging work(context);
    auto* const mine = work.template temporary<Scalar>(Extents<2>{rows.max(), width}).data;
    auto* const all = work.template temporary<Scalar>(blocks).data;
    Copy::run(context.stream(), x.value.data, mine, x.value.size());
    group->all_gather(mine, all, bytes);
    rows.for_each([&](Index block, Index first, Index count) {
      Copy::run(context.stream(), all + block * width, y.value.data + first * width, count * width);
    });
  }
  context.on_backward(y, std::tuple{}, [group, x, y, blocks](Context& c) {
    Staging back(c);
    detail::ReplicaRowCounts const counts(c, *group, x.extent(0));
    Extents<1> const flat{x.value.size()};
    auto const* dy = back.read_real(y.gradient()).data;
    auto* const sum = back.temporary(Extents<2>{blocks[1], blocks[2]}).data;
    if (!counts.equal()) {
      auto* const padded = back.temporary(blocks).data;
      counts.for_each([&](Index block, Index first, Index count) {
        Copy::run(c.stream(), dy + first * blocks[2], padded + block * blocks[2], count * blocks[2]);
      });
      dy = padded;
    }
    group->reduce_scatter(dy, sum, blocks[1] * blocks[2]);
    if (auto const dx = back.gradient_real(x))
      kernel::BinaryOperation<typename Context::Space>::template backward<kernel::FirstOperand, Real>(
          c.stream(), {sum, flat}, {}, {dx.data, flat}, dx.write);
  });
  return {y, rows.first(), x.extent(0)};
}
/// Rejects other arguments than rows at compile time.
template <class Context, class Input>
requires(!std::is_convertible_v<Input const&, VariableOf<Context, 2>>) Gathered<Context> all_gather(Context&,
                                                                                                    Input const&) {
  static_assert(!std::is_same_v<Input, Input>,
                "Lockstep: nn::all_gather takes rows, a Variable [rows, width]. For a column of numbers pass "
                "context.input(column.values.reshape(Extents<2>{batch.rows(), 1}))");
  return {};
}

}}}  // namespace lockstep::nn
