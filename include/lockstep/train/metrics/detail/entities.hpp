// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iterator>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// A tag of a token: the place in an entity, and the entity's type.
struct EntityTag {
  char place = 'O';  ///< O outside, B begin, I inside, E end, S single
  int type = 0;      ///< number of the type; equal types have equal numbers
};

/// Returns the tags that the names say, such as "O", "B-PER" and "I-PER".
/// @throws ConfigError, naming the class, for a name that is no tag
[[nodiscard]] std::vector<EntityTag> entity_tags(std::vector<std::string> const& names);

/// The entities of a sequence of tags, by the rules of conlleval.
class Entities {
 public:
  /// Adds the tag of the next token.
  void add(EntityTag tag);
  /// Ends the sequence.
  void end() { add({}); }
  /// Returns the number of entities of a sequence that has ended.
  [[nodiscard]] Index size() const noexcept { return std::ssize(types_); }
  /// Returns how many entities two sequences have in common.
  [[nodiscard]] static Index common(Entities const& a, Entities const& b) noexcept;

 private:
  // Three vectors of numbers need less memory to compile than one vector of structs.
  std::vector<Index> begins_, ends_;  // counted tokens of each entity
  std::vector<int> types_;
  Index tokens_ = 0, begin_ = -1;  // begin_: of the entity that is open, or -1
  EntityTag last_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/detail/entities.ipp>
#endif
