// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/train/metrics/detail/paired_rows.hpp>
#include <lockstep/train/metrics/detail/rank_of_label.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void PairedRows::begin_pair(char const* metric, Index position, Index width) {
  expect<ShapeError>(positions_.empty() || width == width_, [&] {
    return std::string(metric) + ": the model predicts rows of width " + std::to_string(width) +
           " and predicted rows of width " + std::to_string(width_) + " before; all rows must be equally long";
  });
  width_ = width;
  positions_.push_back(position);
}

LOCKSTEP_COLD_INLINE std::string PairedRows::samples() const {
  std::string bytes;
  auto const append = [&](auto const* from, std::size_t count) {
    bytes.append(reinterpret_cast<char const*>(from), count * sizeof *from);
  };
  std::array<Index, 3> const sizes{size(), width_, std::ssize(labels_)};
  append(sizes.data(), sizes.size());
  append(positions_.data(), positions_.size());
  append(queries_.data(), queries_.size());
  append(items_.data(), items_.size());
  append(labels_.data(), labels_.size());
  return bytes;
}

LOCKSTEP_COLD_INLINE void PairedRows::add_samples(std::string_view bytes) {
  std::array<Index, 3> sizes{};
  auto const read = [&](auto* to, std::size_t numbers) {
    if (numbers > 0) std::memcpy(to, bytes.data(), numbers * sizeof *to);
    bytes.remove_prefix(numbers * sizeof *to);
  };
  auto const extend = [&](auto& rows, Index numbers) {
    auto const before = rows.size();
    rows.resize(before + static_cast<std::size_t>(numbers));
    read(rows.data() + before, static_cast<std::size_t>(numbers));
  };
  read(sizes.data(), sizes.size());
  auto const [count, width, labels] = sizes;
  if (count == 0) return;
  width_ = width;
  extend(positions_, count);
  extend(queries_, count * width);
  extend(items_, labels > 0 ? 0 : count * width);
  extend(labels_, labels);
}

LOCKSTEP_COLD_INLINE std::vector<std::size_t> PairedRows::order() const {
  std::vector<std::size_t> order(static_cast<std::size_t>(size()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return positions_[a] < positions_[b]; });
  return order;
}

template <class Function>
void PairedRows::for_products(char const* metric, std::vector<std::size_t> const& order,
                              std::vector<float> const& of_items, Function const& f) const {
  Index const pairs = size(), block = 64;
  auto const sorted = [&](std::vector<float> const& rows) {
    std::vector<float> out;
    out.reserve(rows.size());
    for (auto const pair : order) {
      auto const first = rows.begin() + static_cast<std::ptrdiff_t>(pair) * width_;
      out.insert(out.end(), first, first + width_);
    }
    return out;
  };
  auto const queries = sorted(queries_), items = sorted(of_items);
  std::vector<float> scores(static_cast<std::size_t>(std::min(block, pairs) * pairs));
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  for (Index first = 0; first < pairs; first += block) {
    Index const rows = std::min(block, pairs - first);
    kernel::Gemm<HostSpace>::multiply<float>(stream, 1, {queries.data() + first * width_, {rows, width_}},
                                             kernel::Transpose::no, {items.data(), {pairs, width_}},
                                             kernel::Transpose::yes, 0, {scores.data(), {rows, pairs}});
    for (Index row = 0; row < rows; ++row) {
      auto const* const here = scores.data() + row * pairs;
      expect<DataError>(std::none_of(here, here + pairs, [](float score) { return std::isnan(score); }), [&] {
        return std::string(metric) + ": a dot product of the predicted rows is nan, for the query at position " +
               std::to_string(positions_[order[static_cast<std::size_t>(first + row)]]) +
               " of the evaluation; check the data and the parameters for infinities and NaN";
      });
      f(first + row, here);
    }
  }
}

LOCKSTEP_COLD_INLINE Index PairedRows::found(char const* metric, Index k) const {
  Index found = 0;
  for_products(metric, order(), items_, [&](Index row, float const* scores) {
    found += rank_of_label(metric, scores, size(), row) < k ? 1 : 0;
  });
  return found;
}

LOCKSTEP_COLD_INLINE PairedRows::Neighbors PairedRows::neighbors(char const* metric, Index k) const {
  Neighbors counts;
  auto const pairs = order();
  auto const label = [&](Index row) { return labels_[pairs[static_cast<std::size_t>(row)]]; };
  for_products(metric, pairs, queries_, [&](Index row, float const* scores) {
    std::optional<float> best;  // of its class
    for (Index i = 0; i < size(); ++i)
      if (i != row && label(i) == label(row) && !(best && *best >= scores[i])) best = scores[i];
    if (!best) return;
    Index before = 0;
    for (Index i = 0; i < size(); ++i) before += label(i) != label(row) && scores[i] >= *best ? 1 : 0;
    ++counts.rows;
    counts.found += before < k ? 1 : 0;
  });
  return counts;
}

}}}  // namespace lockstep::train::detail
