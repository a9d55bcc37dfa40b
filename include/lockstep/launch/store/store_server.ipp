// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/store/store_server.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE StoreServer::StoreServer(Options const& options)
    : options_(options), listening_socket_(::socket(AF_INET6, socket_type, 0)) {
  int const on = 1, off = 0;
  ::setsockopt(listening_socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(listening_socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(options.port);
  bool open = listening_socket_.get() >= 0 &&
              ::bind(listening_socket_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
  if (!open && errno != EADDRINUSE) {  // a system without IPv6
    listening_socket_ = FileDescriptor(::socket(AF_INET, socket_type, 0));
    ::setsockopt(listening_socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(options.port);
    open = ::bind(listening_socket_.get(), reinterpret_cast<sockaddr*>(&any4), sizeof any4) == 0;
  }
  if (!open || ::listen(listening_socket_.get(), 256) != 0)
    throw ConfigError("StoreServer: port " + std::to_string(options.port) + " is not available (" +
                      std::strerror(errno) + "); another program or another rank 0 uses it; choose another port");
  if (stop_.get() < 0) throw ConfigError("StoreServer: the system refused to watch for the end (eventfd)");
  thread_ = start_thread("StoreServer", "its thread", [this] { run(); });
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

LOCKSTEP_INLINE std::uint16_t StoreServer::port() const noexcept {
  sockaddr_in6 name{};
  socklen_t bytes = sizeof name;
  ::getsockname(listening_socket_.get(), reinterpret_cast<sockaddr*>(&name), &bytes);
  return ntohs(name.sin6_port);  // an IPv4 address has the port at the same offset
}

LOCKSTEP_INLINE void StoreServer::run() {
  sigset_t all;  // the rank's own threads handle signals
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::vector<pollfd> polled;
  for (;;) {
    bool const open = Clock::nanoseconds() >= accept_after_;
    polled = {{stop_.get(), POLLIN, 0}, {listening_socket_.get(), static_cast<short>(open ? POLLIN : 0), 0}};
    auto until = open ? no_deadline : accept_after_;
    for (auto const& connection : connections_) {
      polled.push_back(
          {connection.file.get(), static_cast<short>(connection.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      until = std::min(until, connection.handshake_deadline);
    }
    ::poll(polled.data(), polled.size(), detail::milliseconds_until(until));
    if (polled[0].revents != 0) return;
    for (std::size_t i = 0; i + 2 < polled.size(); ++i) {
      auto& connection = connections_[i];
      if (polled[i + 2].revents != 0) serve(connection);
      if (Clock::nanoseconds() >= connection.handshake_deadline) connection.closed = true;
    }
    std::erase_if(connections_, [](Connection const& connection) { return connection.closed; });
    active_connections_ =
        static_cast<int>(std::count_if(connections_.begin(), connections_.end(), [](Connection const& connection) {
          return connection.rank >= 0 && !connection.ended;
        }));
    if (polled[1].revents != 0) admit();
  }
}

LOCKSTEP_INLINE void StoreServer::admit() {
  FileDescriptor file(::accept4(listening_socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (file.get() < 0) {  // the connection stays pending and would make poll return at once
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) accept_after_ = deadline_in(0.05);
    return;
  }
  Connection connection;
  connection.file = std::move(file);
  connection.handshake_deadline = deadline_in(std::min(options_.silence_seconds, detail::max_answer_seconds));
  connections_.push_back(std::move(connection));
}

LOCKSTEP_INLINE void StoreServer::serve(Connection& connection) {
  char buffer[4096];
  ssize_t got = 0;
  while (!connection.closed && (got = ::recv(connection.file.get(), buffer, sizeof buffer, 0)) > 0) {
    connection.in.append(buffer, static_cast<std::size_t>(got));
    parse(connection);
  }
  if (!connection.closed && (got == 0 || (errno != EAGAIN && errno != EINTR)))
    mark_lost(connection, got == 0 ? "its connection has ended" : std::strerror(errno));
  send(connection);
}

LOCKSTEP_INLINE void StoreServer::send(Connection& connection) {
  auto const sent = ::send(connection.file.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
  if (sent > 0) connection.out.erase(0, static_cast<std::size_t>(sent));
}

LOCKSTEP_INLINE void StoreServer::parse(Connection& connection) {
  if (connection.rank < 0) {
    detail::StoreHandshake handshake;
    auto const known = std::min(connection.in.size(), sizeof handshake.magic);
    if (std::memcmp(connection.in.data(), &handshake.magic, known) != 0) {
      connection.closed = true;  // not a rank: send nothing
      return;
    }
    if (connection.in.size() < sizeof handshake) return;
    std::memcpy(&handshake, connection.in.data(), sizeof handshake);
    connection.in.erase(0, sizeof handshake);
    if (!accept_handshake(connection, handshake)) return;
  }
  detail::StoreMessageHeader header;
  while (!connection.closed && connection.in.size() >= sizeof header) {
    std::memcpy(&header, connection.in.data(), sizeof header);
    if (header.key_bytes > detail::max_store_bytes || header.value_bytes > detail::max_store_bytes)
      return mark_lost(connection, "it sent an invalid message");
    auto const bytes = sizeof header + header.key_bytes + header.value_bytes;
    if (connection.in.size() < bytes) return;
    auto const key = connection.in.substr(sizeof header, header.key_bytes);
    auto const value = connection.in.substr(sizeof header + header.key_bytes, header.value_bytes);
    connection.in.erase(0, bytes);
    answer(connection, static_cast<detail::StoreCall>(header.type), key, value, header.rank);
  }
}

LOCKSTEP_INLINE bool StoreServer::accept_handshake(Connection& connection, detail::StoreHandshake const& handshake) {
  std::string refusal;
  auto const who = "rank " + std::to_string(handshake.rank);
  if (handshake.version != detail::StoreHandshake::expected_version)
    refusal = who + " uses version " + std::to_string(handshake.version) +
              " of the store protocol, the server version " + std::to_string(detail::StoreHandshake::expected_version) +
              "; start the same program everywhere";
  else if (handshake.job != options_.job)
    refusal = who +
              " belongs to another run than this port: two runs use one port, or this rank's MASTER_ADDR, "
              "MASTER_PORT or WORLD_SIZE differs from rank 0's; all must be identical";
  else if (handshake.size != options_.size || handshake.rank < 0 || handshake.rank >= options_.size)
    refusal = who + " of " + std::to_string(handshake.size) + " cannot join a run of " + std::to_string(options_.size) +
              " ranks";
  else if (std::any_of(connections_.begin(), connections_.end(), [&](Connection const& g) {
             return !g.closed && g.rank == handshake.rank && g.kind == handshake.kind;
           }))
    refusal = who + " has joined already; each rank needs its own number, and each run its own port";
  if (!refusal.empty()) {
    reply(connection, detail::StoreReply::refused, refusal);
    send(connection);
    connection.closed = true;
    return false;
  }
  connection.rank = handshake.rank;
  connection.kind = handshake.kind;
  connection.handshake_deadline = no_deadline;
  detail::detect_silence(connection.file.get(), options_.silence_seconds, connection.kind);
  reply(connection, detail::StoreReply::done, detail::StoreHandshake::acceptance());
  if (connection.kind == detail::StoreConnectionKind::notifications)
    for (auto const& one : notifications_) reply(connection, one.type, one.value, one.rank);
  return true;
}

LOCKSTEP_INLINE void StoreServer::answer(Connection& connection, detail::StoreCall call, std::string const& key,
                                         std::string const& value, int members) {
  switch (call) {
    case detail::StoreCall::set:
      values_[key] = value;
      reply(connection, detail::StoreReply::done, {});
      return answer_waiting();
    case detail::StoreCall::get:
      connection.waiting = true;
      connection.key = key;
      return answer_waiting();
    case detail::StoreCall::add: {
      std::int64_t more = 0, sum = 0;
      std::memcpy(&more, value.data(), std::min(value.size(), sizeof more));
      auto& text = values_[key];
      std::memcpy(&sum, text.data(), std::min(text.size(), sizeof sum));
      sum += more;
      text.assign(reinterpret_cast<char const*>(&sum), sizeof sum);
      reply(connection, detail::StoreReply::done, text);
      return answer_waiting();
    }
    case detail::StoreCall::gather:
      return gather(connection, key, value, members);
    case detail::StoreCall::contributors: {
      std::string ranks;
      if (auto const found = gatherings_.find(key); found != gatherings_.end())
        for (auto const& [rank, part] : found->second) ranks.append(detail::as_bytes(rank));
      return reply(connection, detail::StoreReply::done, ranks);
    }
    case detail::StoreCall::ended:
      connection.ended = true;
      return end(connection, value);
    case detail::StoreCall::leave:
      connection.closed = true;
      return;
  }
  mark_lost(connection, "it sent an invalid message");
}

LOCKSTEP_INLINE void StoreServer::gather(Connection const& connection, std::string const& key, std::string const& value,
                                         int members) {
  auto const found = gatherings_.try_emplace(key).first;
  auto& parts = found->second;
  parts[connection.rank] = value;
  if (std::ssize(parts) < members) return;
  std::string all;
  for (auto const& [rank, part] : parts) {
    std::int32_t const header[2]{rank, static_cast<std::int32_t>(part.size())};
    all.append(reinterpret_cast<char const*>(header), sizeof header).append(part);
  }
  for (auto& one : connections_) {
    if (one.closed || one.kind != detail::StoreConnectionKind::requests || parts.count(one.rank) == 0) continue;
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

LOCKSTEP_INLINE void StoreServer::end(Connection const& connection, std::string const& value) {
  auto const how = detail::from_bytes<detail::RankEnd>(value);
  if (how.exit_code != 0 || how.signal != 0)
    fail_waiting(connection.rank, "rank " + std::to_string(connection.rank) + " has failed: " + how.message);
  notify_all({detail::StoreReply::rank_ended, connection.rank, value});
}

LOCKSTEP_INLINE void StoreServer::answer_waiting() {
  for (auto& connection : connections_) {
    if (!connection.waiting || connection.closed) continue;
    auto const found = values_.find(connection.key);
    if (found == values_.end() && lost_.empty()) continue;
    connection.waiting = false;
    if (found != values_.end())
      reply(connection, detail::StoreReply::done, found->second);
    else
      reply(connection, detail::StoreReply::lost, lost_, lost_rank_);
    send(connection);
  }
}

LOCKSTEP_INLINE void StoreServer::mark_lost(Connection& connection, std::string const& why) {
  connection.closed = true;
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
