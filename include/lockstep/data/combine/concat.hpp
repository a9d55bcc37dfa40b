// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/part.hpp>
#include <lockstep/data/detail/parts.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Concatenates datasets of one sample type: `Concat{a, b, c}` of types that may differ, or `Concat{shards}` of a
/// std::vector of any number of one type. Offers references, extents, rows read in place and groups if all its datasets
/// offer them. Has readers for the loader's workers if one dataset has them. Datasets that draw samples get the
/// loader's key. Copies share the datasets.
/// @throws ConfigError if the vector is empty
template <class First, class... Rest>
class Concat {
  using Of = detail::PartsOf<First, Rest...>;
  static_assert(Of::datasets, "Lockstep: Concat is made of datasets, or of one std::vector of datasets of one type");
  static_assert(Of::alike,
                "Lockstep: the datasets of Concat have samples of different types; convert them with data::Transform");
  static_assert(Of::anywhere,
                "Lockstep: Concat finds samples by number, but a stream (Streamed) yields samples in order; give "
                "the stream one more lane for each part");
  using Parts = typename Of::Parts;
  using Got = typename Of::Got;
  struct Held;

 public:
  using Sample = std::remove_cvref_t<Got>;

  explicit Concat(First first, Rest... rest) : held_(hold(Parts(std::move(first), std::move(rest)...))) {}

  [[nodiscard]] Index size() const noexcept { return held_->ends.back(); }
  [[nodiscard]] Got get(Index i) const {
    return visit<Got>(i, [](auto const& part, Index k) -> Got { return part.get(k); });
  }
  [[nodiscard]] Got get(Index i, SampleKey const& key) const requires(Of::draw) {
    return visit<Got>(i, [&](auto const& part, Index k) -> Got { return detail::get_of_part(part, k, key); });
  }
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const requires(Of::in_place) {
    return visit<SampleExtent<Sample>>(i, [](auto const& part, Index k) { return part.extent(k); });
  }
  void read_into(Index i, Row<Sample> row) const requires(Of::in_place) {
    visit<void>(i, [&](auto const& part, Index k) { part.read_into(k, row); });
  }
  /// Reads with a reader of each dataset.
  class Worker {
   public:
    [[nodiscard]] Got get(Index i) {
      return visit<Got>(i, [](auto& part, Index k) -> Got { return part.get(k); });
    }
    [[nodiscard]] Got get(Index i, SampleKey const& key) requires(Of::draw) {
      return visit<Got>(i, [&](auto& part, Index k) -> Got { return part.get(k, key); });
    }
    [[nodiscard]] SampleExtent<Sample> extent(Index i) requires(Of::in_place) {
      return visit<SampleExtent<Sample>>(i, [](auto& part, Index k) { return part.extent(k); });
    }
    void read_into(Index i, Row<Sample> row) requires(Of::in_place) {
      visit<void>(i, [&](auto& part, Index k) { part.read_into(k, row); });
    }

   private:
    friend Concat;
    explicit Worker(Concat const& of) : held_(of.held_), readers_(detail::readers_of(held_->parts)) {}
    template <class R, class F>
    R visit(Index i, F&& f) {
      auto const part = held_->part(i);
      return detail::with_part<R>(readers_, part, [&](auto& each) -> R { return f(each, i - held_->begin(part)); });
    }

    std::shared_ptr<Held const> held_;
    typename Of::Readers readers_;
  };
  [[nodiscard]] Worker worker() const requires(Of::have_workers) { return Worker(*this); }
  [[nodiscard]] std::string name(Index i) const {
    auto const of = held_->part(i);
    return visit<std::string>(i, [&](auto const& part, Index k) { return detail::name_in_part(part, k, of); });
  }
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = 0;
    bool first = true;
    detail::for_each_part(held_->parts, [&](auto const& part) {
      hash = (std::exchange(first, false) ? 0 : mix(hash)) ^ detail::fingerprint_of_part(part);
    });
    return mix(hash, 0);
  }

  [[nodiscard]] Index groups() const requires(Of::grouped) { return held_->groups.back(); }
  [[nodiscard]] Index group(Index i) const requires(Of::grouped) {
    return held_->groups[held_->part(i)] +
           visit<Index>(i, [](auto const& each, Index k) -> Index { return each.group(k); });
  }

 private:
  struct Held {
    Parts parts;
    std::vector<Index> ends{};     // end of each part
    std::vector<Index> groups{0};  // number of groups before each part, then of all

    [[nodiscard]] std::size_t part(Index i) const noexcept {
      return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end() - 1, i) - ends.begin());
    }
    [[nodiscard]] Index begin(std::size_t part) const noexcept { return part == 0 ? 0 : ends[part - 1]; }
  };
  static std::shared_ptr<Held const> hold(Parts parts) {
    auto out = std::make_shared<Held>(Held{std::move(parts)});
    Index end = 0;
    detail::for_each_part(out->parts, [&](auto const& part) {
      out->ends.push_back(end += static_cast<Index>(part.size()));
      if constexpr (Of::grouped) out->groups.push_back(out->groups.back() + static_cast<Index>(part.groups()));
    });
    if (out->ends.empty()) throw ConfigError("Concat: the vector of datasets is empty; give at least one");
    return out;
  }
  template <class R, class F>
  R visit(Index i, F&& f) const {
    auto const part = held_->part(i);
    return detail::with_part<R>(held_->parts, part,
                                [&](auto const& each) -> R { return f(each, i - held_->begin(part)); });
  }

  std::shared_ptr<Held const> held_;
};

}}}  // namespace lockstep::data
