// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <exception>
#include <string>
#include <tuple>

#include <lockstep/core/index.hpp>
#include <lockstep/data/column.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns whether all of `count` numbers are finite; integers are.
template <class Value>
[[nodiscard]] bool all_finite(Value const* values, Index count) noexcept {
  if constexpr (std::floating_point<Value>)
    return std::all_of(values, values + count, [](Value value) { return std::isfinite(value); });
  else
    return true;
}

/// Returns whether the numbers of a row are finite. Padding and absent numbers do not count.
template <data::Number Value>
[[nodiscard]] bool row_is_finite(data::NumberColumn<Value, HostSpace> const& column, Index row) noexcept {
  return all_finite(column.values.data + row, 1);
}
template <data::Number Value, std::size_t Count>
[[nodiscard]] bool row_is_finite(data::ArrayColumn<Value, Count, HostSpace> const& column, Index row) noexcept {
  return all_finite(column.values.data + row * static_cast<Index>(Count), Index{Count});
}
template <data::Number Value>
[[nodiscard]] bool row_is_finite(data::OptionalColumn<Value, HostSpace> const& column, Index row) noexcept {
  return !column.present(row) || all_finite(column.values.data + row, 1);
}
template <data::Number Value, std::size_t Count>
[[nodiscard]] bool row_is_finite(data::PaddedColumn<Value, HostSpace, Count> const& column, Index row) noexcept {
  Index const width = std::max<Index>(Count, 1), length = column.values.extent[1], tokens = column.lengths(row);
  Index const first = row * length + (column.side == data::Side::start ? length - tokens : 0);
  return all_finite(column.values.data + first * width, tokens * width);
}
template <data::Number Value, std::size_t Count>
[[nodiscard]] bool row_is_finite(data::RaggedColumn<Value, HostSpace, Count> const& column, Index row) noexcept {
  Index const width = std::max<Index>(Count, 1), first = column.offsets(row);
  return all_finite(column.values.data + first * width, (column.offsets(row + 1) - first) * width);
}
[[nodiscard]] inline bool row_is_finite(data::TextColumn<HostSpace> const&, Index) noexcept { return true; }
template <class Sample, data::Sequences sequences>
[[nodiscard]] bool row_is_finite(data::Columns<Sample, HostSpace, sequences> const& batch, Index row) noexcept {
  return std::apply([row](auto const&... column) { return (row_is_finite(column, row) && ...); }, batch.columns());
}

template <class Batch>
inline constexpr bool has_columns = false;
template <class Sample, data::Sequences sequences>
inline constexpr bool has_columns<data::Columns<Sample, HostSpace, sequences>> = true;

/// A loader of batches with columns that can deliver a batch again.
template <class Loader>
concept MakesColumnsAgain = has_columns<typename Loader::Batch> && requires {
  requires Loader::repeats;
};

/// Returns a sentence about a member of a sample.
[[nodiscard]] std::string not_finite_text(std::string const& sample, int member);

/// Returns a sentence about the first sample with an infinity or a NaN in this process's micro-steps [begin, end) of an
/// epoch. Empty if there is none, or if the loader cannot make its batches again, as for a stream. Restarts the loader
/// and reads the samples again.
template <class Loader>
[[nodiscard, gnu::cold]] std::string sample_not_finite([[maybe_unused]] Loader& loader,
                                                       [[maybe_unused]] data::Split const& split,
                                                       [[maybe_unused]] Index epoch, [[maybe_unused]] Index begin,
                                                       [[maybe_unused]] Index end) {
  if constexpr (MakesColumnsAgain<Loader>) {
    try {
      loader.start(split, epoch, begin, epoch + 1);
      for (; begin < end; ++begin) {
        auto const held = loader.next();
        for (auto const& batch : held.batches())
          for (Index row = 0; row < batch.rows(); ++row) {
            int member = 0;
            auto const is_finite = [&](auto const& column) {
              bool const finite = row_is_finite(column, row);
              if (finite) ++member;
              return finite;
            };
            if (!std::apply([&](auto const&... column) { return (is_finite(column) && ...); }, batch.columns()))
              return not_finite_text(sample_name(held, batch.positions()(row)), member);
          }
      }
    } catch (std::exception const&) {  // a sample that cannot be read again is not the error to report
    }
  }
  return {};
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/sample_not_finite.ipp>
#endif
