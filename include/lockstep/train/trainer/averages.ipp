// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/averages.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE BatchStatistics::BatchStatistics(nn::ParameterLayout const& layout, std::span<float const> own,
                                                      std::span<float const> from_own, std::span<float const> from_zero,
                                                      std::span<float const> again)
    : momentum_(own.size()) {
  for (auto const& entry : layout.buffers()) {
    auto const begin = static_cast<std::size_t>(entry.offset), end = begin + static_cast<std::size_t>(entry.size);
    auto largest = begin;
    for (auto i = begin; i < end; ++i)
      if (std::abs(from_zero[i]) > std::abs(from_zero[largest])) largest = i;
    if (begin == end || from_zero[largest] == 0 || from_own[largest] == own[largest]) continue;
    double const momentum = 2 - static_cast<double>(again[largest]) / static_cast<double>(from_zero[largest]);
    if (momentum > 1e-6 && momentum < 1 + 1e-6) std::fill(&momentum_[begin], &momentum_[begin] + entry.size, momentum);
  }
}

LOCKSTEP_COLD_INLINE void BatchStatistics::add(std::span<float const> from_zero, std::span<double> totals) const {
  auto const count = momentum_.size();
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any = any || (momentum_[i] > 0 && from_zero[i] != 0);
  for (std::size_t i = 0; any && i < count; ++i)
    if (momentum_[i] > 0) {
      totals[i] += static_cast<double>(from_zero[i]) / momentum_[i];
      totals[count + i] += 1;
    }
}

LOCKSTEP_COLD_INLINE KeptBuffers::KeptBuffers(parallel::AnySession& session, std::span<float const> buffers)
    : session_(session), buffers_(buffers.begin(), buffers.end()) {}

LOCKSTEP_COLD_INLINE KeptBuffers::~KeptBuffers() {
  try {
    session_.set_buffers(buffers_);
  } catch (...) {  // a lost device, which its next call reports
  }
}

}}}  // namespace lockstep::train::detail
