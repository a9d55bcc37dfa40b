// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep_bench {

/// Ids whose frequency falls as 1 / rank, like words of a text: the k-th is floor(rows^(k * golden ratio mod 1)) - 1,
/// scattered over the table. peers/kernels.py generates equal ids.
inline std::vector<std::int32_t> zipf_ids(lockstep::Index rows, lockstep::Index count) {
  std::vector<std::int32_t> ids;
  for (lockstep::Index k = 0; k < count; ++k) {
    auto const part = std::fmod(static_cast<double>(k) * 0.6180339887498949, 1.0);
    auto const rank = static_cast<lockstep::Index>(std::pow(static_cast<double>(rows), part)) - 1;
    ids.push_back(static_cast<std::int32_t>(rank * 7919 % rows));
  }
  return ids;
}

}  // namespace lockstep_bench
