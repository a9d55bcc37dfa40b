// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/store_connection.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE bool is_connected_to_itself(FileDescriptor const& file) noexcept {
  sockaddr_storage own{}, peer{};
  socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
  return ::getsockname(file.get(), reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         ::getpeername(file.get(), reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 && own_bytes == peer_bytes &&
         std::memcmp(&own, &peer, own_bytes) == 0;
}

LOCKSTEP_INLINE StoreConnection::StoreConnection(StoreAddress address, StoreConnectionKind kind)
    : address_(std::move(address)) {
  auto const deadline = deadline_in(address_.join_seconds);
  for (;; ::usleep(10'000)) {
    auto const joined = join(kind, deadline, max_answer_seconds);
    if (joined == Joined::yes) return;
    if (Clock::nanoseconds() >= deadline) throw_not_joined(joined);
  }
}

LOCKSTEP_INLINE StoreConnection::StoreConnection(StoreAddress address, StoreConnectionKind kind, Deadline deadline,
                                                 double challenge_seconds)
    : address_(std::move(address)) {
  if (auto const joined = join(kind, deadline, challenge_seconds); joined != Joined::yes) throw_not_joined(joined);
}

LOCKSTEP_INLINE void StoreConnection::throw_not_joined(Joined joined) const {
  if (joined == Joined::hung_up) throw_no_store();
  throw ConfigError("Store: rank " + std::to_string(address_.rank) + " has not found the store at " + address_text() +
                    time_limit_text(address_.join_seconds) + " (" + connect_error_ +
                    "); was rank 0 started, and can this host reach it?");
}

LOCKSTEP_INLINE StoreConnection::Joined StoreConnection::join(StoreConnectionKind kind, Deadline deadline,
                                                              double challenge_seconds) {
  if (!connect(deadline)) return Joined::no_server;
  detect_silence(file_.get(), address_.silence_seconds, kind);
  StoreHandshake hello;
  hello.rank = address_.rank;
  hello.size = address_.size;
  hello.job = address_.job;
  hello.kind = kind;
  hello.nonce = new_nonce();
  // A store without a secret has accepted the rank once it has the handshake: it is then waited for.
  auto const within = [&](double seconds) {
    return std::min(deadline_in(seconds), std::max(deadline, deadline_in(max_late_seconds)));
  };
  std::optional<Message> answer;
  try {
    send(as_bytes(hello), within(max_answer_seconds));
    answer = wait(within(address_.secret.empty() ? max_answer_seconds : challenge_seconds));
    if (answer && answer->type == StoreReply::challenge) {
      auto const until = within(max_answer_seconds);
      answer_challenge(*answer, hello, until);
      answer = wait(until);
    } else if (answer && answer->type == StoreReply::done && !address_.secret.empty()) {
      throw StoreRefusal("Store: the program that answers rank " + std::to_string(address_.rank) + " at " +
                         address_text() +
                         " does not prove that it knows this run's secret: rank 0 has none, or it is another program; "
                         "give all ranks the same LOCKSTEP_SECRET_FILE or LOCKSTEP_SECRET");
    }
  } catch (CommunicationError const&) {  // it has closed the connection
    file_ = FileDescriptor();
    received_.clear();
    parsed_bytes_ = 0;
    return Joined::hung_up;
  }
  if (!answer)
    throw ConfigError("Store: the program at " + address_text() + " has not answered rank " +
                      std::to_string(address_.rank) +
                      "; it is another program, or rank 0 is stopped; give the host of rank 0, and a free port");
  if (answer->type == StoreReply::refused)
    throw StoreRefusal("Store: " + address_text() + " refuses: " + peer_text(answer->value));
  if (answer->type != StoreReply::done || answer->value != StoreHandshake::acceptance()) throw_no_store();
  has_joined_ = true;
  return Joined::yes;
}

LOCKSTEP_INLINE void StoreConnection::answer_challenge(Message const& message, StoreHandshake const& handshake,
                                                       Deadline deadline) {
  StoreChallenge challenge;
  if (message.value.size() != sizeof challenge) throw_no_store();
  std::memcpy(&challenge, message.value.data(), sizeof challenge);
  if (address_.secret.empty())
    throw StoreRefusal("Store: rank 0 at " + address_text() + " has a secret, and rank " +
                       std::to_string(address_.rank) +
                       " has none; give all ranks the same LOCKSTEP_SECRET_FILE or LOCKSTEP_SECRET");
  auto const proof = [&](StoreSide side) {
    return store_proof(address_.secret, side, handshake, challenge.nonce, address_.port);
  };
  if (!equal_in_constant_time(challenge.proof, proof(StoreSide::server)))
    throw StoreRefusal("Store: the program that answers rank " + std::to_string(address_.rank) + " at " +
                       address_text() +
                       " has another secret: it belongs to another run, or LOCKSTEP_SECRET or the content of "
                       "LOCKSTEP_SECRET_FILE differs between ranks");
  auto const own = proof(StoreSide::client);
  send(store_message(static_cast<std::uint8_t>(StoreCall::prove), {},
                     {reinterpret_cast<char const*>(own.data()), own.size()}),
       deadline);
}

LOCKSTEP_INLINE void StoreConnection::send(std::string_view bytes, Deadline deadline) {
  for (auto const all = bytes.size();;) {
    bytes.remove_prefix(send_some(bytes));
    if (bytes.empty()) return;
    if (writable(file_.get(), deadline)) continue;
    if (bytes.size() < all) ::shutdown(file_.get(), SHUT_RDWR);  // the store would take the next message for the rest
    throw_lost("it accepts nothing");
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

LOCKSTEP_INLINE bool StoreConnection::connect(Deadline deadline) {
  if (!address_.local_name.empty()) {
    LocalAddress const address(address_.local_name);
    if (!connect_to(AF_UNIX, address.get(), address.bytes, deadline)) return false;
    if (auto const peer = peer_credentials(file_); peer.uid != ::geteuid()) {
      throw StoreRefusal("Store: another user's process (" + std::to_string(peer.pid) +
                         ") answers instead of rank 0; end it, or start the run under another name");
    }
    return true;
  }
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
  bool connected = false;
  for (auto const* one = found; one != nullptr && !connected; one = one->ai_next)
    connected = connect_to(one->ai_family, one->ai_addr, one->ai_addrlen, deadline);
  ::freeaddrinfo(found);
  return connected;
}

LOCKSTEP_INLINE bool StoreConnection::connect_to(int family, sockaddr const* address, socklen_t bytes,
                                                 Deadline deadline) {
  constexpr double most_seconds = 2, least_seconds = 0.2;  // a host that drops packets must not use up all the time
  FileDescriptor file(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = file.get() < 0 || ::connect(file.get(), address, bytes) != 0 ? errno : 0;
  if (error == EINPROGRESS) {
    auto const until = std::min(deadline_in(most_seconds), std::max(deadline, deadline_in(least_seconds)));
    socklen_t error_bytes = sizeof error;
    if (!writable(file.get(), until))
      error = ETIMEDOUT;
    else if (::getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0)
      error = errno;
  }
  if (error == 0 && is_connected_to_itself(file)) {
    linger const reset{1, 0};  // else the port stays in use, and the store cannot listen at it
    ::setsockopt(file.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    error = ECONNREFUSED;
  }
  if (error != 0) {
    connect_error_ = std::strerror(error);
    return false;
  }
  file_ = std::move(file);
  return true;
}

LOCKSTEP_INLINE std::uint64_t StoreConnection::max_value_bytes(StoreReply type) const noexcept {
  constexpr std::uint64_t part = max_store_bytes + 2 * sizeof(std::int32_t);
  if (!has_joined_) return max_store_text_bytes;
  if (type == StoreReply::done) return max_store_bytes;
  return type == StoreReply::gathered ? std::min<std::uint64_t>(part * static_cast<std::uint64_t>(address_.size),
                                                                2 * std::uint64_t{max_unread_bytes})
                                      : max_store_text_bytes;
}

LOCKSTEP_INLINE std::optional<StoreConnection::Message> StoreConnection::parse() {
  StoreMessageHeader head;
  if (received_.size() - parsed_bytes_ < sizeof head) return std::nullopt;
  std::memcpy(&head, received_.data() + parsed_bytes_, sizeof head);
  if (head.type < first_store_reply || head.type > last_store_reply ||
      head.key_bytes > (has_joined_ ? max_store_bytes : 0) ||
      head.value_bytes > max_value_bytes(static_cast<StoreReply>(head.type)) || head.rank < 0 ||
      head.rank >= address_.size)
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
