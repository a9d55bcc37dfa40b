// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/random/step_key.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Keys of a micro-batch's random operations: equal on all replicas, and different for each operation. A part of
/// nn::Context.
template <class Space>
class RandomKeys {
 public:
  /// Sets the key of the micro-batch for later work in the stream, and the position of its first sample.
  void set(memory::Stream<Space> stream, std::uint64_t key, Index first_position = 0) {
    step_key_.set(stream, key);
    on_host_ = key;
    first_position_ = first_position;
  }
  /// Returns the next operation's key as a mask that drops elements whose 16 random bits are below `dropped`.
  [[nodiscard]] kernel::DropoutMask next(std::uint32_t dropped) noexcept {
    return step_key_.mask(++operations_, dropped);
  }
  /// Returns a key for all numbers that the next operation draws for this micro-batch. It differs between micro-batches
  /// and replicas, by the first sample's position. On the host, for operations that are not recorded: a replay does not
  /// call it.
  [[nodiscard]] std::uint64_t next_of_batch() noexcept {
    return mix(mix(on_host_, ++operations_), static_cast<std::uint64_t>(first_position_));
  }

  /// Returns the number of operations so far.
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  /// Repeats the keys that follow the first `operations` ones.
  void rewind(std::uint64_t operations = 0) noexcept { operations_ = operations; }

 private:
  kernel::StepKey<Space> step_key_;
  std::uint64_t on_host_ = 0;
  Index first_position_ = 0;
  std::uint64_t operations_ = 0;
};

}}}  // namespace lockstep::nn
