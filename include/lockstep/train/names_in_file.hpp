// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Which parameters and buffers of a model are read from a file, and how they are called there: all by the model's
/// names; those whose names begin with a prefix, which may read otherwise in the file; or as a function of the model's
/// name says, which gives none, "", for those that the file has not.
class NamesInFile {
 public:
  NamesInFile() = default;
  /// Those that begin so, as "encoder.".
  template <std::convertible_to<std::string_view> Prefix>
  NamesInFile(Prefix const& prefix) : NamesInFile(prefix, prefix) {}  // NOLINT(google-explicit-constructor): reads well
  /// The same; in the file `in_file` stands for the prefix.
  NamesInFile(std::string_view prefix, std::string_view in_file) : prefix_(prefix), in_file_(in_file) {}
  template <std::invocable<std::string_view> Rename>
  requires std::convertible_to<std::invoke_result_t<Rename const&, std::string_view>, std::string> NamesInFile(
      Rename rename)
      : rename_(std::move(rename)) {}  // NOLINT(google-explicit-constructor): reads well

  /// What the file calls a parameter of the model; "" when it is not read.
  [[nodiscard]] std::string operator()(std::string_view name) const {
    if (rename_) return rename_(name);
    return name.starts_with(prefix_) ? in_file_ + std::string(name.substr(prefix_.size())) : std::string();
  }
  /// Why none of a model's parameters is read, of which `first` is one.
  [[nodiscard]] std::string none(std::string_view first) const {
    return (rename_ ? "the function of names gives none for any parameter of the model"
                    : "no name in the model begins with \"" + prefix_ + "\"") +
           "; its first parameter is \"" + std::string(first) + "\"";
  }

 private:
  std::string prefix_, in_file_;
  std::function<std::string(std::string_view)> rename_;
};

}}}  // namespace lockstep::train
