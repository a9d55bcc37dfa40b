// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <lockstep/core/version.hpp>
#include <lockstep/data/text/detail/padded_word.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Part of a text in lower case, with a bit for each byte that is part of a word, and for each that is a mark. Bytes
/// are classified 64 at a time, so that a token costs few branches.
class WordBlock {
 public:
  static constexpr std::size_t bytes = 1024;

  /// Classifies a text of up to `bytes` bytes.
  void load(std::string_view text) noexcept {
    groups_ = (text.size() + 63) / 64;
    for (std::size_t group = 0; group < groups_; ++group) {
      std::array<std::uint8_t, 64> in{}, word, mark;
      std::memcpy(in.data(), text.data() + 64 * group, std::min<std::size_t>(64, text.size() - 64 * group));
      auto* const out = lower_.data() + 64 * group;
      for (std::size_t i = 0; i < 64; ++i) {  // compilers vectorize it
        auto const c = in[i];
        auto const is_from = [](int byte, int first, int count) {
          return static_cast<std::uint8_t>(static_cast<std::uint8_t>(byte - first) < static_cast<std::uint8_t>(count));
        };
        auto const low = static_cast<std::uint8_t>(c | static_cast<std::uint8_t>(is_from(c, 'A', 26) << 5));
        auto const high = static_cast<std::uint8_t>(c >= 0x80);
        word[i] = static_cast<std::uint8_t>(is_from(low, 'a', 26) | is_from(c, '0', 10) | high);
        mark[i] = static_cast<std::uint8_t>((word[i] ^ 1) & static_cast<std::uint8_t>(c > 0x20) &
                                            static_cast<std::uint8_t>(c != 0x7f));
        out[i] = low;
      }
      words_[group] = bits(word);
      marks_[group] = bits(mark);
    }
    words_[groups_] = words_[groups_ + 1] = 0;
    std::memset(lower_.data() + 64 * groups_, 0, PaddedWord::readable);
  }
  [[nodiscard]] std::size_t groups() const noexcept { return groups_; }
  /// Returns a bit for each byte of 64 that begins a word or is a mark.
  [[nodiscard]] std::uint64_t tokens(std::size_t group) const noexcept {
    auto const before = group > 0 ? words_[group - 1] >> 63 : 0;
    return (words_[group] & ~(words_[group] << 1 | before)) | marks_[group];
  }
  /// Returns the number of bytes until the end of the word, up to 64; 0 for a byte that is not part of a word.
  [[nodiscard]] std::size_t word_bytes(std::size_t place) const noexcept {
    auto const group = place / 64, bit = place % 64;
    auto const window = words_[group] >> bit | words_[group + 1] << 1 << (63 - bit);
    return static_cast<std::size_t>(std::countr_one(window));
  }
  [[nodiscard]] PaddedWord lower(std::size_t place, std::size_t size) const noexcept {
    return {reinterpret_cast<char const*>(lower_.data()) + place, size};
  }

 private:
  /// Returns a bit for each of 64 bytes that are 0 or 1.
  static std::uint64_t bits(std::array<std::uint8_t, 64> const& flags) noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, flags.data() + 8 * i, 8);
      out |= (eight * 0x0102040810204080u >> 56) << 8 * i;
    }
    return out;
  }

  std::array<std::uint8_t, bytes + PaddedWord::readable> lower_;
  std::array<std::uint64_t, bytes / 64 + 2> words_;
  std::array<std::uint64_t, bytes / 64> marks_;
  std::size_t groups_ = 0;
};

}}}  // namespace lockstep::data::detail
