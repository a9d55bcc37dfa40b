// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Owns one allocation of any space and frees it on destruction. The allocator sets how to release it: the host heap, a
/// communicator whose peers map the same pages, or a CUDA device.
class [[nodiscard]] Block {
 public:
  using Release = void (*)(void* owner, std::byte* data, std::size_t bytes) noexcept;  ///< frees the memory

  Block() = default;
  /// Takes ownership: the destructor calls release(owner, data, bytes).
  Block(std::byte* data, std::size_t bytes, Release release, void* owner = nullptr) noexcept
      : data_(data), bytes_(bytes), release_(release), owner_(owner) {}
  /// Takes over the memory.
  Block(Block&& other) noexcept { swap(other); }
  /// Frees the own memory and takes over the other.
  Block& operator=(Block&& other) noexcept {
    Block taken(std::move(other));
    taken.swap(*this);
    return *this;
  }
  ~Block() {
    if (data_ && release_) release_(owner_, data_, bytes_);
  }

  /// Returns the first byte; null for an empty block.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Returns the size.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Exchanges the memory of both.
  void swap(Block& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    std::swap(owner_, other.owner_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
  void* owner_ = nullptr;
};

}}}  // namespace lockstep::memory
