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

template <class T>
bool all_finite(T const&) noexcept {
  return true;  // holds no floating-point number
}
template <std::floating_point T>
bool all_finite(T const& value) noexcept {
  return std::isfinite(value);
}
template <class T>
bool all_finite(std::optional<T> const& value) noexcept;
template <class T, std::size_t Count>
bool all_finite(std::array<T, Count> const& values) noexcept;
template <class T>
bool all_finite(std::vector<T> const& values) noexcept;
template <Aggregate T>
bool all_finite(T const& sample) noexcept;

template <class T>
bool all_finite(std::optional<T> const& value) noexcept {
  return !value || all_finite(*value);
}
template <class T, std::size_t Count>
bool all_finite(std::array<T, Count> const& values) noexcept {
  for (auto const& each : values)
    if (!all_finite(each)) return false;
  return true;
}
template <class T>
bool all_finite(std::vector<T> const& values) noexcept {
  for (auto const& each : values)
    if (!all_finite(each)) return false;
  return true;
}
template <Aggregate T>
bool all_finite(T const& sample) noexcept {
  return std::apply([](auto const&... member) { return (all_finite(member) && ...); }, members(sample));
}

}  // namespace detail

/// Checks each sample of a dataset when it is read. A sample with an infinity or a NaN is an error, which the loader
/// raises at its batch or skips. Does not read samples directly into batches, even if the dataset can.
/// @throws DataError from `get`; names the member, counted from 0
template <Dataset D>
class FiniteCheck : public detail::DatasetAdapter<D> {
  using Adapter = detail::DatasetAdapter<D>;
  static_assert(Aggregate<SampleOf<D>>, "Lockstep: the samples of FiniteCheck are aggregates");

 public:
  using Worker = detail::AdapterWorker<FiniteCheck, D>;

  explicit FiniteCheck(D dataset) : Adapter(std::move(dataset)) {}

  [[nodiscard]] decltype(auto) get(Index i) const { return read(dataset_, i); }
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<D> {
    return read(dataset_, i, key);
  }
  /// Returns the next sample of a stream's lane, as Streamed::take.
  [[nodiscard]] auto take(SampleKey const& key) const requires detail::SequentialAccess<D> {
    auto sample = dataset_.take(key);
    if (sample) check(*sample, key.position);
    return sample;
  }
  /// Returns a reader for one worker. Valid while this dataset lives.
  [[nodiscard]] Worker worker() const requires HasWorkers<D> { return Worker(*this, dataset_); }

 private:
  friend Worker;
  using Adapter::dataset_;

  template <class Reader, class... Key>
  [[nodiscard]] decltype(auto) read(Reader& reader, Index i, Key const&... key) const {
    decltype(auto) sample = reader.get(i, key...);
    check(sample, i);
    return sample;
  }
  void check(SampleOf<D> const& sample, Index i) const {
    int number = 0;
    auto const look = [&](auto const& member) {
      if (!detail::all_finite(member))
        throw DataError(detail::sample_name(dataset_, i) + ": member " + std::to_string(number) +
                        " holds an infinity or a NaN; correct the data, or skip such samples (on_failure)");
      ++number;
    };
    std::apply([&](auto const&... member) { (look(member), ...); }, members(sample));
  }
};

/// Former name, for one version.
template <Dataset D>
class [[deprecated("data::FiniteCheck")]] Finite
    : public FiniteCheck<D>{public : explicit Finite(D dataset) : FiniteCheck<D>(std::move(dataset)){}};

}}}  // namespace lockstep::data
