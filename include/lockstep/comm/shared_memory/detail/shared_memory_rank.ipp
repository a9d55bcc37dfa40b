// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/shared_memory/detail/shared_memory_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE SharedMemoryRank::SharedMemoryRank(launch::World const& world)
    : SharedMemoryRank(GroupMemory(world.segment, world.size), world.rank, {world.limits, world.warn}, heap_of(world)) {
}

LOCKSTEP_INLINE SharedMemoryRank::~SharedMemoryRank() {
  std::erase(heap_->communicators, this);
  for (; !requests_.empty(); requests_.pop())
    heap_->abandoned_addresses.push_back(requests_[requests_.first()].address);
  mine().connected.store(0);
}

LOCKSTEP_INLINE void SharedMemoryRank::start(CollectiveOperation& operation) {
  check(operation, rank_, size());
  operation.started_seconds = Clock::coarse_seconds();
  operation.finished_seconds = 0;
  push(operation, input_bytes(operation, rank_, size()) > 0 ? memory_.address(input_of(operation)) : Index{-1});
  if (!failure_ && !mismatch_) publish_next();
  operation.started_seconds = Clock::seconds();  // before the others have seen it
  progress();
}

LOCKSTEP_INLINE void SharedMemoryRank::progress() {
  while (!mismatch_ && !failure_ && (publish_next() || combine_next() || complete_next())) {
  }
}

LOCKSTEP_INLINE void SharedMemoryRank::wait(CollectiveOperation const& operation) {
  wait_until([&] { return operation.complete(); });
}

LOCKSTEP_INLINE void SharedMemoryRank::finish() {
  wait_until([&] { return requests_.empty(); });
}

LOCKSTEP_INLINE std::byte* SharedMemoryRank::allocate(std::size_t bytes) {
  auto* const data = allocate_block(bytes);
  try {
    populate(data, bytes);
    auto const number = requests_.end();
    CollectiveOperation allocation{.type = ElementType::uint8,
                                   .count = static_cast<Index>(bytes),
                                   .collective = Collective::allocate,
                                   .started_seconds = Clock::coarse_seconds()};
    push(allocation, memory_.offset(data));
    finish();
    for (int r = 0; r < size(); ++r)
      populate(memory_.at(memory_.block(r).slot[slot_of(number)].descriptor.address()), bytes);
  } catch (...) {
    free(data, bytes);
    throw;
  }
  return data;
}

LOCKSTEP_INLINE void SharedMemoryRank::free(std::byte* data, std::size_t bytes) noexcept {
  if (is_in_use(data, bytes)) return;
  memory_.release_pages(data, (bytes + page - 1) / page * page);
  heap_->allocator.free(static_cast<std::size_t>(data - memory_.heap(rank_)));
}

LOCKSTEP_INLINE std::shared_ptr<SharedMemoryRank> SharedMemoryRank::split(int color, int key) {
  struct Entry {
    Index color, key, block;
  };
  auto const own_block = memory_.offset(allocate_block(sizeof(RankBlock)));
  Entry const entry{color, key, own_block};
  std::vector<Entry> all(static_cast<std::size_t>(size()));
  CollectiveOperation gather{.type = ElementType::uint8,
                             .data = all.data(),
                             .count = sizeof entry,
                             .collective = Collective::all_gather,
                             .in = &entry};
  start(gather);
  finish();
  auto const key_of = [&](int r) { return all[static_cast<std::size_t>(r)].key; };
  std::vector<int> order;  // by key, then by rank
  for (int r = 0; r < size(); ++r) {
    if (all[static_cast<std::size_t>(r)].color != color) continue;
    auto at = order.end();
    while (at != order.begin() && key_of(at[-1]) > key_of(r)) --at;
    order.insert(at, r);
  }
  std::vector<GroupMemory::Member> members;
  members.reserve(order.size());
  for (int const r : order)
    members.push_back(
        {memory_.run_rank(r), reinterpret_cast<RankBlock*>(memory_.at(all[static_cast<std::size_t>(r)].block))});
  auto settings = waiter_.settings();
  settings.is_part = true;
  auto const own_position = std::find(order.begin(), order.end(), rank_) - order.begin();
  return std::shared_ptr<SharedMemoryRank>(new SharedMemoryRank(
      GroupMemory(memory_, std::move(members)), static_cast<int>(own_position), std::move(settings), heap_));
}

LOCKSTEP_INLINE std::shared_ptr<RankHeap> SharedMemoryRank::heap_of(launch::World const& world) {
  auto& common = world.segment->shared_object(world.rank);
  if (!common) common = std::make_shared<RankHeap>(GroupMemory(world.segment, world.size).heap_bytes());
  return std::static_pointer_cast<RankHeap>(common);
}

LOCKSTEP_INLINE SharedMemoryRank::SharedMemoryRank(GroupMemory memory, int rank, RankWaiter::Settings settings,
                                                   std::shared_ptr<RankHeap> heap)
    : rank_(rank),
      memory_(std::move(memory)),
      waiter_(memory_, rank_, std::move(settings)),
      transfer_(memory_, rank_),
      heap_(std::move(heap)),
      requests_(mine().posted.signal.load()),
      published_(requests_.first()),
      combining_(requests_.first()),
      all_done_(requests_.first() - RankBlock::slots),
      chunks_(mine().staged.signal.load()),
      oversubscribed_(memory_.control().head.size > ::sysconf(_SC_NPROCESSORS_ONLN)) {
  auto const refuse = [&](char const* why) {
    throw ConfigError("comm::connect: rank " + std::to_string(rank_) + " " + why);
  };
  if (mine().done.signal.load() != requests_.first())
    refuse("was connected before, and gave up in the middle of an operation; end the run");
  if (mine().connected.exchange(1) != 0)
    refuse("is connected already; pass on its communicator, destroy it first, or make others with split(0, rank)");
  heap_->communicators.push_back(this);
}

LOCKSTEP_INLINE bool SharedMemoryRank::is_in_use(std::byte const* data, std::size_t bytes) const noexcept {
  auto const begin = memory_.offset(data), end = begin + static_cast<Index>(bytes);
  auto const is_inside = [&](Index address) { return begin <= address && address < end; };
  for (auto* const one : heap_->communicators)
    for (auto number = one->requests_.first(); number != one->requests_.end(); ++number)
      if (is_inside(one->requests_[number].address)) return true;
  return std::any_of(heap_->abandoned_addresses.begin(), heap_->abandoned_addresses.end(), is_inside);
}

LOCKSTEP_INLINE std::byte* SharedMemoryRank::allocate_block(std::size_t bytes) {
  bytes = (bytes + page - 1) / page * page;
  auto const at =
      heap_->allocator.allocate(bytes, bytes >= launch::SharedSegment::unit ? launch::SharedSegment::unit : page);
  if (at == SymmetricHeap::none) throw std::bad_alloc();
  return memory_.heap(rank_) + at;
}

LOCKSTEP_INLINE void SharedMemoryRank::push(CollectiveOperation& operation, Index address) {
  requests_.push({.operation = &operation, .address = address});
}

LOCKSTEP_INLINE bool SharedMemoryRank::publish_next() {
  if (published_ == requests_.end() || published_ - requests_.first() == RankBlock::slots) return false;
  if (!slot_is_free(published_ - RankBlock::slots + 1)) return false;
  auto& request = requests_[published_];
  auto const& operation = *request.operation;
  auto& slot = mine().slot[slot_of(published_)];
  post_input(request, slot);
  std::copy(operation.piggybacked_scalars.begin(), operation.piggybacked_scalars.end(), slot.scalars.begin());
  slot.descriptor.store(descriptor_of(operation, rank_, request.address), published_);
  mine().posted.signal.post(++published_);
  return true;
}

LOCKSTEP_INLINE bool SharedMemoryRank::slot_is_free(std::uint32_t target) noexcept {
  if (reached(all_done_, target)) return true;
  all_done_ = mine().done.signal.load();
  for (int r = 0; r < size(); ++r) {
    auto const done = memory_.block(r).done.signal.load();
    if (reached(all_done_, done)) all_done_ = done;
  }
  return reached(all_done_, target) || waiter_.all_reached(&RankBlock::done, target);
}

LOCKSTEP_INLINE void SharedMemoryRank::post_input(Request& request, Slot& slot) {
  auto const& operation = *request.operation;
  auto const bytes = static_cast<std::size_t>(input_bytes(operation, rank_, size()));
  if (bytes == 0) return;
  bool const small = is_small(operation);
  request.copied = !small && request.address < 0 && bytes <= Slot::copy_bytes;
  if (small || request.copied) {
    std::memcpy(slot.input.data(), input_of(operation), bytes);
    largest_posted_ = std::max(largest_posted_, bytes);
  }
  if (request.copied) request.address = memory_.offset(slot.input.data());
}

LOCKSTEP_INLINE bool SharedMemoryRank::is_small(CollectiveOperation const& operation) const noexcept {
  return largest_input_bytes(operation, size()) <= static_cast<Index>(Slot::small_bytes);
}

LOCKSTEP_INLINE bool SharedMemoryRank::combine_next() {
  if (combining_ == published_) return false;
  auto& request = requests_[combining_];
  switch (phase_) {
    case Phase::match:
      return match(request);
    case Phase::stage:
      return stage(request);
    case Phase::combine:
      return combine_chunk(request);
    case Phase::unload:
      return unload(request);
  }
  return false;
}

LOCKSTEP_INLINE bool SharedMemoryRank::match(Request& request) {
  auto const& operation = *request.operation;
  if (!waiter_.all_posted(combining_)) return false;
  bool const small = is_small(operation);
  bool reachable = true;
  auto const expected = descriptor_of(operation, rank_);
  for (int r = 0; r < size(); ++r) {
    auto const other = memory_.block(r).slot[slot_of(combining_)].descriptor.load();
    if (!matches(expected, other)) mismatch_ = true;
    reachable = reachable && (other.address >= 0 || input_bytes(operation, r, size()) == 0);
  }
  if (mismatch_) return false;
  transfer_.sum_scalars(operation, slot_of(combining_));
  request.needs_all = !small;
  if (request.needs_all && !reachable) {
    request.needs_all = false;  // its chunks synchronize on their own
    chunk_begin_ = 0;
    phase_ = Phase::stage;
    return true;
  }
  if (small) {
    transfer_.combine_small(operation, slot_of(combining_));
  } else {
    prefetch_to_write(&mine().done);  // a rank that waited for the last operation has the line
    transfer_.combine(operation, slot_of(combining_), 0, largest_part(operation));
  }
  mine().done.signal.post(++combining_);
  return true;
}

LOCKSTEP_INLINE bool SharedMemoryRank::staged(Request const& request) const noexcept {
  return request.address < 0 && input_bytes(*request.operation, rank_, size()) > 0;
}

LOCKSTEP_INLINE Index SharedMemoryRank::chunk(CollectiveOperation const& operation) const noexcept {
  return std::min(
      largest_part(operation) - chunk_begin_,
      static_cast<Index>(RankBlock::staging_bytes) / element_bytes(operation) / input_parts(operation, size()));
}

LOCKSTEP_INLINE bool SharedMemoryRank::stage(Request const& request) {
  auto const& operation = *request.operation;
  if (staged(request)) transfer_.stage(operation, chunk_begin_, chunk(operation), mine().staging.data());
  mine().staged.signal.post(++chunks_);
  phase_ = Phase::combine;
  return true;
}

LOCKSTEP_INLINE bool SharedMemoryRank::combine_chunk(Request const& request) {
  auto const& operation = *request.operation;
  if (!waiter_.all_reached(&RankBlock::staged, chunks_)) return false;
  transfer_.combine(operation, slot_of(combining_), chunk_begin_, chunk(operation));
  mine().combined.signal.post(chunks_);
  phase_ = Phase::unload;
  return true;
}

LOCKSTEP_INLINE bool SharedMemoryRank::unload(Request const& request) {
  auto const& operation = *request.operation;
  if (!waiter_.all_reached(&RankBlock::combined, chunks_)) return false;
  auto const size = element_bytes(operation);
  auto const n = chunk(operation);
  if (operation.collective == Collective::all_reduce && staged(request))
    std::memcpy(static_cast<std::byte*>(operation.data) + chunk_begin_ * size, mine().staging.data(),
                static_cast<std::size_t>(n * size));
  chunk_begin_ += n;
  phase_ = chunk_begin_ < largest_part(operation) ? Phase::stage : Phase::match;
  if (phase_ == Phase::match) mine().done.signal.post(++combining_);
  return true;
}

LOCKSTEP_INLINE bool SharedMemoryRank::complete_next() {
  if (requests_.first() == combining_) return false;
  auto const& request = requests_[requests_.first()];
  auto& operation = *request.operation;
  if (request.needs_all && !waiter_.all_reached(&RankBlock::done, requests_.first() + 1)) return false;
  if (request.copied && operation.collective == Collective::all_reduce)
    std::memcpy(operation.data, mine().slot[slot_of(requests_.first())].input.data(),
                static_cast<std::size_t>(input_bytes(operation, rank_, size())));
  operation.finished_seconds = Clock::seconds();
  requests_.pop();
  if (requests_.empty()) prefetch_next_slot();
  return true;
}

LOCKSTEP_INLINE void SharedMemoryRank::prefetch_next_slot() const noexcept {
  auto const& slot = mine().slot[slot_of(published_)];
  auto const* const from = reinterpret_cast<std::byte const*>(&slot);
  auto const bytes = offsetof(Slot, input) + largest_posted_;
  for (std::size_t at = 0; at < bytes; at += line_bytes) prefetch_to_write(from + at);
}

LOCKSTEP_INLINE void SharedMemoryRank::populate(std::byte* data, std::size_t bytes) noexcept {
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE; older kernels reject it, and pages fault later
  if (bytes != 0) ::madvise(data, bytes, populate_write);
}

}}}  // namespace lockstep::comm::detail
