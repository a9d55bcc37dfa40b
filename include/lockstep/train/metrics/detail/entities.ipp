// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/train/metrics/detail/entities.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<EntityTag> entity_tags(std::vector<std::string> const& names) {
  std::vector<EntityTag> tags;
  std::vector<std::string_view> types;
  for (std::string_view const name : names) {
    EntityTag tag;
    if (name != "O") {
      constexpr std::string_view places = "BIESLU", as = "BIESES";
      auto const place = name.size() > 2 && name[1] == '-' ? places.find(name[0]) : std::string_view::npos;
      if (place == std::string_view::npos)
        throw ConfigError("EntityF1: class " + std::to_string(tags.size()) + " is named \"" + std::string(name) +
                          "\"; a tag is O, or B, I, E, L, S or U, a hyphen and the type of the entity, as B-PER");
      auto const found = std::find(types.begin(), types.end(), name.substr(2));
      tag = {as[place], static_cast<int>(found - types.begin())};
      if (found == types.end()) types.push_back(name.substr(2));
    }
    tags.push_back(tag);
  }
  return tags;
}

LOCKSTEP_INLINE void Entities::add(EntityTag tag) {
  bool const continues = begin_ >= 0 && tag.type == last_.type && (tag.place == 'I' || tag.place == 'E') &&
                         last_.place != 'E' && last_.place != 'S';
  if (!continues) {
    if (begin_ >= 0) {
      begins_.push_back(begin_);
      ends_.push_back(tokens_);
      types_.push_back(last_.type);
    }
    begin_ = tag.place == 'O' ? -1 : tokens_;
  }
  last_ = tag;
  ++tokens_;
}

LOCKSTEP_INLINE Index Entities::common(Entities const& a, Entities const& b) noexcept {
  Index count = 0;
  for (std::size_t i = 0, j = 0; i < a.begins_.size() && j < b.begins_.size();) {
    count += a.begins_[i] == b.begins_[j] && a.ends_[i] == b.ends_[j] && a.types_[i] == b.types_[j] ? 1 : 0;
    a.begins_[i] <= b.begins_[j] ? ++i : ++j;
  }
  return count;
}

}}}  // namespace lockstep::train::detail
