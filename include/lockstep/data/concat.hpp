// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/part.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Datasets of the same sample type, one after the other. What all of them offer, it offers: references, extents, rows
/// read in place, groups. Those that draw samples get the loader's key.
template <Dataset First, Dataset... Rest>
class Concat {
  static_assert((std::same_as<SampleOf<First>, SampleOf<Rest>> && ...),
                "Lockstep: the datasets of Concat have samples of different types; convert them with data::Transform");
  using Got = std::conditional_t<(std::same_as<decltype(std::declval<First const&>().get(Index{})),
                                               decltype(std::declval<Rest const&>().get(Index{}))> &&
                                  ...),
                                 decltype(std::declval<First const&>().get(Index{})), SampleOf<First>>;

 public:
  using Sample = SampleOf<First>;

  explicit Concat(First first, Rest... rest) : parts_(std::move(first), std::move(rest)...) {
    std::size_t part = 0;
    std::apply([&](auto const&... each) { ((ends_[part + 1] = ends_[part] + each.size(), ++part), ...); }, parts_);
  }

  [[nodiscard]] Index size() const noexcept { return ends_.back(); }
  [[nodiscard]] Got get(Index i) const {
    return visit<Got>(i, [](auto const& part, Index k) -> Got { return part.get(k); });
  }
  [[nodiscard]] Got get(Index i, SampleKey const& key) const
      requires(DrawsSamples<First> || ... || DrawsSamples<Rest>) {
    return visit<Got>(i, [&](auto const& part, Index k) -> Got { return detail::get_of_part(part, k, key); });
  }
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const
      requires(detail::ReadsInPlace<First> && (detail::ReadsInPlace<Rest> && ...)) {
    return visit<SampleExtent<Sample>>(i, [](auto const& part, Index k) { return part.extent(k); });
  }
  void read_into(Index i, Row<Sample> row) const
      requires(detail::ReadsInPlace<First> && (detail::ReadsInPlace<Rest> && ...)) {
    visit<void>(i, [&](auto const& part, Index k) { part.read_into(k, row); });
  }
  [[nodiscard]] std::string name(Index i) const {
    return visit<std::string>(i, [](auto const& part, Index k) { return detail::name_of_part(part, k); });
  }
  [[nodiscard]] std::uint64_t fingerprint() const {
    return std::apply([](auto const&... part) { return mix(detail::fingerprint_of_part(part)..., std::uint64_t{0}); },
                      parts_);
  }

  [[nodiscard]] Index groups() const requires(GroupedDataset<First>&&...&& GroupedDataset<Rest>) {
    return std::apply([](auto const&... part) { return (Index{0} + ... + static_cast<Index>(part.groups())); }, parts_);
  }
  [[nodiscard]] Index group(Index i) const requires(GroupedDataset<First>&&...&& GroupedDataset<Rest>) {
    Index before = 0;
    std::size_t part = 0;
    std::apply(
        [&](auto const&... each) { ((before += i < ends_[++part] ? 0 : static_cast<Index>(each.groups())), ...); },
        parts_);
    return before + visit<Index>(i, [](auto const& each, Index k) -> Index { return each.group(k); });
  }

 private:
  template <class R, std::size_t Part = 0, class F>
  R visit(Index i, F&& f) const {
    if constexpr (Part == sizeof...(Rest)) {
      return f(std::get<Part>(parts_), i - ends_[Part]);
    } else {
      return i < ends_[Part + 1] ? f(std::get<Part>(parts_), i - ends_[Part])
                                 : visit<R, Part + 1>(i, std::forward<F>(f));
    }
  }

  std::tuple<First, Rest...> parts_;
  std::array<Index, sizeof...(Rest) + 2> ends_{};
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
