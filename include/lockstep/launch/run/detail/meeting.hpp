// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/launch/detail/file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Meeting of a run's ranks on one host that another launcher has started. They meet at an abstract socket with a name
/// derived from the run, so that no file remains. Rank 0 opens it and sends the shared memory to the others. The
/// connections stay open: one that closes means that a rank has ended.
class Meeting {
 public:
  static constexpr std::uint64_t magic = 0x4c4b53544d454554;
  static constexpr std::uint32_t version = 1;

  struct Hello {
    std::uint64_t magic = Meeting::magic;
    std::uint32_t version = Meeting::version;
    std::int32_t rank = 0, size = 0;
    char key[492] = {};  // key of the run, truncated if it is longer
  };
  struct Answer {
    std::uint64_t magic = Meeting::magic;
    std::uint64_t job = 0;
    char refusal[240] = {};  // empty: accepted
  };

  Meeting(std::string const& key, int rank, int size) {
    hello_.rank = rank;
    hello_.size = size;
    key.copy(hello_.key, sizeof hello_.key - 1);
    // The name must be short and equal on all ranks: a hash of the key. Rank 0 compares the whole key.
    auto const name = "lockstep-" + std::to_string(::geteuid()) + "-" + std::to_string(mix(std::string_view(key)));
    address_.sun_family = AF_UNIX;
    name.copy(address_.sun_path + 1, sizeof address_.sun_path - 1);
    address_bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }

  /// Runs the meeting on rank 0: waits for all other ranks and sends the memory to each.
  /// @returns the connections by rank; none for rank 0
  /// @throws ConfigError with the missing ranks after the time limit, or if a run with this name exists
  std::vector<File> host(int memory, std::uint64_t job, double seconds) {
    File const door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (door.get() < 0 || ::bind(door.get(), address(), address_bytes_) != 0 || ::listen(door.get(), hello_.size) != 0)
      throw ConfigError(std::string("launch: rank 0 could not open the rendezvous of ") + hello_.key + " (" +
                        std::strerror(errno) + ")" +
                        (errno == EADDRINUSE ? "; another run of the same name is running on this host" : ""));
    std::vector<File> ranks(static_cast<std::size_t>(hello_.size)), waiting;
    int missing = hello_.size - 1;
    for (auto const deadline = deadline_in(seconds); missing > 0;) {
      std::vector<pollfd> polled{{door.get(), POLLIN, 0}};
      for (auto const& one : waiting) polled.push_back({one.get(), POLLIN, 0});
      auto const come = ::poll(polled.data(), polled.size(), milliseconds_until(deadline));
      if (come == 0 && Clock::nanoseconds() >= deadline) throw_missing(ranks, seconds);
      for (std::size_t i = waiting.size(); i > 0; --i) {
        if (polled[i].revents == 0) continue;
        missing -= admit(std::move(waiting[i - 1]), ranks, memory, job);
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      }
      if ((polled[0].revents & POLLIN) != 0)
        if (File guest(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC)); guest.get() >= 0)
          waiting.push_back(std::move(guest));
    }
    return ranks;
  }

  struct Joined {
    File connection, memory;
    std::uint64_t job = 0;
  };

  /// Joins the meeting on the other ranks: waits for rank 0 and its answer.
  /// @throws ConfigError if rank 0 does not appear in time, or refuses
  Joined attend(double seconds) {
    auto const deadline = deadline_in(seconds);
    File connection = connect(deadline, seconds);
    check_owner(connection);
    Answer answer{};
    File memory;
    bool const sent = ::send(connection.get(), &hello_, sizeof hello_, MSG_NOSIGNAL) == sizeof hello_;
    if (!sent || !readable(connection.get(), deadline) || !receive(connection, answer, memory))
      throw ConfigError("launch: rank " + std::to_string(hello_.rank) + " reached rank 0 of " + hello_.key +
                        ", which did not answer; see its own message");
    if (answer.magic != magic) throw ConfigError("launch: the process that answers as rank 0 is not a Lockstep rank");
    if (answer.refusal[0] != '\0') throw ConfigError(std::string("launch: ") + answer.refusal);
    return {std::move(connection), std::move(memory), answer.job};
  }

 private:
  /// Reads a peer's hello. @returns 1 if it is a missing rank
  int admit(File guest, std::vector<File>& ranks, int memory, std::uint64_t job) const {
    Hello hello{};
    Answer answer;
    answer.job = job;
    auto const got = ::recv(guest.get(), &hello, sizeof hello, MSG_DONTWAIT | MSG_TRUNC);
    if (got != sizeof hello || hello.magic != magic || peer_of(guest).uid != ::geteuid())
      return 0;  // no rank of ours: send nothing
    auto const refusal = why_not(hello, ranks);
    refusal.copy(answer.refusal, sizeof answer.refusal - 1);
    if (!send(guest, answer, refusal.empty() ? memory : -1) || !refusal.empty()) return 0;
    ranks[static_cast<std::size_t>(hello.rank)] = std::move(guest);
    return 1;
  }

  [[nodiscard]] std::string why_not(Hello const& hello, std::vector<File> const& ranks) const {
    auto const who = "rank " + std::to_string(hello.rank);
    if (hello.version != version)
      return who + " uses version " + std::to_string(hello.version) + " of the rendezvous protocol, rank 0 version " +
             std::to_string(version) + "; start the same program everywhere";
    if (std::strncmp(hello.key, hello_.key, sizeof hello.key) != 0) return who + " belongs to another run";
    if (hello.size != hello_.size || hello.rank <= 0 || hello.rank >= hello_.size)
      return who + " of " + std::to_string(hello.size) + " cannot join a run of " + std::to_string(hello_.size) +
             " ranks";
    if (ranks[static_cast<std::size_t>(hello.rank)].get() >= 0) return who + " has joined already";
    return {};
  }

  [[noreturn]] void throw_missing(std::vector<File> const& ranks, double seconds) const {
    std::string missing;
    for (std::size_t r = 1; r < ranks.size(); ++r)
      if (ranks[r].get() < 0) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    throw ConfigError("launch: of " + std::to_string(hello_.size) + " ranks these have not joined within " +
                      std::to_string(static_cast<long>(seconds)) + " s: " + missing + " (" + hello_.key +
                      "); were they started, on this host?");
  }

  [[nodiscard]] File connect(Deadline deadline, double seconds) const {
    for (;;) {
      File out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      if (::connect(out.get(), address(), address_bytes_) == 0) return out;
      if ((errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) || Clock::nanoseconds() >= deadline)
        throw ConfigError("launch: rank " + std::to_string(hello_.rank) + " has not reached rank 0 within " +
                          std::to_string(static_cast<long>(seconds)) + " s (" + std::strerror(errno) + ", " +
                          hello_.key + "); was it started, on this host?");
      ::usleep(2000);
    }
  }

  /// Returns the peer's credentials: any user may bind, or connect to, any name.
  static ucred peer_of(File const& connection) noexcept {
    ucred peer{0, static_cast<uid_t>(-1), 0};
    socklen_t bytes = sizeof peer;
    ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
    return peer;
  }
  static void check_owner(File const& connection) {
    if (auto const peer = peer_of(connection); peer.uid != ::geteuid())
      throw ConfigError("launch: another user's process (" + std::to_string(peer.pid) +
                        ") answers instead of rank 0; end it, or start the run under another name");
  }

  static bool send(File const& to, Answer const& answer, int file) {
    iovec part{const_cast<Answer*>(&answer), sizeof answer};
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
    return ::sendmsg(to.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof answer;
  }

  static bool receive(File const& from, Answer& answer, File& file) {
    iovec part{&answer, sizeof answer};
    int received = -1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof received)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(from.get(), &message, MSG_CMSG_CLOEXEC) != sizeof answer) return false;
    auto const* const head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS) std::memcpy(&received, CMSG_DATA(head), sizeof received);
    file = File(received);
    return answer.refusal[0] != '\0' || received >= 0;
  }

  [[nodiscard]] sockaddr const* address() const noexcept { return reinterpret_cast<sockaddr const*>(&address_); }

  Hello hello_;
  sockaddr_un address_{};
  socklen_t address_bytes_ = 0;
};

}}}  // namespace lockstep::launch::detail
