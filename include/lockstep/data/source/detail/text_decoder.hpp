// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iconv.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Treatment of the bytes of a text file.
enum class Decoding {
  check,    ///< they must be UTF-8
  none,     ///< they are delivered as they are
  convert,  ///< they are converted to UTF-8
};
/// @throws ConfigError for a name with characters that no name of an encoding has
[[nodiscard]] Decoding decoding_of(std::string const& encoding);

/// Checks or converts a text that arrives in parts, whose ends may cut characters.
class TextDecoder {
 public:
  /// @throws ConfigError if iconv of the system does not know the encoding
  explicit TextDecoder(std::string const& encoding = "utf-8");

  [[nodiscard]] Decoding decoding() const noexcept { return decoding_; }
  /// Checks the next part.
  /// @param last whether the text ends with the part
  /// @returns the number of bytes of text before the first that is not UTF-8, if there is one
  [[nodiscard]] std::optional<std::size_t> check(std::string_view part, bool last);
  /// Appends the next part, converted.
  /// @returns the number of bytes before the first that is not text in the encoding, if there is one
  [[nodiscard]] std::optional<std::size_t> convert(std::string_view part, bool last, std::string& out);
  /// Returns a message about a byte at an offset of the file, with the remedy.
  [[nodiscard]] std::string problem(std::size_t offset) const;

 private:
  struct Close {
    void operator()(void* converter) const noexcept { ::iconv_close(converter); }
  };

  std::string encoding_;
  Decoding decoding_;
  std::unique_ptr<void, Close> converter_;
  std::string pending_;    // the beginning of a character that the last part cut
  std::size_t begin_ = 0;  // offset of the next part in the file
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/text_decoder.ipp>
#endif
