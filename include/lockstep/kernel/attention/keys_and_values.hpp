// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Keys and values of one sequence, in the order in which CachedAttention reads them. Memory grows with the tokens, by
/// a panel of keys at a time.
template <class Scalar>
class KeysAndValues {
 public:
  /// Keys of one panel, whose products with a query are computed together.
  static constexpr Index panel = 256 / Index{sizeof(Scalar)};

  /// @param heads of keys and values   @param head_width channels of each
  KeysAndValues(Index heads, Index head_width) : heads_(heads), head_width_(head_width) {}

  /// Returns the number of tokens.
  [[nodiscard]] Index tokens() const noexcept { return tokens_; }
  /// Returns the heads of keys and values.
  [[nodiscard]] Index heads() const noexcept { return heads_; }
  /// Returns the channels of a head.
  [[nodiscard]] Index head_width() const noexcept { return head_width_; }
  /// Returns the bytes of all keys and values.
  [[nodiscard]] Index bytes() const noexcept {
    return static_cast<Index>((keys_.size() + values_.size()) * sizeof(Scalar));
  }

  /// Appends the keys and values of `count` tokens.   @shape keys, values [count, heads * head_width]
  void append(Scalar const* keys, Scalar const* values, Index count);

  /// Returns the keys of a head: panels of [head_width, panel], with zeros after the last token.
  [[nodiscard]] Scalar const* keys(Index head) const noexcept { return keys_.data() + head * head_width_ * capacity_; }
  /// Returns the values of a head, [tokens, head_width]. A panel more can be read.
  [[nodiscard]] Scalar const* values(Index head) const noexcept {
    return values_.data() + head * head_width_ * capacity_;
  }

 private:
  void reserve(Index tokens);

  Index heads_, head_width_, tokens_ = 0, capacity_ = 0;
  std::vector<Scalar> keys_, values_;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/keys_and_values.ipp>
#endif
