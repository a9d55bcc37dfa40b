// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Selects the parameters and buffers of a model to read from a file, and their names in the file. By default it
/// selects all, by the model's names. A prefix selects names that begin with it, optionally with another prefix in the
/// file. A function of the model's name returns the name in the file, or "" for names that are not in the file.
class NamesInFile {
 public:
  NamesInFile() = default;
  /// Selects names with this prefix, such as "encoder.".
  template <std::convertible_to<std::string_view> Prefix>
  NamesInFile(Prefix const& prefix) : NamesInFile(prefix, prefix) {}  // NOLINT(google-explicit-constructor): reads well
  /// Selects names with the prefix, which `in_file` replaces in the file.
  NamesInFile(std::string_view prefix, std::string_view in_file);
  /// Selects all names for which rename(name) is not empty, under the name that it returns.
  template <std::invocable<std::string_view> Rename>
  requires std::convertible_to<std::invoke_result_t<Rename const&, std::string_view>, std::string> NamesInFile(
      Rename rename)
      : rename_(std::move(rename)) {}  // NOLINT(google-explicit-constructor): reads well

  /// Returns the name of a model's parameter in the file, or "" if it is not to be read.
  [[nodiscard]] std::string operator()(std::string_view name) const;
  /// Explains why no parameter is selected; `first` is the name of the model's first parameter.
  [[nodiscard]] std::string none(std::string_view first) const;

 private:
  std::string prefix_, in_file_;
  std::function<std::string(std::string_view)> rename_;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/names_in_file.ipp>
#endif
