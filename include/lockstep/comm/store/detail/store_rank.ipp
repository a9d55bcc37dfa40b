// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/store/detail/store_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE void StoreRank::start(CollectiveOperation& operation) {
  check(operation, rank_, size());
  operation.started_seconds = Clock::seconds();
  operation.finished_seconds = 0;
  operations_.push_back(&operation);
  if (failure_) return;
  keep_error([&] { contribute(operation, oldest_ + static_cast<std::uint32_t>(operations_.size()) - 1, 0); });
  progress();
}

LOCKSTEP_INLINE void StoreRank::progress() {
  while (!failure_ && !operations_.empty()) {
    bool advanced = false;
    keep_error([&] { advanced = advance(); });
    if (!advanced) return;
  }
}

LOCKSTEP_INLINE void StoreRank::wait(CollectiveOperation const& operation) {
  wait_until([&] { return operation.complete(); });
}

LOCKSTEP_INLINE void StoreRank::finish() {
  wait_until([&] { return operations_.empty(); });
}

LOCKSTEP_INLINE std::unique_ptr<StoreRank> StoreRank::split(int color, int key) {
  struct Entry {
    int color, key;
  };
  Entry const mine{color, key};
  std::vector<Entry> all(members_.size());
  CollectiveOperation gather{.type = ElementType::uint8,
                             .data = all.data(),
                             .count = sizeof mine,
                             .collective = Collective::all_gather,
                             .in = &mine};
  start(gather);
  finish();
  std::vector<int> order;
  for (int r = 0; r < size(); ++r)
    if (all[static_cast<std::size_t>(r)].color == color) order.push_back(r);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return all[static_cast<std::size_t>(a)].key < all[static_cast<std::size_t>(b)].key;
  });
  for (auto& r : order) r = members_[static_cast<std::size_t>(r)];
  auto const name = name_ + "." + std::to_string(oldest_) + ":" + std::to_string(color);  // equal only on its ranks
  return std::unique_ptr<StoreRank>(new StoreRank(watch_.world(), name, std::move(order)));
}

LOCKSTEP_INLINE StoreRank::StoreRank(launch::World const& world, std::string name, std::vector<int> members)
    : name_(std::move(name)),
      members_(std::move(members)),
      watch_(world, members_),
      store_(*watch_.world().store),
      group_ranks_(static_cast<std::size_t>(world.size), -1),
      contributions_(members_.size()),
      inputs_(members_.size()) {
  for (std::size_t i = 0; i < members_.size(); ++i)
    group_ranks_[static_cast<std::size_t>(members_[i])] = static_cast<int>(i);
  rank_ = group_ranks_[static_cast<std::size_t>(world.rank)];
}

LOCKSTEP_INLINE std::vector<int> StoreRank::first_ranks(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

LOCKSTEP_INLINE std::string StoreRank::key_of(std::uint32_t number, Index chunk) const {
  return name_ + "/" + std::to_string(number) + "/" + std::to_string(chunk);
}

LOCKSTEP_INLINE Index StoreRank::chunk_elements(CollectiveOperation const& operation) const noexcept {
  constexpr auto header_bytes =
      sizeof(Descriptor) + sizeof(double) * static_cast<std::size_t>(CollectiveOperation::max_piggybacked_scalars);
  auto const bytes = static_cast<Index>(launch::Store::part_bytes(size()) - header_bytes);
  return std::max<Index>(1, bytes / element_bytes(operation) / input_parts(operation, size()));
}

LOCKSTEP_INLINE StoreRank::Range StoreRank::range(CollectiveOperation const& operation, int rank,
                                                  Index chunk) const noexcept {
  auto const begin = chunk * chunk_elements(operation);
  bool const has_input = operation.collective != Collective::broadcast || rank == operation.root;
  return {begin,
          has_input ? std::clamp<Index>(part_elements(operation, rank) - begin, 0, chunk_elements(operation)) : 0};
}

LOCKSTEP_INLINE void StoreRank::contribute(CollectiveOperation const& operation, std::uint32_t number, Index chunk) {
  message_.clear();
  auto const add = [&](void const* data, std::size_t bytes) {
    if (bytes > 0) message_.append(static_cast<char const*>(data), bytes);
  };
  if (chunk == 0) {
    auto const mine = descriptor_of(operation, rank_);
    add(&mine, sizeof mine);
    add(operation.piggybacked_scalars.data(), operation.piggybacked_scalars.size_bytes());
  }
  auto const [begin, count] = range(operation, rank_, chunk);
  for (Index part = 0; part < input_parts(operation, size()); ++part)
    add(static_cast<std::byte const*>(input_of(operation)) +
            (part * operation.count + begin) * element_bytes(operation),
        static_cast<std::size_t>(count * element_bytes(operation)));
  store_.contribute(key_of(number, chunk), message_, size(), [this](auto const& sent) {
    watch_.wait_until(
        sent, [this] { return describe_wait(); }, [] { return std::vector{0}; });  // rank 0 owns the store
  });
}

LOCKSTEP_INLINE bool StoreRank::advance() {
  std::size_t contributors = 0;
  bool const arrived = store_.gathered(key_of(oldest_, chunk_), [&](launch::Store::Part part) {
    auto const rank = group_ranks_[static_cast<std::size_t>(part.rank)];
    if (rank < 0)
      throw CommunicationError("rank " + std::to_string(part.rank) + " has contributed to operation " +
                               std::to_string(oldest_) + " of a group that it does not belong to");
    contributions_[static_cast<std::size_t>(rank)].assign(part.bytes);
    ++contributors;
  });
  if (!arrived) return false;
  if (contributors != members_.size())
    throw CommunicationError("only " + std::to_string(contributors) + " of " + std::to_string(members_.size()) +
                             " ranks have contributed to operation " + std::to_string(oldest_));
  auto& operation = *operations_.front();
  std::size_t header_bytes = 0;
  if (chunk_ == 0) {
    throw_if_mismatched(operation);
    header_bytes = sizeof(Descriptor) + operation.piggybacked_scalars.size_bytes();
  }
  check_contributions(operation, header_bytes);
  if (chunk_ == 0) {
    if (!operation.piggybacked_scalars.empty()) {
      set_inputs(sizeof(Descriptor));
      void* const out = operation.piggybacked_scalars.data();
      reduce_range(Reduction::sum, ElementType::float64, inputs_.data(), size(), &out, 1, 0,
                   std::ssize(operation.piggybacked_scalars));
    }
  }
  compute(operation, header_bytes);
  if ((chunk_ + 1) * chunk_elements(operation) < largest_part(operation)) {
    contribute(operation, oldest_, ++chunk_);
    return true;
  }
  operation.finished_seconds = Clock::seconds();
  operations_.pop_front();
  ++oldest_;
  chunk_ = 0;
  return true;
}

LOCKSTEP_INLINE void StoreRank::set_inputs(std::size_t offset) {
  for (std::size_t r = 0; r < inputs_.size(); ++r) inputs_[r] = contributions_[r].data() + offset;
}

LOCKSTEP_INLINE void StoreRank::compute(CollectiveOperation const& operation, std::size_t header_bytes) {
  auto const bytes_each = element_bytes(operation);
  auto* const out = static_cast<std::byte*>(operation.data);
  if (reduces(operation.collective)) {
    auto const [begin, count] = range(operation, rank_, chunk_);
    auto const slice = operation.collective == Collective::reduce_scatter ? rank_ * count * bytes_each : Index{0};
    set_inputs(header_bytes + static_cast<std::size_t>(slice));
    void* const to = out + begin * bytes_each;
    reduce_range(operation.reduction, operation.type, inputs_.data(), size(), &to, 1, 0, count);
    return;
  }
  Index offset = 0;  // offset of a part in the result
  for (int r = 0; r < size(); ++r) {
    auto const [begin, count] = range(operation, r, chunk_);
    if (count > 0)
      std::memcpy(out + (offset + begin) * bytes_each,
                  contributions_[static_cast<std::size_t>(r)].data() + header_bytes,
                  static_cast<std::size_t>(count * bytes_each));
    if (operation.collective == Collective::all_gather) offset += part_elements(operation, r);
  }
}

LOCKSTEP_INLINE void StoreRank::throw_wrong_size(int rank, std::size_t expected) const {
  throw CommunicationError(watch_.rank_name(rank) + " has contributed " +
                           std::to_string(contributions_[static_cast<std::size_t>(rank)].size()) + " bytes to " +
                           describe_wait() + ", and " + std::to_string(expected) +
                           " were expected; start the same program everywhere");
}

LOCKSTEP_INLINE void StoreRank::check_contributions(CollectiveOperation const& operation,
                                                    std::size_t header_bytes) const {
  for (int r = 0; r < size(); ++r) {
    auto const elements = range(operation, r, chunk_).count * input_parts(operation, size());
    auto const bytes = header_bytes + static_cast<std::size_t>(elements * element_bytes(operation));
    if (contributions_[static_cast<std::size_t>(r)].size() != bytes) throw_wrong_size(r, bytes);
  }
}

LOCKSTEP_INLINE void StoreRank::throw_if_mismatched(CollectiveOperation const& operation) const {
  Descriptor other;
  for (int r = 0; r < size(); ++r) {
    auto const& contribution = contributions_[static_cast<std::size_t>(r)];
    if (contribution.size() < sizeof other) throw_wrong_size(r, sizeof other);
    std::memcpy(&other, contribution.data(), sizeof other);
    if (!is_valid(other))
      throw CommunicationError(watch_.rank_name(r) + " has sent an unknown operation in " + describe_wait() +
                               "; start the same program everywhere");
  }
  auto const message = mismatch_message(
      "operation " + std::to_string(oldest_), rank_, size(), descriptor_of(operation, rank_),
      [&](int r) { return watch_.rank_name(r); },
      [&](int r) {
        std::memcpy(&other, contributions_[static_cast<std::size_t>(r)].data(), sizeof other);
        return &other;
      });
  if (!message.empty()) throw CollectiveMismatch(message);
}

LOCKSTEP_INLINE std::string StoreRank::describe_wait() const {
  return "operation " + std::to_string(oldest_) +
         (operations_.empty() ? "" : " (" + describe(descriptor_of(*operations_.front(), rank_)) + ")");
}

LOCKSTEP_INLINE std::vector<int> StoreRank::missing() {
  try {
    auto const rank_lost = [this] { return watch_.lost_rank() >= 0; };
    if (auto late = store_.missing(key_of(oldest_, chunk_), members_, rank_lost)) return std::move(*late);
  } catch (CommunicationError const& error) {
    watch_.throw_with_cause(error.what(), describe_wait());
  }
  return {0};
}

}}}  // namespace lockstep::comm::detail
