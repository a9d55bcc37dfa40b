// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
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
#include <lockstep/launch/detail/store_connection.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// A rank's connection to the StoreServer of its run. Not thread-safe. The destructor tells the server that the rank
/// leaves; a rank that ends without it is lost.
class Store {
 public:
  /// Address and identity for a connection.
  using Options = detail::StoreAddress;
  /// Contribution of one rank.
  struct Part {
    int rank;                ///< that contributed
    std::string_view bytes;  ///< valid until the store's next call
  };

  /// @throws ConfigError if no server is found in time, or it refuses this rank
  explicit Store(Options options) : connection_(std::move(options), detail::StoreConnectionKind::requests) {}
  /// Takes over an existing connection.
  explicit Store(detail::StoreConnection connection) : connection_(std::move(connection)) {}
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;
  ~Store();

  /// Stores the bytes under the name and replaces its previous value.
  /// @param bytes at most 1 MiB
  /// @throws CommunicationError if the server cannot be reached; ConfigError if all values have more than 64 MiB
  void set(std::string_view name, std::string_view bytes) { (void)request(detail::StoreCall::set, name, bytes); }
  /// Waits until a rank has set the name, and returns its bytes.
  /// @throws RankLost if a rank is lost before the name is set; CommunicationError if the server cannot be reached, or
  /// after `wait_seconds`
  [[nodiscard]] std::string get(std::string_view name) { return request(detail::StoreCall::get, name, {}); }
  /// Adds to the number under the name and returns the sum. An unset name counts as 0.
  std::int64_t add(std::string_view name, std::int64_t more);

  /// Contributes this rank's bytes to a gather of `members` ranks under the name. The name is free again once all have
  /// contributed.
  /// @param bytes at most 1 MiB
  void contribute(std::string_view name, std::string_view bytes, int members);
  /// Contributes without blocking. If the server does not take all bytes at once, calls `await(done)`, which must
  /// return once `done()` is true.
  template <class Await>
  void contribute(std::string_view name, std::string_view bytes, int members, Await const& await) {
    auto const message = message_of(detail::StoreCall::gather, name, bytes, members);
    std::string_view rest = message;
    auto const done = [&] {
      rest.remove_prefix(connection_.send_some(rest));
      if (rest.empty()) return true;
      // The server takes nothing more from a rank that does not read its answers.
      if (auto answer = connection_.next()) static_cast<void>(handle_unsolicited(*answer));
      return false;
    };
    if (!done()) await(done);
  }
  /// Returns whether all have contributed under the name. If so, calls `visit(Part)` for each rank, in rank order. Does
  /// not wait.
  /// @throws CommunicationError if the server cannot be reached
  template <class Visit>
  [[nodiscard]] bool gathered(std::string const& name, Visit&& visit) {
    auto found = gathered_.find(name);
    for (; found == gathered_.end(); found = gathered_.find(name)) {  // no further: the connection may have ended
      auto message = connection_.next();
      if (!message) return false;
      static_cast<void>(handle_unsolicited(*message));
    }
    std::string_view rest = found->second;
    for (int last = -1; !rest.empty();) {
      std::int32_t head[2];
      if (rest.size() < sizeof head) connection_.throw_no_store();
      std::memcpy(head, rest.data(), sizeof head);
      rest.remove_prefix(sizeof head);
      auto const [rank, bytes] = head;
      if (rank <= last || rank >= connection_.address().size || bytes < 0 ||
          rest.size() < static_cast<std::size_t>(bytes))
        connection_.throw_no_store();
      last = rank;
      visit(Part{rank, rest.substr(0, static_cast<std::size_t>(bytes))});
      rest.remove_prefix(static_cast<std::size_t>(bytes));
    }
    gathered_bytes_ -= found->second.size();
    gathered_.erase(found);
    return true;
  }
  /// Returns the ranks of `members` that have not contributed under the name; this rank has. Returns nullopt if the
  /// server does not answer within four seconds or `silence_seconds`, whichever is less, or once `cancelled()` is true.
  /// @throws CommunicationError if the server cannot be reached
  template <class Cancelled>
  [[nodiscard]] std::optional<std::vector<int>> missing(std::string_view name, std::span<int const> members,
                                                        Cancelled const& cancelled) {
    if (!connection_.can_send()) return std::nullopt;
    auto const end = deadline_in(std::min(connection_.address().silence_seconds, detail::max_answer_seconds));
    connection_.send(message_of(detail::StoreCall::contributors, name, {}), end);
    std::optional<std::string> answer;
    while (!answer && !cancelled()) {
      if (Clock::nanoseconds() >= end) break;
      answer = this->answer(deadline_in(0.02), name);
    }
    if (!answer) {
      ++stale_answers_;
      return std::nullopt;
    }
    auto const& text = *answer;
    std::vector<int> contributors(text.size() / sizeof(int)), out;
    if (contributors.empty()) return out;  // the last rank has contributed since, and the name is free again
    std::memcpy(contributors.data(), text.data(), contributors.size() * sizeof(int));
    for (int const rank : members)
      if (std::find(contributors.begin(), contributors.end(), rank) == contributors.end()) out.push_back(rank);
    return out;
  }
  /// Returns a file descriptor that is readable once the server has sent something.
  [[nodiscard]] int descriptor() const noexcept { return connection_.descriptor(); }
  /// Returns how many bytes each of `members` ranks may contribute so that the answer stays small.
  [[nodiscard]] static constexpr std::size_t part_bytes(int members) noexcept {
    return detail::max_store_bytes / static_cast<std::size_t>(members);
  }

 private:
  static std::string message_of(detail::StoreCall call, std::string_view key, std::string_view value, int members = 0);
  std::string request(detail::StoreCall call, std::string_view key, std::string_view value);
  /// Returns the answer to the last call, or nullopt at the deadline.
  std::optional<std::string> answer(Deadline deadline, std::string_view key);
  /// Keeps gathered contributions and drops late answers. Returns whether the message was one of these.
  bool handle_unsolicited(detail::StoreConnection::Message& message);

  detail::StoreConnection connection_;
  int stale_answers_ = 0;  // expected answers that are no longer of interest
  std::map<std::string, std::string> gathered_;
  std::size_t gathered_bytes_ = 0;
};

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/store/store.ipp>
#endif
