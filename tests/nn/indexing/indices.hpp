// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <lockstep/core/tensor_view.hpp>

namespace lockstep_test {

/// A column of lists of integers in any space, ragged or padded.
template <class Space>
struct RaggedInts {
  lockstep::TensorView<std::int32_t const, 1, Space> values;
  lockstep::TensorView<lockstep::Index const, 1, Space> offsets;
  lockstep::Index longest = 0;
};
template <class Space>
struct PaddedInts {
  lockstep::TensorView<std::int32_t const, 2, Space> values;
  lockstep::TensorView<std::int32_t const, 1, Space> lengths;
};

/// Lists of integers on the host.
struct Lists {
  std::vector<std::int32_t> ragged_values, padded_values, lengths;
  std::vector<lockstep::Index> offsets{0};
  lockstep::Index longest = 0;

  explicit Lists(std::vector<std::vector<std::int32_t>> const& lists) {
    for (auto const& list : lists) longest = std::max<lockstep::Index>(longest, std::ssize(list));
    for (auto list : lists) {
      ragged_values.insert(ragged_values.end(), list.begin(), list.end());
      offsets.push_back(std::ssize(ragged_values));
      lengths.push_back(static_cast<std::int32_t>(list.size()));
      list.resize(static_cast<std::size_t>(longest), -7);
      padded_values.insert(padded_values.end(), list.begin(), list.end());
    }
  }
  [[nodiscard]] RaggedInts<lockstep::HostSpace> ragged() const {
    return {{ragged_values.data(), {std::ssize(ragged_values)}}, {offsets.data(), {std::ssize(offsets)}}, longest};
  }
  [[nodiscard]] PaddedInts<lockstep::HostSpace> padded() const {
    return {{padded_values.data(), {std::ssize(lengths), longest}}, {lengths.data(), {std::ssize(lengths)}}};
  }
};

}  // namespace lockstep_test
