// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/train/files/names_in_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE NamesInFile::NamesInFile(std::string_view prefix, std::string_view in_file)
    : prefix_(prefix), in_file_(in_file) {}

LOCKSTEP_COLD_INLINE NamesInFile NamesInFile::with_new_rows(std::string_view prefix) const {
  auto out = *this;
  out.new_rows_.emplace_back(prefix);
  return out;
}

LOCKSTEP_COLD_INLINE bool NamesInFile::may_have_new_rows(std::string_view name) const noexcept {
  return std::any_of(new_rows_.begin(), new_rows_.end(),
                     [name](std::string const& prefix) { return name.starts_with(prefix); });
}

LOCKSTEP_COLD_INLINE std::string NamesInFile::operator()(std::string_view name) const { return tensor(name).name; }

LOCKSTEP_COLD_INLINE TensorInFile NamesInFile::tensor(std::string_view name) const {
  if (rename_) return rename_(name);
  return {name.starts_with(prefix_) ? in_file_ + std::string(name.substr(prefix_.size())) : std::string()};
}

LOCKSTEP_COLD_INLINE std::string NamesInFile::none(std::string_view first) const {
  return (rename_ ? "the function of names returns no name for any parameter of the model"
                  : "no name in the model begins with \"" + prefix_ + "\"") +
         "; its first parameter is \"" + std::string(first) + "\"";
}

}}}  // namespace lockstep::train
