// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/data/columns.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Sample type of a metric without a member, so that the message about it is the only error.
using data::detail::NoSample;
template <class Sample>
concept LacksMember = std::is_same_v<Sample, NoSample>;
template <class Argument>
concept NoMember = !std::is_member_pointer_v<Argument>;

/// Replaces the member that a metric reads. Rejects a metric without it at compile time.
template <class Member>
[[nodiscard]] Member required_member() {
  static_assert(!std::is_same_v<Member, Member>,
                "Lockstep: a metric takes the sample's member with the label or the target: "
                "train::Accuracy{&Sample::label}; see docs/reference/trainer.md");
  return nullptr;
}

/// Replaces a metric's number of classes or places. Rejects a metric without it at compile time.
template <class Label>
[[nodiscard]] Index required_number() {
  static_assert(!std::is_same_v<Label, Label>,
                "Lockstep: this metric takes a number behind the member, of classes or of k: "
                "train::F1{&Sample::label, 10}, train::TopKAccuracy{&Sample::label, 5}");
  return 0;
}

}}}  // namespace lockstep::train::detail
