// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>
#include <lockstep/train/files/tensor_in_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Selects the parameters and buffers of a model to read from a file, and their names in the file. By default it
/// selects all, by the model's names. A prefix selects names that begin with it, optionally with another prefix in the
/// file. A function of the model's name returns the name in the file, or "" for names that are not in the file. If the
/// file stores a parameter with others in one tensor, or with its axes in another order, the function returns a
/// TensorInFile.
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
      : rename_([rename = std::move(rename)](std::string_view name) {  // NOLINT(google-explicit-constructor)
          return TensorInFile{rename(name)};
        }) {}
  /// Selects all names for which rename(name) has a name, and reads them as it says.
  template <std::invocable<std::string_view> Rename>
  requires std::same_as<std::invoke_result_t<Rename const&, std::string_view>, TensorInFile> NamesInFile(Rename rename)
      : rename_(std::move(rename)) {}  // NOLINT(google-explicit-constructor): reads well

  /// Returns these names, and lets parameters and buffers whose names in the model begin with `prefix` have more rows
  /// (elements of their first extent) than in the file. The file's rows are read into the first rows. The others keep
  /// their values. For a model with more classes or a larger vocabulary than the saved one.
  [[nodiscard]] NamesInFile with_new_rows(std::string_view prefix) const;
  /// Returns whether the model's parameter may have more rows than in the file.
  [[nodiscard]] bool may_have_new_rows(std::string_view name) const noexcept;
  /// Returns whether any parameter may have more rows than in the file.
  [[nodiscard]] bool any_new_rows() const noexcept { return !new_rows_.empty(); }

  /// Returns the name of a model's parameter in the file, or "" if it is not to be read.
  [[nodiscard]] std::string operator()(std::string_view name) const;
  /// Returns the tensor of the file from which a model's parameter is read. Its name is "" if it is not to be read.
  [[nodiscard]] TensorInFile tensor(std::string_view name) const;
  /// Explains why no parameter is selected; `first` is the name of the model's first parameter.
  [[nodiscard]] std::string none(std::string_view first) const;

 private:
  std::string prefix_, in_file_;
  std::vector<std::string> new_rows_;  // prefixes
  std::function<TensorInFile(std::string_view)> rename_;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/names_in_file.ipp>
#endif
