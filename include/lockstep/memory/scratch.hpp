// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// A bump arena: `take` allocates memory that is valid until `rewind`. It grows by chunks, so memory never moves while
/// it is in use. A full rewind replaces several chunks by one: after the largest use, nothing is allocated. Not
/// thread-safe. Memory is not cleared.
template <MemoryResource Resource = HostResource>
class Scratch {
 public:
  static constexpr std::size_t alignment = 64;  ///< of each piece, in bytes

  /// Returns the bytes that `take` reserves for `bytes`.
  [[nodiscard]] static constexpr std::size_t aligned_size(std::size_t bytes) noexcept {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  /// @param min_chunk_bytes lower bound on the bytes requested from the resource at a time. Resources zero their
  /// memory, so a small bound makes small uses cheap.
  explicit Scratch(Resource resource = {}, std::size_t min_chunk_bytes = std::size_t{1} << 20)
      : resource_(std::move(resource)), min_chunk_bytes_(min_chunk_bytes) {}

  /// Returns uninitialized memory, valid until a rewind.
  /// @throws std::bad_alloc (or the resource's exception) if a chunk cannot be allocated; taken memory stays valid
  [[nodiscard]] std::byte* take(std::size_t bytes) {
    if (bytes > max_bytes) throw std::bad_alloc();  // otherwise the sums below overflow
    bytes = aligned_size(bytes);
    for (; current_ < chunks_.size() && used_ + bytes > chunks_[current_].bytes(); ++current_) used_ = 0;
    if (current_ == chunks_.size()) grow(bytes);
    auto* out = chunks_[current_].data() + used_;
    used_ += bytes;
    total_ += bytes;
    peak_ = std::max(peak_, total_);
    return out;
  }

  /// Returns uninitialized memory for `count` elements, valid until a rewind.
  template <class Value>
  [[nodiscard]] Value* take_elements(Index count) {
    if (count < 0 || static_cast<std::size_t>(count) > max_bytes / sizeof(Value)) throw std::bad_alloc();
    return reinterpret_cast<Value*>(take(static_cast<std::size_t>(count) * sizeof(Value)));
  }

  /// Frees everything taken.
  /// @throws the resource's exception if it cannot allocate one chunk of the total size; everything is freed even then
  void rewind();

  /// A state to rewind to.
  struct Mark {
    std::size_t chunk = 0;  ///< index of the current chunk
    std::size_t used = 0;   ///< bytes taken from the current chunk
    std::size_t total = 0;  ///< bytes taken from all chunks
  };
  /// Returns the current state.
  [[nodiscard]] Mark mark() const noexcept { return {current_, used_, total_}; }
  /// Frees memory taken since the mark. It stays readable until the next `take`, and allocated for longer.
  void rewind(Mark const& mark) noexcept {
    current_ = mark.chunk;
    used_ = mark.used;
    total_ = mark.total;
  }

  /// Returns whether the next full `rewind` replaces the chunks by one and so releases memory that was allocated.
  [[nodiscard]] bool is_fragmented() const noexcept { return chunks_.size() > 1; }
  /// Returns the index of the chunk that contains memory taken since the last full `rewind`.
  [[nodiscard]] std::size_t chunk_of(std::byte const* data) const noexcept {
    std::size_t chunk = 0;
    while (chunk + 1 < chunks_.size() &&
           !(data >= chunks_[chunk].data() && data < chunks_[chunk].data() + chunks_[chunk].bytes()))
      ++chunk;
    return chunk;
  }
  /// Returns the most bytes that were in use at a time.
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_; }
  /// Returns the bytes of all chunks.
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return capacity_; }
  /// Returns the number of chunks ever allocated. While it is unchanged, equal sequences of takes return equal
  /// addresses.
  [[nodiscard]] std::uint64_t allocations() const noexcept { return allocations_; }

 private:
  static constexpr std::size_t max_bytes = static_cast<std::size_t>(PTRDIFF_MAX);

  void grow(std::size_t bytes);

  Resource resource_;
  std::size_t min_chunk_bytes_;
  std::vector<Block> chunks_;
  std::size_t current_ = 0, used_ = 0, total_ = 0, peak_ = 0, capacity_ = 0;
  std::uint64_t allocations_ = 0;
};

template <MemoryResource Resource>
void Scratch<Resource>::rewind() {
  rewind(Mark{});
  if (chunks_.size() <= 1) return;
  if (chunks_.back().bytes() >= peak_) {
    auto last = std::move(chunks_.back());
    chunks_.clear();
    chunks_.push_back(std::move(last));
    capacity_ = chunks_.back().bytes();
    return;
  }
  chunks_.clear();
  capacity_ = 0;
  grow(peak_);
}

template <MemoryResource Resource>
void Scratch<Resource>::grow(std::size_t bytes) {
  if (!chunks_.empty()) bytes += bytes / 8;  // slack for small takes that follow
  chunks_.push_back(resource_.allocate(std::max({bytes, min_chunk_bytes_, capacity_})));
  ++allocations_;
  capacity_ += chunks_.back().bytes();
  current_ = chunks_.size() - 1;
  used_ = 0;
}

#if defined(LOCKSTEP_COMPILED)
extern template class Scratch<HostResource>;
extern template class Scratch<AnyHostResource>;
#endif

}}}  // namespace lockstep::memory
