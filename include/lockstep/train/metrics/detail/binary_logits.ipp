// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/train/metrics/detail/binary_logits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<float> sorted(std::vector<float> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

LOCKSTEP_COLD_INLINE std::string BinaryLogits::samples() const {
  std::string bytes;
  for (auto const& logits : logits_) {
    std::uint64_t const count = logits.size();
    bytes.append(reinterpret_cast<char const*>(&count), sizeof count);
    bytes.append(reinterpret_cast<char const*>(logits.data()), logits.size() * sizeof(float));
  }
  return bytes;
}

LOCKSTEP_COLD_INLINE void BinaryLogits::add_samples(std::string_view bytes) {
  for (auto& logits : logits_) {
    std::uint64_t count = 0;
    std::memcpy(&count, bytes.data(), sizeof count);
    bytes.remove_prefix(sizeof count);
    auto const before = logits.size();
    logits.resize(before + count);
    if (count > 0) std::memcpy(logits.data() + before, bytes.data(), count * sizeof(float));
    bytes.remove_prefix(count * sizeof(float));
  }
}

LOCKSTEP_COLD_INLINE std::array<double, 2> BinaryLogits::counts() const noexcept {
  std::array<double, 2> sums{};
  for (std::size_t i = 0; i < totals_.size(); ++i) sums[i % 2] += totals_[i];
  return sums;
}

}}}  // namespace lockstep::train::detail
