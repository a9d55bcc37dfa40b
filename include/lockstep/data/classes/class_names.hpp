// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/nearest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Names of classes in the order of their labels, for files whose labels are names or numbers.
class ClassNames {
 public:
  ClassNames() = default;
  /// @throws DataError if a name occurs twice
  explicit ClassNames(std::vector<std::string> names);
  /// Returns the classes of a dataset's labels. If all labels are whole numbers below 4096, the classes are "0" to the
  /// largest label. Otherwise they are the distinct labels, sorted.
  [[nodiscard]] static ClassNames of_labels(std::vector<std::string> labels);

  /// Returns the number of classes.
  [[nodiscard]] Index size() const noexcept { return std::ssize(names_); }
  /// Returns the names, in the order of the labels.
  [[nodiscard]] std::vector<std::string> const& names() const noexcept { return names_; }
  /// Returns the label of a class by its name, or else by its number; nothing if there is no such class.
  [[nodiscard]] std::optional<std::int32_t> find(std::string const& text) const;
  /// Returns a message about a label that `find` does not know, such as: label "wlak" is none of the 4 classes; the
  /// nearest is "walk".
  [[nodiscard]] std::string why_unknown(std::string const& text) const;

 private:
  static constexpr std::int32_t max_classes_by_number = 4096;

  /// Returns the whole number that `text` holds, or nothing if `text` is not a whole number of at least 0.
  [[nodiscard]] static std::optional<std::int32_t> number_of(std::string_view text) noexcept;

  std::vector<std::string> names_;
  NameTable table_;  // of the names
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/classes/class_names.ipp>
#endif
