// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns true. Rejects optional members of a dataset that a loader cannot call, and would ignore, at compile time.
template <class Source>
consteval bool expect_optional_members() {
  static_assert(
      DrawsSamples<Source> || !(
                                  requires(Source & dataset, Index i, SampleKey const& key) { dataset.get(i, key); } ||
                                  requires(Source & dataset, Index i, SampleKey & key) { dataset.get(i, key); } ||
                                  requires(Source & dataset, Index i, SampleKey const& key) { dataset.get(key, i); }),
      "Lockstep: a dataset's get(i, key), which draws random numbers, is const, takes a data::SampleKey "
      "const& as its second argument, and returns the type of get(i); see docs/reference/dataset.md");
  static_assert(
      HasWorkers<Source> || !requires(Source & dataset) { dataset.worker(); },
      "Lockstep: a dataset's worker() is const and returns a reader whose get(i) returns the type of the "
      "dataset's; see docs/reference/dataset.md");
  static_assert(
      NamesSamples<Source> || !requires(Source & dataset, Index i) { dataset.name(i); },
      "Lockstep: a dataset's name(i) is const and returns a std::string; see docs/reference/dataset.md");
  static_assert(
      HasFingerprint<Source> || !requires(Source & dataset) { dataset.fingerprint(); },
      "Lockstep: a dataset's fingerprint() is const and returns a std::uint64_t; see "
      "docs/reference/dataset.md");
  static_assert(
      GroupedDataset<Source> || !requires(Source & dataset, Index i) { dataset.group(i); },
      "Lockstep: a dataset with groups has groups() and group(i), both const; see docs/reference/dataset.md");
  return true;
}

}}}  // namespace lockstep::data::detail
