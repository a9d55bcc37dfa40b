// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// A GPU's peak rates per second at its highest clock, from its attributes; zeros if they are not known.
struct DevicePeaks {
  double operations = 0;       ///< multiplications and additions of float
  double half_operations = 0;  ///< the same of tensor cores, with factors of 16 bits that are summed in float
  double bytes = 0;            ///< of device memory, read or written

  /// Returns the peaks of the current device.
  [[nodiscard]] static DevicePeaks of_current() {
    int device = 0;
    memory::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    auto const attribute = [&](cudaDeviceAttr which) {
      int value = 0;
      if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) return static_cast<void>(cudaGetLastError()), 0;
      return value;
    };
    return of({attribute(cudaDevAttrComputeCapabilityMajor), attribute(cudaDevAttrComputeCapabilityMinor),
               attribute(cudaDevAttrMultiProcessorCount), attribute(cudaDevAttrClockRate),
               attribute(cudaDevAttrMemoryClockRate), attribute(cudaDevAttrGlobalMemoryBusWidth)});
  }

  struct Attributes {
    int major, minor, multiprocessors;
    int clock_khz, memory_clock_khz, memory_bits;
  };
  /// Returns the peaks of a device with these attributes. Memory transfers data twice per clock.
  [[nodiscard]] static DevicePeaks of(Attributes const& of) noexcept {
    auto const clocks = 1e3 * of.multiprocessors * of.clock_khz;
    auto const fused = fused_per_clock(of.major, of.minor);
    return {2 * clocks * fused.single, 2 * clocks * fused.half, 2e3 * of.memory_clock_khz * of.memory_bits / 8};
  }

 private:
  struct Fused {
    int single, half;
  };
  /// Returns the fused multiply-adds of a multiprocessor per clock, from the vendor's tables: of float, and of tensor
  /// cores with factors of 16 bits.
  [[nodiscard]] static Fused fused_per_clock(int major, int minor) noexcept {
    switch (major) {
      case 7:
        return {64, 512};
      case 8:
        return minor == 0 ? Fused{64, 1024} : Fused{128, 512};
      case 9:
        return {128, 2048};
      case 10:
        return {128, 4096};
      case 12:
        return {128, 512};
      default:
        return {0, 0};
    }
  }
};

}}}  // namespace lockstep::parallel::detail
