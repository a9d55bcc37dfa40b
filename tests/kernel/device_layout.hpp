// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include <lockstep/kernel/sequence_layout.hpp>

#include "memory/device.hpp"
#include "view.hpp"

namespace lockstep_test {

/// Equal sequences with a layout on the host and on the device, padded or ragged.
class TwinLayout {
 public:
  enum class Kind { padded, ragged };

  TwinLayout(Kind kind, std::vector<std::int32_t> lengths)
      : kind_(kind),
        lengths_(std::move(lengths)),
        offsets_(lengths_.size() + 1),
        positions_(lengths_.size()),
        device_lengths_(lengths_),
        device_offsets_(ends()),
        device_positions_(places()) {
    for (auto n : lengths_) length_ = std::max<lockstep::Index>(length_, n);
  }

  [[nodiscard]] lockstep::kernel::SequenceLayout<lockstep::HostSpace> host() const {
    auto const positions = view(positions_, rows());
    if (kind_ == Kind::padded)
      return lockstep::kernel::SequenceLayout<lockstep::HostSpace>::padded(length_, view(lengths_, rows()), positions);
    return lockstep::kernel::SequenceLayout<lockstep::HostSpace>::ragged(offsets_.back(), length_,
                                                                         view(offsets_, rows() + 1), positions);
  }
  [[nodiscard]] lockstep::kernel::SequenceLayout<lockstep::CudaSpace> device() const {
    auto const positions = device_positions_.view(rows());
    if (kind_ == Kind::padded)
      return lockstep::kernel::SequenceLayout<lockstep::CudaSpace>::padded(length_, device_lengths_.view(rows()),
                                                                           positions);
    return lockstep::kernel::SequenceLayout<lockstep::CudaSpace>::ragged(offsets_.back(), length_,
                                                                         device_offsets_.view(rows() + 1), positions);
  }
  [[nodiscard]] lockstep::Index rows() const noexcept { return static_cast<lockstep::Index>(lengths_.size()); }
  [[nodiscard]] lockstep::Index slots() const { return host().slots; }

 private:
  std::vector<lockstep::Index> const& ends() {
    std::partial_sum(lengths_.begin(), lengths_.end(), offsets_.begin() + 1, std::plus<lockstep::Index>{});
    return offsets_;
  }
  /// Far apart, beyond 32 bits.
  std::vector<lockstep::Index> const& places() {
    for (std::size_t r = 0; r < positions_.size(); ++r)
      positions_[r] = static_cast<lockstep::Index>(77 * r + (r % 2 ? std::size_t{1} << 33 : 0));
    return positions_;
  }

  Kind kind_;
  lockstep::Index length_ = 0;
  std::vector<std::int32_t> lengths_;
  std::vector<lockstep::Index> offsets_, positions_;
  OnDevice<std::int32_t> device_lengths_;
  OnDevice<lockstep::Index> device_offsets_, device_positions_;
};

/// Empty batches, empty and one-token sequences, and sequences near a warp's size.
inline std::vector<std::vector<std::int32_t>> const some_lengths{{}, {1}, {0}, {5, 0, 1, 3}, {33, 32, 31, 0, 0, 7, 1}};

}  // namespace lockstep_test
