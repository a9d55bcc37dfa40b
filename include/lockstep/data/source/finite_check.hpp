// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

template <class Value>
bool all_finite(Value const&) noexcept {
  return true;  // holds no floating-point number
}
template <std::floating_point Value>
bool all_finite(Value const& value) noexcept {
  return std::isfinite(value);
}
template <class Value>
bool all_finite(std::optional<Value> const& value) noexcept;
template <class Value, std::size_t Count>
bool all_finite(std::array<Value, Count> const& values) noexcept;
template <class Value>
bool all_finite(std::vector<Value> const& values) noexcept;
template <Aggregate Value>
bool all_finite(Value const& sample) noexcept;

template <class Value>
bool all_finite(std::optional<Value> const& value) noexcept {
  return !value || all_finite(*value);
}
template <class Value, std::size_t Count>
bool all_finite(std::array<Value, Count> const& values) noexcept {
  for (auto const& each : values)
    if (!all_finite(each)) return false;
  return true;
}
template <class Value>
bool all_finite(std::vector<Value> const& values) noexcept {
  for (auto const& each : values)
    if (!all_finite(each)) return false;
  return true;
}
template <Aggregate Value>
bool all_finite(Value const& sample) noexcept {
  return std::apply([](auto const&... member) { return (all_finite(member) && ...); }, members(sample));
}

}  // namespace detail

/// Checks each sample of a dataset when it is read. A sample with an infinity or a NaN is an error, which the loader
/// raises at its batch or skips. Does not read samples directly into batches, even if the dataset can.
/// @throws DataError from `get`; names the member, counted from 0
template <Dataset Source>
class FiniteCheck : public detail::DatasetAdapter<Source> {
  using Adapter = detail::DatasetAdapter<Source>;
  static_assert(Aggregate<SampleOf<Source>>, "Lockstep: the samples of FiniteCheck are aggregates");

 public:
  using Worker = detail::AdapterWorker<FiniteCheck, Source>;  ///< reader of one worker

  /// Takes the dataset, or the stream, to check.
  explicit FiniteCheck(Source dataset) : Adapter(std::move(dataset)) {}

  /// Returns sample i if all its numbers are finite.
  [[nodiscard]] decltype(auto) get(Index i) const { return read(dataset_, i); }
  /// Returns sample i, with the key's random numbers, if all its numbers are finite.
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<Source> {
    return read(dataset_, i, key);
  }
  /// Returns the next sample of a stream's lane, as Streamed::take.
  [[nodiscard]] auto take(SampleKey const& key) const requires detail::SequentialAccess<Source> {
    auto sample = dataset_.take(key);
    if (sample) check(*sample, key.position);
    return sample;
  }
  /// Returns a reader for one worker. Valid while this dataset lives.
  [[nodiscard]] Worker worker() const requires HasWorkers<Source> { return Worker(*this, dataset_); }

 private:
  friend Worker;
  using Adapter::dataset_;

  template <class Reader, class... Key>
  [[nodiscard]] decltype(auto) read(Reader& reader, Index i, Key const&... key) const {
    decltype(auto) sample = reader.get(i, key...);
    check(sample, i);
    return sample;
  }
  void check(SampleOf<Source> const& sample, Index i) const {
    int number = 0;
    auto const look = [&](auto const& member) {
      if (!detail::all_finite(member))
        throw DataError(detail::sample_name(dataset_, i) + ": member " + std::to_string(number) +
                        " holds an infinity or a NaN; correct the data");
      ++number;
    };
    std::apply([&](auto const&... member) { (look(member), ...); }, members(sample));
  }
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // clang reports the class's own constructor
/// @cond
// Former name, for one version; hidden from the reference.
template <Dataset Source>
class [[deprecated("data::FiniteCheck")]] Finite
    : public FiniteCheck<Source>{public : explicit Finite(Source dataset) : FiniteCheck<Source>(std::move(dataset)){}};
/// @endcond
#pragma GCC diagnostic pop

}}}  // namespace lockstep::data
