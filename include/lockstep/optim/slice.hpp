// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// 16-bit copy of the values, of either type, for matrix products that read 16 bits. Null by default.
class HalfPrecisionCopy {
 public:
  constexpr HalfPrecisionCopy() = default;
  /// Refers to `data`, which the caller owns; null is no copy.
  constexpr HalfPrecisionCopy(bfloat16* data) noexcept : bfloats_(data) {}  // NOLINT(google-explicit-constructor)
  /// Refers to `data`, which the caller owns; null is no copy.
  constexpr HalfPrecisionCopy(float16* data) noexcept : halves_(data) {}  // NOLINT(google-explicit-constructor)

  /// Returns whether there is a copy.
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return bfloats_ || halves_; }
  /// Returns the copy from this element on, or null for null.
  [[nodiscard]] constexpr HalfPrecisionCopy operator+(Index elements) const noexcept {
    return halves_    ? HalfPrecisionCopy(halves_ + elements)
           : bfloats_ ? HalfPrecisionCopy(bfloats_ + elements)
                      : HalfPrecisionCopy();
  }
  /// Calls f(the 16-bit values) with their type.
  template <class Function>
  constexpr void with_data(Function const& f) const {
    if (halves_)
      f(halves_);
    else if (bfloats_)
      f(bfloats_);
  }
  /// Rounds `value` and writes it to element `at`. The copy must not be null.
  constexpr void put(Index at, float value) const noexcept {
    if (halves_)
      halves_[at] = float16(value);
    else
      bfloats_[at] = bfloat16(value);
  }

 private:
  bfloat16* bfloats_ = nullptr;
  float16* halves_ = nullptr;
};

/// A range of the parameter arena that one step call updates: the whole arena, a bucket, or a rank's shard. Does not
/// own.
template <class Scalar, class Space>
struct Slice {
  Index offset = 0;                   ///< of the first element in the arena
  Index count = 0;                    ///< elements
  Scalar* values = nullptr;           ///< [count], updated
  Scalar const* gradients = nullptr;  ///< [count], of the loss sum, scaled by the step's scalars; read once
  Scalar* const* states = nullptr;    ///< one pointer per state, each to [count] elements, zero before step 1; updated
  HalfPrecisionCopy half_precision = {};  ///< [count], receives the new values; null if no product reads 16 bits
  double rate = 1;                        ///< factor on the step's learning rate
  double decays = 1;                      ///< factor on the weight decay; 0 for none
  kernel::TouchedRows touched = {};   ///< if it has bits, the table that contains the range; gradients of rows outside
                                      ///< it are zero and must not be read
  std::string_view name = {};         ///< of the parameter, if the optimizer has `whole_parameters`
  std::span<Index const> shape = {};  ///< of the parameter, on the host, if the optimizer has `whole_parameters`
  Scalar* work = nullptr;  ///< the optimizer's `work_elements(shape)` elements, uninitialized; null if it has none
};

}}}  // namespace lockstep::optim
