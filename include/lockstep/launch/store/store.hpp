// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/store_line.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// A rank's connection to the StoreServer of its run. Not thread-safe. The destructor tells the server that the rank
/// leaves; a rank that ends without it is lost.
class Store {
 public:
  using Options = detail::StoreAddress;
  /// Contribution of one rank.
  struct Part {
    int rank;
    std::string_view bytes;
  };

  /// @throws ConfigError if no server is found in time, or it refuses this rank
  explicit Store(Options options) : line_(std::move(options), detail::StoreLineKind::calls) {}
  /// Takes over an existing connection.
  explicit Store(detail::StoreLine line) : line_(std::move(line)) {}
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;
  ~Store() {
    auto const message = detail::store_message(static_cast<std::uint8_t>(detail::StoreCall::leave), {}, {});
    (void)::send(line_.descriptor(), message.data(), message.size(), MSG_NOSIGNAL);
  }

  /// Stores the bytes under the name and replaces its previous value.
  /// @param bytes at most 1 MiB
  /// @throws CommunicationError if the server cannot be reached
  void set(std::string_view name, std::string_view bytes) { (void)call(detail::StoreCall::set, name, bytes); }
  /// Waits until a rank has set the name, and returns its bytes.
  /// @throws RankLost if a rank is lost before the name is set; CommunicationError if the server cannot be reached, or
  /// after `wait_seconds`
  [[nodiscard]] std::string get(std::string_view name) { return call(detail::StoreCall::get, name, {}); }
  /// Adds to the number under the name and returns the sum. An unset name counts as 0.
  std::int64_t add(std::string_view name, std::int64_t more) {
    auto const text = call(detail::StoreCall::add, name, {reinterpret_cast<char const*>(&more), sizeof more});
    std::int64_t sum = 0;
    std::memcpy(&sum, text.data(), text.size() < sizeof sum ? text.size() : sizeof sum);
    return sum;
  }

  /// Contributes this rank's bytes to a gather of `members` ranks under the name. The name is free again once all have
  /// contributed.
  /// @param bytes at most 1 MiB
  void contribute(std::string_view name, std::string_view bytes, int members) {
    line_.send(message_of(detail::StoreCall::gather, name, bytes, members));
  }
  /// Contributes without blocking. If the server does not take all bytes at once, calls `await(done)`, which must
  /// return once `done()` is true.
  template <class Await>
  void contribute(std::string_view name, std::string_view bytes, int members, Await const& await) {
    auto const message = message_of(detail::StoreCall::gather, name, bytes, members);
    std::string_view rest = message;
    auto const done = [&] { return rest.remove_prefix(line_.offer(rest)), rest.empty(); };
    if (!done()) await(done);
  }
  /// Returns whether all have contributed under the name. If so, calls `take(Part)` for each rank, in rank order. Does
  /// not wait.
  /// @throws CommunicationError if the server cannot be reached
  template <class Take>
  [[nodiscard]] bool gathered(std::string const& name, Take&& take) {
    auto found = gathered_.find(name);
    for (; found == gathered_.end(); found = gathered_.find(name)) {  // no further: the connection may have ended
      auto message = line_.next();
      if (!message) return false;
      static_cast<void>(keep(*message));
    }
    std::string_view rest = found->second;
    while (!rest.empty()) {
      std::int32_t head[2];
      if (rest.size() < sizeof head) line_.throw_no_store();
      std::memcpy(head, rest.data(), sizeof head);
      rest.remove_prefix(sizeof head);
      auto const [rank, bytes] = head;
      if (rank < 0 || rank >= line_.address().size || bytes < 0 || rest.size() < static_cast<std::size_t>(bytes))
        line_.throw_no_store();
      take(Part{rank, rest.substr(0, static_cast<std::size_t>(bytes))});
      rest.remove_prefix(static_cast<std::size_t>(bytes));
    }
    gathered_.erase(found);
    return true;
  }
  /// Returns the ranks of `members` that have not contributed under the name; this rank has. Returns nullopt if the
  /// server does not answer within four seconds or `silence_seconds`, whichever is less, or once `over()` is true.
  /// @throws CommunicationError if the server cannot be reached
  template <class Over>
  [[nodiscard]] std::optional<std::vector<int>> missing(std::string_view name, std::span<int const> members,
                                                        Over const& over) {
    if (!line_.takes()) return std::nullopt;
    line_.send(message_of(detail::StoreCall::contributors, name, {}));
    std::optional<std::string> answer;
    for (auto const end = deadline_in(std::min(line_.address().silence_seconds, detail::most_answer_seconds));
         !answer && !over();) {
      if (Clock::nanoseconds() >= end) break;
      answer = this->answer(deadline_in(0.02), name);
    }
    if (!answer) {
      ++late_;
      return std::nullopt;
    }
    auto const& text = *answer;
    std::vector<int> come(text.size() / sizeof(int)), out;
    if (come.empty()) return out;  // the last rank has contributed since, and the name is free again
    std::memcpy(come.data(), text.data(), come.size() * sizeof(int));
    for (int const rank : members)
      if (std::find(come.begin(), come.end(), rank) == come.end()) out.push_back(rank);
    return out;
  }
  /// Returns a file descriptor that is readable once the server has sent something.
  [[nodiscard]] int descriptor() const noexcept { return line_.descriptor(); }
  /// Returns how many bytes each of `members` ranks may contribute so that the answer stays small.
  [[nodiscard]] static constexpr std::size_t part_bytes(int members) noexcept {
    return detail::most_store_bytes / static_cast<std::size_t>(members);
  }

 private:
  static std::string message_of(detail::StoreCall what, std::string_view key, std::string_view value, int members = 0) {
    if (key.size() > detail::most_store_bytes || value.size() > detail::most_store_bytes)
      throw ConfigError("Store: '" + std::string(key.substr(0, 64)) + "' has " + std::to_string(value.size()) +
                        " bytes; at most " + std::to_string(detail::most_store_bytes) + " can be stored");
    return detail::store_message(static_cast<std::uint8_t>(what), key, value, members);
  }
  std::string call(detail::StoreCall what, std::string_view key, std::string_view value) {
    line_.send(message_of(what, key, value));
    if (auto text = answer(deadline_in(line_.address().wait_seconds), key)) return std::move(*text);
    throw CommunicationError("Store: rank " + std::to_string(line_.address().rank) + " received no '" +
                             std::string(key) + "' in time from " + line_.where());
  }
  /// Returns the answer to the last call, or nullopt at the deadline.
  std::optional<std::string> answer(Deadline deadline, std::string_view key) {
    while (auto message = line_.wait(deadline)) {
      if (keep(*message)) continue;
      switch (message->what) {
        case detail::StoreReply::lost:
          throw RankLost(message->rank, message->value + "; rank " + std::to_string(line_.address().rank) +
                                            " was waiting for '" + std::string(key) + "'");
        case detail::StoreReply::refused:
          throw ConfigError("Store: " + line_.where() + " refuses: " + message->value);
        default:
          return std::move(message->value);
      }
    }
    return std::nullopt;
  }
  /// Keeps gathered contributions and drops late answers. Returns whether the message was one of these.
  bool keep(detail::StoreLine::Message& message) {
    if (message.what == detail::StoreReply::gathered) {
      gathered_[std::move(message.key)] = std::move(message.value);
      return true;
    }
    if (late_ == 0) return false;
    --late_;
    return true;
  }

  detail::StoreLine line_;
  int late_ = 0;  // expected answers that are no longer of interest
  std::map<std::string, std::string> gathered_;
};

}}}  // namespace lockstep::launch
