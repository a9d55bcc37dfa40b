// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/store/store_server.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE StoreServer::StoreServer(Options const& options) : options_(options), listener_(listener_for(options)) {
  if (stop_.get() < 0 || epoll_.get() < 0)
    throw ConfigError("StoreServer: the system refused to watch for the end (eventfd, epoll)");
  watch(EPOLL_CTL_ADD, stop_.get(), EPOLLIN, nullptr);
  thread_ = start_thread("StoreServer", "its thread", [this] { run(); });
}

LOCKSTEP_INLINE detail::StoreListener StoreServer::listener_for(Options const& options) {
  return options.local_name.empty() ? detail::StoreListener::at_host(options.host, options.port)
                                    : detail::StoreListener::at_name(options.local_name);
}

LOCKSTEP_INLINE std::size_t StoreServer::places_of_process() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return most_unproven;
  return std::clamp<std::size_t>(files.rlim_cur / 16, 8, most_unproven);
}

LOCKSTEP_INLINE StoreServer::~StoreServer() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

LOCKSTEP_INLINE bool StoreServer::wait_for_ends(double seconds) const {
  for (auto const deadline = deadline_in(seconds); active_connections_ > 0 && Clock::nanoseconds() < deadline;)
    ::usleep(1000);
  return active_connections_ == 0;
}

LOCKSTEP_INLINE void StoreServer::run() {
  sigset_t all;  // the rank's own threads handle signals
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  auto const& sockets = listener_.sockets();
  for (auto const& socket : sockets) watch(EPOLL_CTL_ADD, socket.get(), 0, const_cast<FileDescriptor*>(&socket));
  auto const is_socket = [&](void const* data) {
    return std::any_of(sockets.begin(), sockets.end(), [&](FileDescriptor const& one) { return &one == data; });
  };
  epoll_event events[64];
  for (;;) {
    auto until = close_late();
    auto const open_at = std::max(accept_after_, next_place());
    bool const accepts = Clock::nanoseconds() >= open_at;
    if (accepts != std::exchange(accepts_, accepts))
      for (auto const& socket : sockets)
        watch(EPOLL_CTL_MOD, socket.get(), accepts ? std::uint32_t{EPOLLIN} : 0, const_cast<FileDescriptor*>(&socket));
    if (!accepts) until = std::min(until, open_at);
    auto const count = ::epoll_wait(epoll_.get(), events, 64, detail::milliseconds_until(until));
    for (int i = 0; i < count; ++i) {
      auto* const data = events[i].data.ptr;
      if (data == nullptr) return;
      if (is_socket(data))
        admit(*static_cast<FileDescriptor const*>(data));
      else if (auto& connection = *static_cast<Connection*>(data); !connection.closed)
        serve(connection);
    }
    if (has_closed_) remove_closed();
  }
}

LOCKSTEP_INLINE void StoreServer::watch(int operation, int file, std::uint32_t events, void* data) const {
  epoll_event event{};
  event.events = events;
  event.data.ptr = data;
  ::epoll_ctl(epoll_.get(), operation, file, &event);
}

LOCKSTEP_INLINE void StoreServer::watch(Connection& connection) const {
  std::uint32_t const in = readable_bytes(connection) > 0 ? std::uint32_t{EPOLLIN} : 0,
                      out = connection.unsent() > 0 ? std::uint32_t{EPOLLOUT} : 0;
  if (connection.closed || (in | out) == connection.events) return;
  connection.events = in | out;
  watch(EPOLL_CTL_MOD, connection.file.get(), connection.events, &connection);
}

LOCKSTEP_INLINE Deadline StoreServer::next_place() const noexcept {
  if (unproven_.size() < places_) return 0;
  return unproven_.front().accepted_at + static_cast<Deadline>(min_stay_seconds * 1e9);
}

LOCKSTEP_INLINE Deadline StoreServer::close_late() {
  auto const limit = static_cast<Deadline>(std::min(options_.silence_seconds, detail::max_answer_seconds) * 1e9);
  while (!unproven_.empty() && Clock::nanoseconds() >= unproven_.front().accepted_at + limit)
    remove(unproven_, unproven_.begin());
  return unproven_.empty() ? no_deadline : unproven_.front().accepted_at + limit;
}

LOCKSTEP_INLINE void StoreServer::admit(FileDescriptor const& listening_socket) {
  for (std::size_t i = 0; i < places_ && unproven_.size() <= places_ && Clock::nanoseconds() >= next_place(); ++i) {
    FileDescriptor file(::accept4(listening_socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (file.get() < 0) {  // the connection stays pending and would make epoll return at once
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) accept_after_ = deadline_in(0.05);
      return;
    }
    if (listener_.is_local() && !detail::is_own_user(file)) continue;
    // One that is closed, and may still have an event of this turn, keeps its place until the turn's end.
    if (unproven_.size() >= places_) close(unproven_.front());
    auto& connection = unproven_.emplace_back();
    connection.file = std::move(file);
    connection.accepted_at = Clock::nanoseconds();
    connection.events = EPOLLIN;
    watch(EPOLL_CTL_ADD, connection.file.get(), connection.events, &connection);
  }
}

LOCKSTEP_INLINE StoreServer::Connections::iterator StoreServer::remove(Connections& connections,
                                                                       Connections::iterator connection) const {
  // Closing is not enough for epoll if a forked process has the descriptor, too.
  watch(EPOLL_CTL_DEL, connection->file.get(), 0, nullptr);
  return connections.erase(connection);
}

LOCKSTEP_INLINE void StoreServer::remove_closed() {
  has_closed_ = false;
  for (auto* const connections : {&unproven_, &connections_})
    for (auto one = connections->begin(); one != connections->end();)
      one = one->closed ? remove(*connections, one) : std::next(one);
  active_connections_ = static_cast<int>(std::count_if(connections_.begin(), connections_.end(),
                                                       [](Connection const& connection) { return !connection.ended; }));
}

LOCKSTEP_INLINE void StoreServer::close(Connection& connection) noexcept {
  if (std::exchange(connection.waiting, false)) --waiting_;
  connection.closed = has_closed_ = true;
}

LOCKSTEP_INLINE std::size_t StoreServer::readable_bytes(Connection const& connection) noexcept {
  constexpr std::size_t handshake = sizeof(detail::StoreHandshake),
                        proof = sizeof(detail::StoreMessageHeader) + sizeof(Sha256::Digest);
  if (connection.rank < 0) return (connection.challenged ? proof : handshake) - connection.in.size();
  // A rank that does not read its answers may not ask for more. Contributions are answered later, and are read.
  return connection.unsent() > detail::max_stored_bytes ? 0 : 16384;
}

LOCKSTEP_INLINE void StoreServer::serve(Connection& connection) {
  char buffer[16384];
  ssize_t got = 1;
  send(connection);
  parse(connection);                                                // what waited for the rank to read its answers
  for (int turns = 64; turns > 0 && !connection.closed; --turns) {  // then it is the next connection's turn
    auto const bytes = readable_bytes(connection);
    if (bytes == 0) break;
    got = ::recv(connection.file.get(), buffer, std::min(bytes, sizeof buffer), 0);
    if (got <= 0) break;
    connection.in.append(buffer, static_cast<std::size_t>(got));
    parse(connection);
  }
  if (!connection.closed && (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)))
    mark_lost(connection, got == 0 ? "its connection has ended" : std::strerror(errno));
  send(connection);
}

LOCKSTEP_INLINE void StoreServer::send(Connection& connection) {
  if (connection.unsent() > 0) {
    auto const sent =
        ::send(connection.file.get(), connection.out.data() + connection.sent, connection.unsent(), MSG_NOSIGNAL);
    if (sent > 0) connection.sent += static_cast<std::size_t>(sent);
    bool const has_failed = sent < 0 && errno != EAGAIN && errno != EINTR;  // the next read finds the reason
    if (has_failed || connection.sent >= std::max<std::size_t>(connection.out.size() / 2, 1)) {
      connection.out.erase(0, has_failed ? connection.out.size() : connection.sent);
      connection.sent = 0;
    }
  }
  watch(connection);
}

LOCKSTEP_INLINE void StoreServer::parse(Connection& connection) {
  if (connection.rank < 0 && !authenticate(connection)) return;
  detail::StoreMessageHeader header;
  while (!connection.closed && connection.in.size() >= sizeof header && readable_bytes(connection) > 0) {
    std::memcpy(&header, connection.in.data(), sizeof header);
    if (header.key_bytes > detail::max_store_bytes || header.value_bytes > detail::max_store_bytes ||
        !may(connection.kind, static_cast<detail::StoreCall>(header.type)))
      return mark_lost(connection, "it sent an invalid message");
    auto const bytes = sizeof header + header.key_bytes + header.value_bytes;
    if (connection.in.size() < bytes) return;
    auto const key = connection.in.substr(sizeof header, header.key_bytes);
    auto const value = connection.in.substr(sizeof header + header.key_bytes, header.value_bytes);
    connection.in.erase(0, bytes);
    answer(connection, static_cast<detail::StoreCall>(header.type), key, value, header.rank);
  }
}

LOCKSTEP_INLINE bool StoreServer::authenticate(Connection& connection) {
  auto& handshake = connection.handshake;
  if (connection.challenged) {
    detail::StoreMessageHeader header;
    Sha256::Digest proof;
    if (connection.in.size() < sizeof header + sizeof proof) return false;
    std::memcpy(&header, connection.in.data(), sizeof header);
    std::memcpy(&proof, connection.in.data() + sizeof header, sizeof proof);
    connection.in.clear();
    bool const is_proof = header.type == static_cast<std::uint8_t>(detail::StoreCall::prove) && header.key_bytes == 0 &&
                          header.value_bytes == sizeof proof;
    if (!is_proof || !equal_in_constant_time(proof, detail::store_proof(options_.secret, detail::StoreSide::client,
                                                                        handshake, connection.nonce, port())))
      return refuse(connection, "rank " + std::to_string(handshake.rank) + " does not know this run's secret");
  } else {
    auto const known = std::min(connection.in.size(), sizeof handshake.magic);
    if (std::memcmp(connection.in.data(), &handshake.magic, known) != 0) {
      close(connection);  // not a rank: send nothing
      return false;
    }
    if (connection.in.size() < detail::StoreHandshake::bytes_of_any_version) return false;
    std::memcpy(&handshake, connection.in.data(), std::min(connection.in.size(), sizeof handshake));
    if (auto const refusal = refusal_reason(handshake); !refusal.empty()) return refuse(connection, refusal);
    if (connection.in.size() < sizeof handshake) return false;
    connection.in.clear();
    if (!options_.secret.empty()) {
      try {
        connection.nonce = detail::new_nonce();
      } catch (ConfigError const& error) {
        return refuse(connection, error.what());
      }
      connection.challenged = true;
      detail::StoreChallenge const challenge{
          connection.nonce,
          detail::store_proof(options_.secret, detail::StoreSide::server, handshake, connection.nonce, port())};
      reply(connection, detail::StoreReply::challenge, detail::as_bytes(challenge));
      return false;
    }
  }
  if (has_joined(handshake))
    return refuse(connection, "rank " + std::to_string(handshake.rank) +
                                  " has joined already; each rank needs its own number, and each run its own port");
  accept(connection);
  return true;
}

LOCKSTEP_INLINE std::string StoreServer::refusal_reason(detail::StoreHandshake const& handshake) const {
  auto const who = "rank " + std::to_string(handshake.rank);
  if (handshake.version != detail::StoreHandshake::expected_version)
    return who + " uses version " + std::to_string(handshake.version) + " of the store protocol, the server version " +
           std::to_string(detail::StoreHandshake::expected_version) + "; start the same program everywhere";
  if (handshake.job != options_.job)
    return who +
           " belongs to another run than this port: two runs use one port, or this rank's MASTER_ADDR, "
           "MASTER_PORT or WORLD_SIZE differs from rank 0's; all must be identical";
  if (handshake.size != options_.size || handshake.rank < 0 || handshake.rank >= options_.size)
    return who + " of " + std::to_string(handshake.size) + " cannot join a run of " + std::to_string(options_.size) +
           " ranks";
  if (handshake.kind != detail::StoreConnectionKind::requests &&
      handshake.kind != detail::StoreConnectionKind::notifications)
    return who + " uses an unknown kind of connection; start the same program everywhere";
  return {};
}

LOCKSTEP_INLINE bool StoreServer::has_joined(detail::StoreHandshake const& handshake) const noexcept {
  return std::any_of(connections_.begin(), connections_.end(), [&](Connection const& one) {
    return !one.closed && one.rank == handshake.rank && one.kind == handshake.kind;
  });
}

LOCKSTEP_INLINE bool StoreServer::refuse(Connection& connection, std::string const& reason) {
  reply(connection, detail::StoreReply::refused, reason);
  send(connection);
  close(connection);
  return false;
}

LOCKSTEP_INLINE void StoreServer::accept(Connection& connection) {
  connection.rank = connection.handshake.rank;
  connection.kind = connection.handshake.kind;
  auto const place =
      std::find_if(unproven_.begin(), unproven_.end(), [&](Connection const& one) { return &one == &connection; });
  connections_.splice(connections_.end(), unproven_, place);
  ++active_connections_;
  detail::detect_silence(connection.file.get(), options_.silence_seconds, connection.kind);
  reply(connection, detail::StoreReply::done, detail::StoreHandshake::acceptance());
  if (connection.kind == detail::StoreConnectionKind::notifications)
    for (auto const& one : notifications_) reply(connection, one.type, one.value, one.rank);
}

LOCKSTEP_INLINE bool StoreServer::may(detail::StoreConnectionKind kind, detail::StoreCall call) noexcept {
  switch (call) {
    case detail::StoreCall::set:
    case detail::StoreCall::get:
    case detail::StoreCall::add:
    case detail::StoreCall::gather:
    case detail::StoreCall::contributors:
      return kind == detail::StoreConnectionKind::requests;
    case detail::StoreCall::ended:
      return kind == detail::StoreConnectionKind::notifications;
    case detail::StoreCall::leave:
      return true;
    case detail::StoreCall::prove:
      return false;  // once, before
  }
  return false;
}

LOCKSTEP_INLINE void StoreServer::answer(Connection& connection, detail::StoreCall call, std::string const& key,
                                         std::string const& value, int members) {
  // The rank has given up an earlier `get`. Each call gets one answer, in the order of the calls.
  if (std::exchange(connection.waiting, false)) {
    --waiting_;
    reply(connection, detail::StoreReply::done, {});
  }
  switch (call) {
    case detail::StoreCall::set:
      if (!store(connection, key, value)) return;
      reply(connection, detail::StoreReply::done, {});
      return answer_waiting();
    case detail::StoreCall::get:
      connection.waiting = true;
      ++waiting_;
      connection.key = key;
      return answer_waiting();
    case detail::StoreCall::add: {
      std::int64_t more = 0, sum = 0;
      std::memcpy(&more, value.data(), std::min(value.size(), sizeof more));
      if (auto const found = values_.find(key); found != values_.end())
        std::memcpy(&sum, found->second.data(), std::min(found->second.size(), sizeof sum));
      sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(more));
      std::string_view const text(reinterpret_cast<char const*>(&sum), sizeof sum);
      if (!store(connection, key, text)) return;
      reply(connection, detail::StoreReply::done, text);
      return answer_waiting();
    }
    case detail::StoreCall::gather:
      return gather(connection, key, value, members);
    case detail::StoreCall::contributors: {
      std::string ranks;
      if (auto const found = gatherings_.find(key); found != gatherings_.end())
        for (auto const& [rank, part] : found->second.parts) ranks.append(detail::as_bytes(rank));
      return reply(connection, detail::StoreReply::done, ranks);
    }
    case detail::StoreCall::ended:
      return end(connection, value);
    case detail::StoreCall::leave:
      return close(connection);
    case detail::StoreCall::prove:
      return;
  }
}

LOCKSTEP_INLINE bool StoreServer::store(Connection& connection, std::string const& key, std::string_view value) {
  auto const found = values_.find(key);
  auto const before = found == values_.end() ? 0 : found->second.size() + key.size() + entry_bytes;
  auto const all = stored_bytes_ - before + value.size() + key.size() + entry_bytes;
  if (all > detail::max_stored_bytes) {
    reply(connection, detail::StoreReply::refused,
          "the values of all names would have " + std::to_string(all) + " bytes; at most " +
              std::to_string(detail::max_stored_bytes) + " can be stored");
    return false;
  }
  stored_bytes_ = all;
  if (found == values_.end())
    values_.emplace(key, value);
  else
    found->second.assign(value);
  return true;
}

LOCKSTEP_INLINE void StoreServer::gather(Connection& connection, std::string const& key, std::string const& value,
                                         int members) {
  auto const found = gatherings_.try_emplace(key).first;
  auto& gathering = found->second;
  if (gathering.parts.empty()) gathering.members = members;
  auto const bytes = [&](std::string const& part) { return part.size() + key.size() + entry_bytes; };
  bool const is_valid = members >= 1 && members <= options_.size && members == gathering.members &&
                        gathering.parts.emplace(connection.rank, value).second;
  if (!is_valid) {
    if (gathering.parts.empty()) gatherings_.erase(found);
    return mark_lost(connection, "it sent an invalid contribution");
  }
  gathering_bytes_ += bytes(value);
  if (std::ssize(gathering.parts) < members) {
    if (gathering_bytes_ > detail::max_unread_bytes)
      mark_lost(connection, "contributions of more than " + std::to_string(detail::max_unread_bytes) +
                                " bytes wait for those of other ranks");
    return;
  }
  std::string all;
  for (auto const& [rank, part] : gathering.parts) {
    std::int32_t const header[2]{rank, static_cast<std::int32_t>(part.size())};
    all.append(reinterpret_cast<char const*>(header), sizeof header).append(part);
    gathering_bytes_ -= bytes(part);
  }
  for (auto& one : connections_) {
    if (one.closed || one.kind != detail::StoreConnectionKind::requests || gathering.parts.count(one.rank) == 0)
      continue;
    if (one.unsent() + all.size() > detail::max_unread_bytes) {
      mark_lost(one, "it does not read its answers");
      continue;
    }
    reply(one, detail::StoreReply::gathered, all, 0, key);
    send(one);
  }
  gatherings_.erase(found);
}

LOCKSTEP_INLINE void StoreServer::notify_all(Notification notification) {
  for (auto& connection : connections_) {
    if (connection.closed || connection.kind != detail::StoreConnectionKind::notifications ||
        connection.rank == notification.rank)
      continue;
    reply(connection, notification.type, notification.value, notification.rank);
    send(connection);
  }
  notifications_.push_back(std::move(notification));
}

LOCKSTEP_INLINE void StoreServer::end(Connection& connection, std::string const& value) {
  bool const is_again = std::any_of(notifications_.begin(), notifications_.end(), [&](Notification const& one) {
    return one.rank == connection.rank && one.type == detail::StoreReply::rank_ended;
  });
  if (value.size() != sizeof(detail::RankEnd) || is_again) return mark_lost(connection, "it sent an invalid message");
  if (!std::exchange(connection.ended, true)) --active_connections_;
  auto const how = detail::from_bytes<detail::RankEnd>(value);
  if (how.exit_code != 0 || how.signal != 0)
    fail_waiting(connection.rank, "rank " + std::to_string(connection.rank) + " has failed: " + peer_text(how.message));
  notify_all({detail::StoreReply::rank_ended, connection.rank, value});
}

LOCKSTEP_INLINE void StoreServer::answer_waiting() {
  if (waiting_ == 0) return;
  for (auto& connection : connections_) {
    if (!connection.waiting || connection.closed) continue;
    auto const found = values_.find(connection.key);
    if (found == values_.end() && lost_.empty()) continue;
    connection.waiting = false;
    --waiting_;
    if (found != values_.end())
      reply(connection, detail::StoreReply::done, found->second);
    else
      reply(connection, detail::StoreReply::lost, lost_, lost_rank_);
    send(connection);
  }
}

LOCKSTEP_INLINE void StoreServer::mark_lost(Connection& connection, std::string const& why) {
  close(connection);
  if (connection.rank < 0 || connection.ended) return;
  // The system may take long to detect that the rank's other connection is dead.
  for (auto& other : connections_) other.ended = other.ended || other.rank == connection.rank;
  fail_waiting(connection.rank,
               "rank " + std::to_string(connection.rank) + " lost its connection to the store: " + why);
  bool const known = std::any_of(notifications_.begin(), notifications_.end(),
                                 [&](Notification const& one) { return one.rank == connection.rank; });
  if (!known) notify_all({detail::StoreReply::rank_lost, connection.rank, why});
}

LOCKSTEP_INLINE void StoreServer::fail_waiting(int rank, std::string why) {
  if (!lost_.empty()) return;
  lost_rank_ = rank;
  lost_ = std::move(why);
  answer_waiting();
}

LOCKSTEP_INLINE void StoreServer::reply(Connection& connection, detail::StoreReply type, std::string_view value,
                                        int rank, std::string_view key) {
  connection.out += detail::store_message(static_cast<std::uint8_t>(type), key, value, rank);
}

}}}  // namespace lockstep::launch
