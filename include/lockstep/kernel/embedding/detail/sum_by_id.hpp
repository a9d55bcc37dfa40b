// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the rows of scratch memory that `sum_by_id` needs for lists of this length; only the shape determines them.
[[nodiscard]] constexpr Index sum_by_id_scratch(Index list) noexcept {
  return list / static_cast<Index>(SegmentPlan::chunk) + 1;
}

/// Computes gradient[v] = the sum of dy[slot(i)] over the entries i of the planned list with id v, or adds it.
/// `row_write(v)`, which several threads call, decides between the two. Each chunk of the plan is summed separately,
/// then the chunks of a row in order, so all threads share a frequent row. Rows of absent ids stay unchanged.
/// @shape partial [sum_by_id_scratch(list), width]
template <class Scalar, class Slot, class RowWrite>
void sum_by_id(ThreadPool& pool, SegmentPlan const& plan, Slot slot, Scalar const* dy,
               TensorView<Scalar, 2, HostSpace> gradient, Scalar* partial, RowWrite row_write) {
  constexpr Index chunks_per_task = 16, rows_per_task = 128, chunk = static_cast<Index>(SegmentPlan::chunk);
  auto const width = gradient.extent[1], rows = static_cast<Index>(plan.rows.size());
  auto const* const ids = plan.rows.data();
  auto const* const first = plan.first.data();
  auto const* const begin = plan.begin.data();
  auto const* const order = plan.order.data();
  // The first chunk of a row is written to the gradient. Later chunks start a whole chunk after the previous one of
  // their row. No two of them thus begin within the same `chunk` entries of the order.
  auto const partial_row = [=](Index c) { return static_cast<Index>(begin[c]) / chunk; };
  pool.for_ranges(plan.chunks(), chunks_per_task, [=](Index from, Index end) {
    auto row = std::upper_bound(first, first + rows, static_cast<std::uint32_t>(from)) - first - 1;
    with_best_instructions([=](auto vectors) mutable {
      for (auto c = from; c < end; ++c) {
        row += c == first[row + 1];
        bool const is_first = c == first[row];
        auto const* const entries = order + begin[c];
        sum_rows_inline(
            vectors, dy, width, width, [=](Index i) { return slot(entries[i]); }, begin[c + 1] - begin[c],
            is_first ? gradient.data + ids[row] * width : partial + partial_row(c) * width,
            is_first ? row_write(static_cast<Index>(ids[row])) : Write::overwrite);
      }
    });
  });
  pool.for_ranges(rows, rows_per_task, [=](Index row, Index end) {
    for (; row < end; ++row) {
      auto const second = static_cast<Index>(first[row]) + 1, later = static_cast<Index>(first[row + 1]) - second;
      if (later > 0)
        sum_rows(partial, width, width, later, gradient.data + ids[row] * width, Write::add,
                 [=](Index i) { return partial_row(second + i); });
    }
  });
}

/// Sets the rows of ids that the planned list does not contain to zero.
template <class Scalar>
void zero_absent_rows(ThreadPool& pool, SegmentPlan const& plan, TensorView<Scalar, 2, HostSpace> gradient) {
  constexpr Index rows_per_task = 128;
  auto const width = gradient.extent[1], rows = static_cast<Index>(plan.rows.size());
  auto const* const ids = plan.rows.data();
  pool.for_ranges(gradient.extent[0], rows_per_task, [=](Index id, Index end) {
    for (auto row = std::lower_bound(ids, ids + rows, id) - ids; row < rows && ids[row] < end; ++row) {
      std::fill_n(gradient.data + id * width, (ids[row] - id) * width, Scalar{0});
      id = ids[row] + 1;
    }
    std::fill_n(gradient.data + id * width, (end - id) * width, Scalar{0});
  });
}

}}}  // namespace lockstep::kernel::detail
