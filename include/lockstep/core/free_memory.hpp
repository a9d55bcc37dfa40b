// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns a size for a message, as "512 MiB" or "12.3 GiB".
[[nodiscard]] std::string memory_size(double bytes);

/// Free memory of a device, or of the host for this process. Other processes may change it at any time.
struct FreeMemory {
  /// The limit that determines the sizes.
  enum class Limit {
    device,         ///< memory of the machine or of the GPU
    control_group,  ///< of the process's control group, as containers and schedulers set it
    address_space,  ///< of the process, as `ulimit -v` sets it
  };

  std::size_t free_bytes = 0;   ///< within the limit
  std::size_t total_bytes = 0;  ///< free or not
  Limit limit = Limit::device;  ///< what sets it

  /// Returns "3.1 GiB of 8.0 GiB are free".
  [[nodiscard]] std::string text() const;

  /// Returns the host's free memory by the limit that leaves least. Swap space and file caches that the kernel can
  /// drop count as free. Empty if the system tells nothing.
  /// @param root folder that contains proc/ and sys/; empty for the system's own
  [[nodiscard]] static std::optional<FreeMemory> of_host(std::string const& root = "");

 private:
  static constexpr std::uint64_t kibibyte = 1024;

  [[nodiscard]] static std::optional<std::uint64_t> number_in(std::string const& path);
  /// Returns the sum of the file's numbers that follow these words.
  [[nodiscard]] static std::optional<std::uint64_t> sum_in(std::string const& path, std::string_view first,
                                                           std::string_view second);
  [[nodiscard]] static FreeMemory of(std::uint64_t total, std::uint64_t used, Limit limit);
  [[nodiscard]] static std::optional<FreeMemory> of_machine(std::string const& root);
  /// Returns the free memory of one control group. Version 1 has other names for the files.
  [[nodiscard]] static std::optional<FreeMemory> of_group(std::string const& folder, bool unified);
  [[nodiscard]] static std::optional<FreeMemory> of_address_space(std::string const& root);
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/free_memory.ipp>
#endif
