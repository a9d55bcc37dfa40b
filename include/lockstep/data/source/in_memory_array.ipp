// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/free_memory.hpp>
#include <lockstep/data/source/in_memory_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE FileArray in_memory_array(std::string const& path, NumberType type, std::vector<Index> const& shape,
                                          std::function<void(std::span<std::byte>)> const& fill,
                                          std::string const& remedy, FileArray::Order order) {
  Index count = type.bytes;
  bool fits = true;
  for (auto const extent : shape) fits = fits && extent >= 0 && !__builtin_mul_overflow(count, extent, &count);
  if (!fits) throw DataError(path + ": has an extent that is negative, or a size that no memory can hold");
  auto const bytes = static_cast<std::size_t>(count);
  auto const refuse = [&](std::string const& free) {
    throw OutOfMemoryError(path + ": needs " + memory_size(static_cast<double>(bytes)) + " of memory, and " + free +
                           "; " + remedy);
  };
  auto const memory = FreeMemory::of_host();
  if (memory && memory->free_bytes < bytes) refuse(memory->text());
  // A file in memory, so that arrays of both kinds are read in the same way.
  FileDescriptor file(::memfd_create("lockstep-array", MFD_CLOEXEC));
  if (file.get() < 0 || ::ftruncate(file.get(), static_cast<::off_t>(bytes)) != 0) refuse("the system refused it");
  if (bytes > 0) {
    auto* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) refuse("the system refused it");
    auto const unmap = [bytes](void* begin) { ::munmap(begin, bytes); };
    std::unique_ptr<void, decltype(unmap)> const mapping(at, unmap);
    fill({static_cast<std::byte*>(at), bytes});
  }
  return FileArray(std::make_shared<detail::DataFile const>(path, std::move(file)), type, shape, 0, order);
}

}}}  // namespace lockstep::data
