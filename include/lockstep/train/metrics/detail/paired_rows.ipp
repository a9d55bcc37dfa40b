// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>

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
  auto const count = size();
  append(&count, 1);
  append(&width_, 1);
  append(positions_.data(), positions_.size());
  append(queries_.data(), queries_.size());
  append(items_.data(), items_.size());
  return bytes;
}

LOCKSTEP_COLD_INLINE void PairedRows::add_samples(std::string_view bytes) {
  Index count = 0, width = 0;
  auto const read = [&](auto* to, std::size_t numbers) {
    if (numbers > 0) std::memcpy(to, bytes.data(), numbers * sizeof *to);
    bytes.remove_prefix(numbers * sizeof *to);
  };
  auto const extend = [&](auto& rows, Index numbers) {
    auto const before = rows.size();
    rows.resize(before + static_cast<std::size_t>(numbers));
    read(rows.data() + before, static_cast<std::size_t>(numbers));
  };
  read(&count, 1);
  read(&width, 1);
  if (count == 0) return;
  width_ = width;
  extend(positions_, count);
  extend(queries_, count * width);
  extend(items_, count * width);
}

LOCKSTEP_COLD_INLINE Index PairedRows::found(char const* metric, Index k) const {
  Index const pairs = size(), block = 64;
  std::vector<std::size_t> order(static_cast<std::size_t>(pairs));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return positions_[a] < positions_[b]; });
  auto const sorted = [&](std::vector<float> const& rows) {
    std::vector<float> out;
    out.reserve(rows.size());
    for (auto const pair : order) {
      auto const first = rows.begin() + static_cast<std::ptrdiff_t>(pair) * width_;
      out.insert(out.end(), first, first + width_);
    }
    return out;
  };
  auto const queries = sorted(queries_), items = sorted(items_);
  std::vector<float> scores(static_cast<std::size_t>(std::min(block, pairs) * pairs));
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  Index found = 0;
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
      found += rank_of_label(metric, here, pairs, first + row) < k ? 1 : 0;
    }
  }
  return found;
}

}}}  // namespace lockstep::train::detail
