// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/file_mapping.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE void handle_sigbus(int, ::siginfo_t* info, void*) noexcept {
  auto const error = errno;
  auto const at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (auto place = 2 * page; place != 0 && info->si_code == BUS_ADRERR; place *= 2) {
    auto* const head = reinterpret_cast<MappingHeader*>(at & ~(place - 1));
    struct {
      alignas(MappingHeader) std::array<std::byte, sizeof(MappingHeader)> bytes;
    } copy;  // read by the system, which accepts unmapped addresses
    ::iovec const to{&copy, sizeof copy}, from{head, sizeof copy};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != static_cast<::ssize_t>(sizeof copy)) continue;
    auto const& found = *std::launder(reinterpret_cast<MappingHeader const*>(&copy));
    if (found.magic != MappingHeader::magic_number || found.self != reinterpret_cast<std::uintptr_t>(head) ||
        at < found.begin || at >= found.end)
      continue;
    head->is_truncated.store(1);
    auto const first_missing = at / page * page;
    // Not the library's mmap, which ThreadSanitizer treats as a write to memory that other threads read.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (::syscall(SYS_mmap, first_missing, found.end - first_missing, PROT_READ, flags, -1, 0) == -1) break;
    errno = error;
    return;
  }
  ::sigaction(SIGBUS, &previous_sigbus_action, nullptr);  // the access is repeated and runs this handler
}

LOCKSTEP_INLINE FileMapping::FileMapping(std::shared_ptr<DataFile const> file) : file_(std::move(file)) {
  auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto const bytes = (file_->size() + page - 1) / page * page;
  auto const place = std::bit_ceil(page + bytes);
  // Reserves twice the size, and unmaps everything outside the part that is aligned to its size.
  auto* const reserved = ::mmap(nullptr, 2 * place, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) fail();
  auto const begin = reinterpret_cast<std::uintptr_t>(reserved), at = (begin + place - 1) / place * place;
  if (at > begin) ::munmap(reserved, at - begin);
  ::munmap(reinterpret_cast<void*>(at + place), begin + place - at);
  mapping_ = Mapping{reinterpret_cast<void*>(at), place};
  map(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  header_ = new (mapping_.at) MappingHeader;
  header_->self = at;
  header_->begin = at + page;
  header_->end = at + page + bytes;
  if (bytes > 0) map(at + page, bytes, PROT_READ, MAP_SHARED, file_->descriptor());
}

LOCKSTEP_INLINE void FileMapping::read(std::uint64_t offset, std::span<std::byte> out) const {
  stream_copy(out.data(), reinterpret_cast<std::byte const*>(header_->begin) + offset, out.size());
  // If only the rest of the last page is missing, it reads as zeros without SIGBUS.
  if (header_->is_truncated.load() == 0 && file_->size_now() >= offset + out.size()) return;
  file_->fail("was shortened while it was mapped; leave it alone while training, and open it again");
}

LOCKSTEP_INLINE FileMapping::Mapping& FileMapping::Mapping::operator=(Mapping&& other) noexcept {
  std::swap(at, other.at);
  std::swap(bytes, other.bytes);
  return *this;
}

LOCKSTEP_INLINE FileMapping::Mapping::~Mapping() {
  if (at != nullptr) ::munmap(at, bytes);
}

LOCKSTEP_INLINE void FileMapping::map(std::uintptr_t at, std::size_t bytes, int protection, int flags, int file) const {
  if (::mmap(reinterpret_cast<void*>(at), bytes, protection, flags | MAP_FIXED, file, 0) == MAP_FAILED) fail();
}

}}}  // namespace lockstep::data::detail
