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

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// A rank's connection to the StoreServer of its run. Not thread-safe. Leaving is the destructor's; a rank that ends
/// without it is lost.
class Store {
 public:
  using Options = detail::StoreAddress;
  /// What a rank gave.
  struct Part {
    int rank;
    std::string_view bytes;
  };

  /// @throws ConfigError when no server is found in time, or it refuses this rank
  explicit Store(Options options) : line_(std::move(options), detail::StoreLineKind::calls) {}
  /// Takes over a line of calls.
  explicit Store(detail::StoreLine line) : line_(std::move(line)) {}
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;
  ~Store() {
    auto const message = detail::store_message(static_cast<std::uint8_t>(detail::StoreCall::leave), {}, {});
    (void)::send(line_.descriptor(), message.data(), message.size(), MSG_NOSIGNAL);
  }

  /// Makes the bytes known under the name, instead of what it had before; at most 1 MiB.
  /// @throws CommunicationError when the server cannot be reached
  void set(std::string_view name, std::string_view bytes) { (void)call(detail::StoreCall::set, name, bytes); }
  /// The bytes under the name, as soon as somebody has set them.
  /// @throws RankLost when they are not there and a rank is lost, CommunicationError when the server cannot be reached
  ///         or the time is over
  [[nodiscard]] std::string get(std::string_view name) { return call(detail::StoreCall::get, name, {}); }
  /// Adds to the number under the name, which begins with 0; the sum.
  std::int64_t add(std::string_view name, std::int64_t more) {
    auto const text = call(detail::StoreCall::add, name, {reinterpret_cast<char const*>(&more), sizeof more});
    std::int64_t sum = 0;
    std::memcpy(&sum, text.data(), text.size() < sizeof sum ? text.size() : sizeof sum);
    return sum;
  }

  /// Gives this rank's bytes, at most 1 MiB, to the `members` ranks that do so under the name, which is then free
  /// again.
  void contribute(std::string_view name, std::string_view bytes, int members) {
    line_.send(message_of(detail::StoreCall::gather, name, bytes, members));
  }
  /// The same. Where a part of it has to wait until the server takes more, `await(done)` is to return when `done()`.
  template <class Await>
  void contribute(std::string_view name, std::string_view bytes, int members, Await const& await) {
    auto const message = message_of(detail::StoreCall::gather, name, bytes, members);
    std::string_view rest = message;
    auto const done = [&] { return rest.remove_prefix(line_.offer(rest)), rest.empty(); };
    if (!done()) await(done);
  }
  /// Whether all have contributed under the name; then `take(Part)` is called for each, by rank. Does not wait.
  /// @throws CommunicationError when the server cannot be reached
  template <class Take>
  [[nodiscard]] bool gathered(std::string const& name, Take&& take) {
    auto found = gathered_.find(name);
    for (; found == gathered_.end(); found = gathered_.find(name)) {  // no further: behind it the line may have ended
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
  /// Which of the ranks have not contributed under the name so far; this rank has. None where the server does not say
  /// so for four seconds (at most `silence_seconds`), and whoever runs it stands still, or `over()` came true before.
  /// @throws CommunicationError when the server cannot be reached
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
    if (come.empty()) return out;  // the last one has come meanwhile, and the name is free again
    std::memcpy(come.data(), text.data(), come.size() * sizeof(int));
    for (int const rank : members)
      if (std::find(come.begin(), come.end(), rank) == come.end()) out.push_back(rank);
    return out;
  }
  /// Readable when the server has sent something.
  [[nodiscard]] int descriptor() const noexcept { return line_.descriptor(); }
  /// How many bytes each of `members` may contribute so that the answer stays small.
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
    throw CommunicationError("Store: rank " + std::to_string(line_.address().rank) + " has waited in vain for '" +
                             std::string(key) + "' of " + line_.where());
  }
  /// To what was asked last; none when it has not come by then.
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
  /// Whether the message is no answer that anybody waits for.
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
  int late_ = 0;  // answers to come for which nobody waits any more
  std::map<std::string, std::string> gathered_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
