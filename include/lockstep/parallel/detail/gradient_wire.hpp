// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/element_type.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// A gradient arena that ranks sum in place.
struct InPlace {
  float* gradients = nullptr;

  [[nodiscard]] static constexpr ElementType type() noexcept { return ElementType::float32; }
  [[nodiscard]] static constexpr bool rounds() noexcept { return false; }
  [[nodiscard]] float* at(Index i) const noexcept { return gradients + i; }
  [[nodiscard]] static constexpr std::size_t bytes() noexcept { return 0; }
  void round(ArenaPart const&) const noexcept {}
  void widen(ArenaPart const&) const noexcept {}
};

/// Memory in which ranks sum a gradient arena: the arena itself or, rounded to 16 bits, a second one. Elements have
/// equal indices in both, so that buckets, parts and rows do not depend on the format.
template <class Space>
class GradientWire {
 public:
  /// @param sent a bfloat16 or float16 for each element of the arena; empty for float32
  GradientWire(ElementType type, float* gradients, memory::Block sent, memory::Stream<Space> stream) noexcept
      : type_(type), gradients_(gradients), sent_(std::move(sent)), stream_(stream) {}

  [[nodiscard]] ElementType type() const noexcept { return type_; }
  [[nodiscard]] bool rounds() const noexcept { return type_ != ElementType::float32; }
  /// Returns the address at which element i is summed.
  [[nodiscard]] std::byte* at(Index i) const noexcept {
    auto* const first = rounds() ? sent_.data() : reinterpret_cast<std::byte*>(gradients_);
    return first + static_cast<std::size_t>(i) * size_of(type_);
  }
  /// Returns the bytes in addition to the arena.
  [[nodiscard]] std::size_t bytes() const noexcept { return sent_.bytes(); }

  /// Rounds this rank's gradients into the memory that is summed.
  void round(ArenaPart const& part) const {
    if (type_ == ElementType::bfloat16) convert(gradients_, sent<bfloat16>(), part);
    if (type_ == ElementType::float16) convert(gradients_, sent<float16>(), part);
  }
  /// Converts the sum to float32 in the arena.
  void widen(ArenaPart const& part) const {
    if (type_ == ElementType::bfloat16) convert(sent<bfloat16>(), gradients_, part);
    if (type_ == ElementType::float16) convert(sent<float16>(), gradients_, part);
  }

 private:
  template <class Value>
  [[nodiscard]] Value* sent() const noexcept {
    return reinterpret_cast<Value*>(sent_.data());
  }
  template <class From, class To>
  void convert(From const* from, To* to, ArenaPart const& part) const {
    Extents<1> const count{part.end - part.begin};
    if (count[0] > 0)
      kernel::Convert<Space>::template run<To, From>(stream_, {from + part.begin, count}, {to + part.begin, count});
  }

  ElementType type_;
  float* gradients_;
  memory::Block sent_;
  memory::Stream<Space> stream_;
};

}}}  // namespace lockstep::parallel::detail
