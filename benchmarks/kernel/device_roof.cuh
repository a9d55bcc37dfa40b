// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

#include <ratios.hpp>

namespace lockstep_bench {

/// Compares a kernel's bytes per second with a copy on the same device.
class DeviceRoof {
 public:
  /// Returns false and prints a line if there is no GPU.
  static bool there(char const* benchmark) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
    std::printf("skipped: %s: no GPU answers\n", benchmark);
    return false;
  }

  explicit DeviceRoof(std::string const& benchmark) : ratios_(benchmark) {}

  [[nodiscard]] lockstep::memory::Stream<lockstep::CudaSpace> stream() const noexcept { return stream_.view(); }

  /// Zeroed device memory.
  template <class T>
  [[nodiscard]] static lockstep::memory::Buffer<T, lockstep::CudaSpace> buffer(lockstep::Index size) {
    return {size, lockstep::memory::CudaResource{}};
  }

  /// `bytes` is the minimum that a pass reads and writes.
  void compare(std::string const& name, double bytes, std::function<void()> const& pass) {
    auto const copy = [&] {
      lockstep::memory::check_cuda(cudaMemcpyAsync(to_.data(), from_.data(), static_cast<std::size_t>(to_.size()),
                                                   cudaMemcpyDeviceToDevice, stream().get()),
                                   "cudaMemcpyAsync");
    };
    seconds(pass);
    seconds(copy);
    std::vector<double> shares;
    for (int round = 0; round < 9; ++round)
      shares.push_back(bytes / seconds(pass) / (2 * static_cast<double>(to_.size()) / seconds(copy)));
    ratios_.report(name, "roof", Spread::of(shares), "9 rounds, bytes per second over those of a copy");
  }

 private:
  static constexpr lockstep::Index copied = lockstep::Index{512} << 20;  // far larger than any cache

  /// Seconds of one call.
  double seconds(std::function<void()> const& call) const {
    constexpr int calls = 20;
    stream().synchronize();
    auto const began = lockstep::Clock::seconds();
    for (int i = 0; i < calls; ++i) call();
    stream().synchronize();
    return (lockstep::Clock::seconds() - began) / calls;
  }

  Ratios ratios_;
  lockstep::memory::CudaStream stream_;
  lockstep::memory::Buffer<char, lockstep::CudaSpace> from_ = buffer<char>(copied), to_ = buffer<char>(copied);
};

}  // namespace lockstep_bench
