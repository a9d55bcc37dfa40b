// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>

#include <lockstep/core/hmac_sha256.hpp>
#include <lockstep/launch/run/detail/local_rendezvous.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE LocalRendezvous::LocalRendezvous(std::string const& key, int rank, int size, std::string const& secret)
    // The name must be short and equal on all ranks: a hash of the key. Rank 0 compares the whole key.
    : address_("lockstep-" + std::to_string(::geteuid()) + "-" +
               (secret.empty() ? std::to_string(mix(std::string_view(key)))
                               : hex(hmac_sha256(std::as_bytes(std::span(secret)), std::as_bytes(std::span(key)))))) {
  handshake_.rank = rank;
  handshake_.size = size;
  key.copy(handshake_.key, sizeof handshake_.key - 1);
}

LOCKSTEP_INLINE FileDescriptor LocalRendezvous::open() const {
  FileDescriptor out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (out.get() >= 0 && ::bind(out.get(), address_.get(), address_.bytes) == 0 && ::listen(out.get(), backlog) == 0)
    return out;
  auto const why = errno;
  std::string cause;
  if (why == EADDRINUSE) {
    FileDescriptor const other(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    bool const is_known = ::connect(other.get(), address_.get(), address_.bytes) == 0;
    cause = is_known && !is_own_user(other)
                ? "; another user's process (" + std::to_string(peer_credentials(other).pid) +
                      ") has this name; end it, or start the run under another name"
                : "; another run of the same name is running on this host";
  }
  throw ConfigError(std::string("launch: rank 0 could not open the rendezvous of ") + handshake_.key + " (" +
                    std::strerror(why) + ")" + cause);
}

LOCKSTEP_INLINE std::vector<FileDescriptor> LocalRendezvous::accept_ranks(int memory, std::uint64_t job,
                                                                          double seconds) {
  auto const listening_socket = open();
  std::vector<FileDescriptor> ranks(static_cast<std::size_t>(handshake_.size));
  std::vector<Waiting> waiting;
  int missing = handshake_.size - 1;
  for (auto const deadline = deadline_in(seconds); missing > 0;) {
    if (Clock::nanoseconds() >= deadline) throw_missing(ranks, seconds);
    std::vector<pollfd> polled{{listening_socket.get(), POLLIN, 0}};
    auto until = deadline;
    for (auto const& one : waiting) {
      polled.push_back({one.file.get(), POLLIN, 0});
      until = std::min(until, one.until);
    }
    ::poll(polled.data(), polled.size(), milliseconds_until(until));
    for (std::size_t i = waiting.size(); i > 0; --i) {
      auto& one = waiting[i - 1];
      if (polled[i].revents == 0 && Clock::nanoseconds() < one.until) continue;
      if (polled[i].revents != 0) missing -= admit(std::move(one.file), ranks, memory, job);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
    auto const most = most_unknown + static_cast<std::size_t>(missing);  // all ranks may come at once
    if ((polled[0].revents & POLLIN) != 0) accept_pending(listening_socket, waiting, most);
  }
  return ranks;
}

LOCKSTEP_INLINE void LocalRendezvous::accept_pending(FileDescriptor const& listening_socket,
                                                     std::vector<Waiting>& waiting, std::size_t most) {
  constexpr int most_at_once = 1024;
  constexpr double handshake_seconds = 4;
  for (int i = 0; i < most_at_once; ++i) {
    FileDescriptor peer(::accept4(listening_socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (peer.get() < 0) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) ::usleep(10'000);  // no descriptor is free
      return;
    }
    if (!is_own_user(peer)) continue;
    if (waiting.size() >= most) waiting.erase(waiting.begin());
    waiting.push_back({std::move(peer), deadline_in(handshake_seconds)});
  }
}

LOCKSTEP_INLINE LocalRendezvous::Joined LocalRendezvous::join(double seconds) {
  auto const deadline = deadline_in(seconds);
  FileDescriptor connection = connect(deadline, seconds);
  check_owner(connection);
  Reply reply{};
  FileDescriptor memory;
  bool const sent = ::send(connection.get(), &handshake_, sizeof handshake_, MSG_NOSIGNAL) == sizeof handshake_;
  if (!sent || !readable(connection.get(), deadline) || !receive(connection, reply, memory))
    throw ConfigError("launch: rank " + std::to_string(handshake_.rank) + " reached rank 0 of " + handshake_.key +
                      ", which did not answer; see its own message");
  if (reply.magic != magic) throw ConfigError("launch: the process that answers as rank 0 is not a Lockstep rank");
  if (reply.refusal[0] != '\0') throw ConfigError("launch: " + peer_text(reply.refusal));
  return {std::move(connection), std::move(memory), reply.job};
}

LOCKSTEP_INLINE int LocalRendezvous::admit(FileDescriptor peer_socket, std::vector<FileDescriptor>& ranks, int memory,
                                           std::uint64_t job) const {
  Handshake handshake{};
  Reply reply;
  reply.job = job;
  auto const got = ::recv(peer_socket.get(), &handshake, sizeof handshake, MSG_DONTWAIT | MSG_TRUNC);
  if (got != sizeof handshake || handshake.magic != magic) return 0;  // no rank of ours: send nothing
  auto const refusal = refusal_reason(handshake, ranks);
  refusal.copy(reply.refusal, sizeof reply.refusal - 1);
  if (!send(peer_socket, reply, refusal.empty() ? memory : -1) || !refusal.empty()) return 0;
  ranks[static_cast<std::size_t>(handshake.rank)] = std::move(peer_socket);
  return 1;
}

LOCKSTEP_INLINE std::string LocalRendezvous::refusal_reason(Handshake const& handshake,
                                                            std::vector<FileDescriptor> const& ranks) const {
  auto const who = "rank " + std::to_string(handshake.rank);
  if (handshake.version != version)
    return who + " uses version " + std::to_string(handshake.version) + " of the rendezvous protocol, rank 0 version " +
           std::to_string(version) + "; start the same program everywhere";
  if (std::strncmp(handshake.key, handshake_.key, sizeof handshake.key) != 0) return who + " belongs to another run";
  if (handshake.size != handshake_.size || handshake.rank <= 0 || handshake.rank >= handshake_.size)
    return who + " of " + std::to_string(handshake.size) + " cannot join a run of " + std::to_string(handshake_.size) +
           " ranks";
  if (ranks[static_cast<std::size_t>(handshake.rank)].get() >= 0) return who + " has joined already";
  return {};
}

LOCKSTEP_INLINE void LocalRendezvous::throw_missing(std::vector<FileDescriptor> const& ranks, double seconds) const {
  std::string missing;
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].get() < 0) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
  throw ConfigError("launch: of " + std::to_string(handshake_.size) + " ranks these have not joined within " +
                    std::to_string(static_cast<long>(seconds)) + " s: " + missing + " (" + handshake_.key +
                    "); were they started, on this host and with the same engine?");
}

LOCKSTEP_INLINE FileDescriptor LocalRendezvous::connect(Deadline deadline, double seconds) const {
  for (;;) {
    // A blocking connect would wait without limit for a process that accepts nothing.
    FileDescriptor out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(out.get(), address_.get(), address_.bytes) == 0) return out;
    if ((errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) || Clock::nanoseconds() >= deadline)
      throw ConfigError("launch: rank " + std::to_string(handshake_.rank) + " has not reached rank 0 within " +
                        std::to_string(static_cast<long>(seconds)) + " s (" + std::strerror(errno) + ", " +
                        handshake_.key + "); was it started, on this host and with the same engine?");
    ::usleep(2000);
  }
}

LOCKSTEP_INLINE void LocalRendezvous::check_owner(FileDescriptor const& connection) {
  if (auto const peer = peer_credentials(connection); peer.uid != ::geteuid())
    throw ConfigError("launch: another user's process (" + std::to_string(peer.pid) +
                      ") answers instead of rank 0; end it, or start the run under another name");
}

LOCKSTEP_INLINE bool LocalRendezvous::send(FileDescriptor const& to, Reply const& reply, int file) {
  iovec part{const_cast<Reply*>(&reply), sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(head), &file, sizeof file);
  }
  return ::sendmsg(to.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
}

LOCKSTEP_INLINE bool LocalRendezvous::receive(FileDescriptor const& from, Reply& reply, FileDescriptor& file) {
  iovec part{&reply, sizeof reply};
  int received = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof received)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto const got = ::recvmsg(from.get(), &message, MSG_CMSG_CLOEXEC);
  auto const* const head = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof received))
    std::memcpy(&received, CMSG_DATA(head), sizeof received);
  file = FileDescriptor(received);
  reply.refusal[sizeof reply.refusal - 1] = '\0';
  return got == sizeof reply && (reply.refusal[0] != '\0' || received >= 0);
}

}}}  // namespace lockstep::launch::detail
