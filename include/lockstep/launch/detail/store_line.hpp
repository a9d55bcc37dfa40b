// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/detail/store_wire.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Address of a store, and the rank that connects to it.
struct StoreAddress {
  std::string host = "localhost";
  std::uint16_t port = 0;
  std::uint64_t job = 0;
  int rank = 0;
  int size = 1;
  double join_seconds = 60;     ///< time limit for the server to appear
  double wait_seconds = 600;    ///< time limit of `get`, and of a send; may be infinity
  double silence_seconds = 15;  ///< a server is lost if it cannot be reached for this long
};

/// The store refuses this rank.
struct StoreRefusal : ConfigError {
  using ConfigError::ConfigError;
};

/// A rank's connection to a store: whole messages in both directions. One thread may send while another receives.
class StoreLine {
 public:
  struct Message {
    StoreReply what;
    int rank;
    std::string key, value;
  };

  /// @throws ConfigError if no server is found in time, or it refuses this rank
  StoreLine(StoreAddress address, StoreLineKind kind) : address_(std::move(address)) {
    auto const deadline = deadline_in(address_.join_seconds);
    while (!connect()) {
      if (Clock::nanoseconds() >= deadline)
        throw ConfigError("Store: rank " + std::to_string(address_.rank) + " has not found the store at " + where() +
                          tried(address_.join_seconds) + " (" + why_not_ +
                          "); was rank 0 started, and can this host reach it?");
      ::usleep(10'000);
    }
    notice_silence(file_.get(), address_.silence_seconds, kind);
    limit_send(file_.get(), address_.silence_seconds);
    StoreHello hello;
    hello.rank = address_.rank;
    hello.size = address_.size;
    hello.job = address_.job;
    hello.kind = kind;
    send({reinterpret_cast<char const*>(&hello), sizeof hello});
    auto const answer = wait(std::max(deadline, deadline_in(most_answer_seconds)));
    if (!answer)
      throw ConfigError("Store: the program at " + where() + " has not answered rank " + std::to_string(address_.rank) +
                        "; it is another program, or rank 0 is stopped; give the host of rank 0, and a free port");
    if (answer->what == StoreReply::refused) throw StoreRefusal("Store: " + where() + " refuses: " + answer->value);
    if (answer->value != StoreHello::welcome()) throw_no_store();
  }

  [[nodiscard]] StoreAddress const& address() const noexcept { return address_; }
  [[nodiscard]] std::string where() const { return address_.host + ":" + std::to_string(address_.port); }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

  /// @throws CommunicationError if the server cannot be reached, or accepts nothing for too long
  void send(std::string_view bytes) {
    for (auto const deadline = deadline_in(address_.wait_seconds); !bytes.empty();) {
      auto const sent = ::send(file_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      bool const full = errno == EAGAIN, again = errno == EINTR || (full && Clock::nanoseconds() < deadline);
      if (sent < 0 && !again) gone(full ? "it accepts nothing" : std::strerror(errno));
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  /// Sends as much as the system accepts without waiting.   @returns the number of bytes
  /// @throws CommunicationError if the server cannot be reached
  [[nodiscard]] std::size_t offer(std::string_view bytes) {
    auto const sent = ::send(file_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) gone(std::strerror(errno));
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  void send(StoreCall call, std::string_view key, std::string_view value, int members = 0) {
    send(store_message(static_cast<std::uint8_t>(call), key, value, members));
  }

  /// Returns the next message if it has arrived.
  /// @throws CommunicationError if the server cannot be reached, ConfigError if it is no store
  [[nodiscard]] std::optional<Message> next() {
    for (;;) {
      if (auto message = parse()) return message;
      in_.erase(0, std::exchange(taken_, 0));
      char buffer[16384];
      auto const got = ::recv(file_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got == 0) gone("it has closed the connection");
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
      if (got < 0) gone(std::strerror(errno));
      in_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  /// Waits for the next message. Returns nullopt at the deadline.
  [[nodiscard]] std::optional<Message> wait(Deadline deadline) {
    for (;;) {
      if (auto message = next()) return message;
      if (!readable(file_.get(), deadline)) return std::nullopt;
    }
  }
  /// Throws the error for an answer that is not from a store.
  [[noreturn]] void throw_no_store() const {
    throw ConfigError("Store: the program that answers rank " + std::to_string(address_.rank) + " at " + where() +
                      " is not a store; give the host of rank 0, and a free port");
  }
  /// Returns whether a short message can be sent without waiting.
  [[nodiscard]] bool takes() const noexcept {
    pollfd polled{file_.get(), POLLOUT, 0};
    return ::poll(&polled, 1, 0) > 0;
  }

 private:
  static std::string tried(double seconds) {
    return seconds > 0 ? " within " + std::to_string(static_cast<long>(seconds)) + " s" : "";
  }
  bool connect() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    auto const port = std::to_string(address_.port);
    // Without a name getaddrinfo uses this host, even if `localhost` is unknown.
    char const* const name = address_.host == "localhost" ? nullptr : address_.host.c_str();
    if (int const error = ::getaddrinfo(name, port.c_str(), &hints, &found); error != 0) {
      why_not_ = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
      return false;
    }
    for (auto const* one = found; one != nullptr && file_.get() < 0; one = one->ai_next) {
      File file(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      bool connected = file.get() >= 0;
      if (connected) {
        limit_send(file.get(), 2);  // for one try: a host that drops packets must not use up all the time
        connected = ::connect(file.get(), one->ai_addr, one->ai_addrlen) == 0;
      }
      if (connected)
        file_ = std::move(file);
      else
        why_not_ = std::strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
    }
    ::freeaddrinfo(found);
    return file_.get() >= 0;
  }
  /// Limits the time that one call of connect or send may wait.
  static void limit_send(int file, double seconds) noexcept {
    auto const microseconds = static_cast<long>(seconds * 1e6);
    timeval const limit{microseconds / 1'000'000, microseconds % 1'000'000};
    ::setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }

  std::optional<Message> parse() {
    StoreHead head;
    if (in_.size() - taken_ < sizeof head) return std::nullopt;
    std::memcpy(&head, in_.data() + taken_, sizeof head);
    if (head.what < first_store_reply || head.what > last_store_reply || head.key_bytes > most_store_bytes ||
        head.value_bytes > most_store_reply_bytes || head.rank < 0 || head.rank >= address_.size)
      throw_no_store();
    auto const bytes = sizeof head + head.key_bytes + head.value_bytes;
    if (in_.size() - taken_ < bytes) return std::nullopt;
    auto const at = taken_ + sizeof head;
    Message message{static_cast<StoreReply>(head.what), head.rank, in_.substr(at, head.key_bytes),
                    in_.substr(at + head.key_bytes, head.value_bytes)};
    taken_ += bytes;
    return message;
  }

  [[noreturn]] void gone(std::string const& why) const {
    throw CommunicationError("Store: rank " + std::to_string(address_.rank) + " has lost the store at " + where() +
                             " (" + why + ")");
  }

  StoreAddress address_;
  File file_;
  std::string why_not_;  // reason of the last failed connection
  std::string in_;
  std::size_t taken_ = 0;  // number of parsed bytes in `in_`
};

}}}  // namespace lockstep::launch::detail
