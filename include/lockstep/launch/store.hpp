// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/detail/store_wire.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// A rank's connection to the StoreServer of its run. Not thread-safe. Leaving is the destructor's; a rank that ends
/// without it is lost.
class Store {
 public:
  struct Options {
    std::string host = "localhost";
    std::uint16_t port = 0;
    std::uint64_t job = 0;
    int rank = 0;
    int size = 1;
    double join_seconds = 60;    ///< what the server gets to appear
    double wait_seconds = 600;   ///< what `get` waits for a value; infinity: as long as it takes
    double silence_seconds = 4;  ///< after which a server that cannot be reached is given up
  };

  /// @throws ConfigError when no server is found in time, or it refuses this rank
  explicit Store(Options options) : options_(std::move(options)) {
    auto const deadline = deadline_in(options_.join_seconds);
    while (!connect()) {
      if (Clock::nanoseconds() >= deadline)
        throw ConfigError("Store: rank " + std::to_string(options_.rank) + " has not found the store at " + address() +
                          " within " + std::to_string(static_cast<long>(options_.join_seconds)) + " s (" +
                          std::strerror(errno) + "); was rank 0 started, and may this host reach it?");
      ::usleep(10'000);
    }
    detail::notice_silence(file_.get(), options_.silence_seconds);
    detail::StoreHello hello;
    hello.rank = options_.rank;
    hello.size = options_.size;
    hello.job = options_.job;
    send({reinterpret_cast<char const*>(&hello), sizeof hello});
    (void)reply(deadline, "the hello");
  }
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;
  ~Store() {
    auto const message = detail::store_message(static_cast<std::uint8_t>(detail::StoreCall::leave), {}, {});
    (void)::send(file_.get(), message.data(), message.size(), MSG_NOSIGNAL);
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

 private:
  [[nodiscard]] std::string address() const { return options_.host + ":" + std::to_string(options_.port); }

  bool connect() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(options_.host.c_str(), std::to_string(options_.port).c_str(), &hints, &found) != 0) return false;
    for (auto const* one = found; one != nullptr && file_.get() < 0; one = one->ai_next) {
      detail::File file(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      timeval const limit{2, 0};  // of one try: a host that drops packets must not use up all the time
      ::setsockopt(file.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      if (::connect(file.get(), one->ai_addr, one->ai_addrlen) == 0) file_ = std::move(file);
    }
    ::freeaddrinfo(found);
    return file_.get() >= 0;
  }

  std::string call(detail::StoreCall what, std::string_view key, std::string_view value) {
    if (key.size() > detail::most_store_bytes || value.size() > detail::most_store_bytes)
      throw ConfigError("Store: '" + std::string(key.substr(0, 64)) + "' has " + std::to_string(value.size()) +
                        " bytes; at most " + std::to_string(detail::most_store_bytes) + " can be stored");
    send(detail::store_message(static_cast<std::uint8_t>(what), key, value));
    return reply(deadline_in(options_.wait_seconds), key);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      auto const sent = ::send(file_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR) gone(std::strerror(errno));
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  std::string reply(Deadline deadline, std::string_view about) {
    detail::StoreHead head;
    receive(reinterpret_cast<char*>(&head), sizeof head, deadline, about);
    if (head.key_bytes != 0 || head.value_bytes > detail::most_store_bytes)
      throw ConfigError("Store: what answers at " + address() + " is no store");
    std::string value(head.value_bytes, '\0');
    receive(value.data(), value.size(), deadline, about);
    switch (static_cast<detail::StoreReply>(head.what)) {
      case detail::StoreReply::done:
        return value;
      case detail::StoreReply::lost:
        throw RankLost(head.rank, value + "; rank " + std::to_string(options_.rank) + " was waiting for '" +
                                      std::string(about) + "'");
      case detail::StoreReply::refused:
        throw ConfigError("Store: " + address() + " refuses: " + value);
    }
    throw ConfigError("Store: what answers at " + address() + " is no store");
  }

  void receive(char* to, std::size_t bytes, Deadline deadline, std::string_view about) {
    while (bytes != 0) {
      pollfd polled{file_.get(), POLLIN, 0};
      if (::poll(&polled, 1, detail::milliseconds_until(deadline)) == 0 && Clock::nanoseconds() >= deadline)
        throw CommunicationError("Store: rank " + std::to_string(options_.rank) + " has waited in vain for '" +
                                 std::string(about) + "' of " + address());
      if (polled.revents == 0) continue;
      auto const got = ::recv(file_.get(), to, bytes, 0);
      if (got == 0) gone("it has closed the connection");
      if (got < 0 && errno != EINTR) gone(std::strerror(errno));
      if (got > 0) {
        to += got;
        bytes -= static_cast<std::size_t>(got);
      }
    }
  }

  [[noreturn]] void gone(std::string const& why) const {
    throw CommunicationError("Store: rank " + std::to_string(options_.rank) + " has lost the store at " + address() +
                             " (" + why + ")");
  }

  Options options_;
  detail::File file_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
