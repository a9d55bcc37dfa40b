// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/combine/k_fold.hpp>
#include <lockstep/data/detail/samples_by_class.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE std::vector<Index> assign_folds(Index samples, Index folds, std::uint64_t seed,
                                                     std::vector<Index> const& groups,
                                                     std::vector<std::int32_t> const& classes) {
  if (folds < 2)
    throw ConfigError("k_fold: the number of folds is " + std::to_string(folds) + "; it must be at least 2");
  auto const count = static_cast<std::size_t>(samples);
  std::vector<std::size_t> class_of(count);  // numbered without gaps
  std::vector<Index> total{samples};         // of each class
  if (!classes.empty()) {
    total.clear();
    for (auto const& members : samples_by_class("k_fold", classes, samples)) {
      for (auto const i : members) class_of[static_cast<std::size_t>(i)] = total.size();
      total.push_back(std::ssize(members));
    }
  }
  auto const group_of = [&](Index i) { return groups.empty() ? i : groups[static_cast<std::size_t>(i)]; };
  std::vector<Index> sorted(count);  // by group
  std::iota(sorted.begin(), sorted.end(), Index{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](Index a, Index b) { return group_of(a) < group_of(b); });
  std::vector<std::span<Index const>> by_group;
  for (auto begin = sorted.cbegin(); begin != sorted.cend();) {
    auto const end = std::find_if(begin, sorted.cend(), [&](Index i) { return group_of(i) != group_of(*begin); });
    by_group.emplace_back(begin, end);
    begin = end;
  }
  auto const unit_count = std::ssize(by_group);
  if (unit_count < folds)
    throw DataError("k_fold: " + std::to_string(unit_count) + (groups.empty() ? " sample" : " group") +
                    (unit_count == 1 ? "" : "s") + " cannot be divided into " + std::to_string(folds) +
                    " folds; choose fewer folds, or give more data");

  std::vector<std::span<Index const>> units(by_group.size());
  KeyedPermutation const permutation(unit_count, mix(mix("lockstep.data.k_fold"), seed));
  for (Index k = 0; k < unit_count; ++k)
    units[static_cast<std::size_t>(permutation(k))] = by_group[static_cast<std::size_t>(k)];
  std::stable_sort(units.begin(), units.end(), [](auto a, auto b) { return a.size() > b.size(); });

  std::vector<std::vector<Index>> in_fold(static_cast<std::size_t>(folds), std::vector<Index>(total.size()));
  std::vector<Index> size(static_cast<std::size_t>(folds));
  std::vector<Index> out(count);
  for (auto const unit : units) {
    std::map<std::size_t, Index> own;  // samples of each class
    for (auto const i : unit) ++own[class_of[static_cast<std::size_t>(i)]];
    std::size_t best = 0;
    double best_growth = 0;
    for (std::size_t fold = 0; fold < in_fold.size(); ++fold) {
      double growth = 0;  // of the sum over folds and classes of the squared share of the class; integers are exact
      for (auto const& [c, n] : own)
        growth += static_cast<double>(n * (2 * in_fold[fold][c] + n)) / static_cast<double>(total[c] * total[c]);
      if (fold == 0 || growth < best_growth || (growth == best_growth && size[fold] < size[best])) {
        best = fold;
        best_growth = growth;
      }
    }
    for (auto const& [c, n] : own) in_fold[best][c] += n;
    size[best] += std::ssize(unit);
    for (auto const i : unit) out[static_cast<std::size_t>(i)] = static_cast<Index>(best);
  }
  return out;
}

}}}  // namespace lockstep::data::detail
