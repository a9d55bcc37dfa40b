// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/core/error.hpp>
#include <lockstep/train/files/detail/transposed.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void Transposed::add(TensorInFile const& from, std::vector<Index> const& shape) {
  if (shape.size() != 2 || !from.shape.empty()) return;
  auto& group = group_of(from.name);
  if (from.axes == std::vector<Index>{1, 0})
    group.transposed = from.name;
  else if (shape[0] != shape[1])
    group.has_others = true;
  else if (from.axes.empty())
    group.square = from.name;
}

LOCKSTEP_COLD_INLINE void Transposed::check(std::string const& path, char const* done) const {
  for (auto const& group : groups_)
    if (!group.square.empty() && !group.transposed.empty() && !group.has_others)
      throw DataError(
          path + ": parameter \"" + group.square + "\" is square and would be " + done + " as it is, but \"" +
          group.transposed +
          "\" next to it is transposed; return a train::TensorInFile{.name = …, .axes = {1, 0}} for it, or, "
          "if the file does not store it transposed, .axes = {0, 1}");
}

LOCKSTEP_COLD_INLINE Transposed::Group& Transposed::group_of(std::string const& name) {
  auto const last = name.rfind('.');
  auto const begin = last == std::string::npos || last == 0 ? std::string::npos : name.rfind('.', last - 1);
  auto const group = last == std::string::npos ? name : name.substr(0, begin + 1) + name.substr(last);
  for (auto i = groups_.size(); i-- > 0;)  // most often the last one
    if (groups_[i].name == group) return groups_[i];
  return groups_.emplace_back(Group{group, {}, {}});
}

}}}  // namespace lockstep::train::detail
