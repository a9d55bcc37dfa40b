// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/store_connection.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE StoreConnection::StoreConnection(StoreAddress address, StoreConnectionKind kind)
    : address_(std::move(address)) {
  auto const deadline = deadline_in(address_.join_seconds);
  while (!connect()) {
    if (Clock::nanoseconds() >= deadline)
      throw ConfigError("Store: rank " + std::to_string(address_.rank) + " has not found the store at " +
                        address_text() + time_limit_text(address_.join_seconds) + " (" + connect_error_ +
                        "); was rank 0 started, and can this host reach it?");
    ::usleep(10'000);
  }
  detect_silence(file_.get(), address_.silence_seconds, kind);
  limit_send(file_.get(), address_.silence_seconds);
  StoreHandshake hello;
  hello.rank = address_.rank;
  hello.size = address_.size;
  hello.job = address_.job;
  hello.kind = kind;
  send({reinterpret_cast<char const*>(&hello), sizeof hello});
  auto const answer = wait(std::max(deadline, deadline_in(max_answer_seconds)));
  if (!answer)
    throw ConfigError("Store: the program at " + address_text() + " has not answered rank " +
                      std::to_string(address_.rank) +
                      "; it is another program, or rank 0 is stopped; give the host of rank 0, and a free port");
  if (answer->type == StoreReply::refused)
    throw StoreRefusal("Store: " + address_text() + " refuses: " + answer->value);
  if (answer->value != StoreHandshake::acceptance()) throw_no_store();
}

LOCKSTEP_INLINE void StoreConnection::send(std::string_view bytes) {
  for (auto const deadline = deadline_in(address_.wait_seconds); !bytes.empty();) {
    auto const sent = ::send(file_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    bool const full = errno == EAGAIN, again = errno == EINTR || (full && Clock::nanoseconds() < deadline);
    if (sent < 0 && !again) throw_lost(full ? "it accepts nothing" : std::strerror(errno));
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

LOCKSTEP_INLINE std::size_t StoreConnection::send_some(std::string_view bytes) {
  auto const sent = ::send(file_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) throw_lost(std::strerror(errno));
  return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
}

LOCKSTEP_INLINE void StoreConnection::send(StoreCall call, std::string_view key, std::string_view value, int members) {
  send(store_message(static_cast<std::uint8_t>(call), key, value, members));
}

LOCKSTEP_INLINE std::optional<StoreConnection::Message> StoreConnection::next() {
  for (;;) {
    if (auto message = parse()) return message;
    received_.erase(0, std::exchange(parsed_bytes_, 0));
    char buffer[16384];
    auto const got = ::recv(file_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0) throw_lost("it has closed the connection");
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got < 0) throw_lost(std::strerror(errno));
    received_.append(buffer, static_cast<std::size_t>(got));
  }
}

LOCKSTEP_INLINE std::optional<StoreConnection::Message> StoreConnection::wait(Deadline deadline) {
  for (;;) {
    if (auto message = next()) return message;
    if (!readable(file_.get(), deadline)) return std::nullopt;
  }
}

LOCKSTEP_INLINE void StoreConnection::throw_no_store() const {
  throw ConfigError("Store: the program that answers rank " + std::to_string(address_.rank) + " at " + address_text() +
                    " is not a store; give the host of rank 0, and a free port");
}

LOCKSTEP_INLINE bool StoreConnection::can_send() const noexcept {
  pollfd polled{file_.get(), POLLOUT, 0};
  return ::poll(&polled, 1, 0) > 0;
}

LOCKSTEP_INLINE std::string StoreConnection::time_limit_text(double seconds) {
  return seconds > 0 ? " within " + std::to_string(static_cast<long>(seconds)) + " s" : "";
}

LOCKSTEP_INLINE bool StoreConnection::connect() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  auto const port = std::to_string(address_.port);
  // Without a name getaddrinfo uses this host, even if `localhost` is unknown.
  char const* const name = address_.host == "localhost" ? nullptr : address_.host.c_str();
  if (int const error = ::getaddrinfo(name, port.c_str(), &hints, &found); error != 0) {
    connect_error_ = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
    return false;
  }
  for (auto const* one = found; one != nullptr && file_.get() < 0; one = one->ai_next) {
    FileDescriptor file(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    bool connected = file.get() >= 0;
    if (connected) {
      limit_send(file.get(), 2);  // for one try: a host that drops packets must not use up all the time
      connected = ::connect(file.get(), one->ai_addr, one->ai_addrlen) == 0;
    }
    if (connected)
      file_ = std::move(file);
    else
      connect_error_ = std::strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
  }
  ::freeaddrinfo(found);
  return file_.get() >= 0;
}

LOCKSTEP_INLINE void StoreConnection::limit_send(int file, double seconds) noexcept {
  auto const microseconds = static_cast<long>(seconds * 1e6);
  timeval const limit{microseconds / 1'000'000, microseconds % 1'000'000};
  ::setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

LOCKSTEP_INLINE std::optional<StoreConnection::Message> StoreConnection::parse() {
  StoreMessageHeader head;
  if (received_.size() - parsed_bytes_ < sizeof head) return std::nullopt;
  std::memcpy(&head, received_.data() + parsed_bytes_, sizeof head);
  if (head.type < first_store_reply || head.type > last_store_reply || head.key_bytes > max_store_bytes ||
      head.value_bytes > max_store_reply_bytes || head.rank < 0 || head.rank >= address_.size)
    throw_no_store();
  auto const bytes = sizeof head + head.key_bytes + head.value_bytes;
  if (received_.size() - parsed_bytes_ < bytes) return std::nullopt;
  auto const at = parsed_bytes_ + sizeof head;
  Message message{static_cast<StoreReply>(head.type), head.rank, received_.substr(at, head.key_bytes),
                  received_.substr(at + head.key_bytes, head.value_bytes)};
  parsed_bytes_ += bytes;
  return message;
}

LOCKSTEP_INLINE void StoreConnection::throw_lost(std::string const& why) const {
  throw CommunicationError("Store: rank " + std::to_string(address_.rank) + " has lost the store at " + address_text() +
                           " (" + why + ")");
}

}}}  // namespace lockstep::launch::detail
