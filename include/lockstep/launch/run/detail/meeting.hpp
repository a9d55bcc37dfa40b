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

  Meeting(std::string const& key, int rank, int size);

  /// Runs the meeting on rank 0: waits for all other ranks and sends the memory to each.
  /// @returns the connections by rank; none for rank 0
  /// @throws ConfigError with the missing ranks after the time limit, or if a run with this name exists
  std::vector<File> host(int memory, std::uint64_t job, double seconds);

  struct Joined {
    File connection, memory;
    std::uint64_t job = 0;
  };

  /// Joins the meeting on the other ranks: waits for rank 0 and its answer.
  /// @throws ConfigError if rank 0 does not appear in time, or refuses
  Joined attend(double seconds);

 private:
  /// Reads a peer's hello. @returns 1 if it is a missing rank
  int admit(File guest, std::vector<File>& ranks, int memory, std::uint64_t job) const;

  [[nodiscard]] std::string why_not(Hello const& hello, std::vector<File> const& ranks) const;

  [[noreturn]] void throw_missing(std::vector<File> const& ranks, double seconds) const;

  [[nodiscard]] File connect(Deadline deadline, double seconds) const;

  /// Returns the peer's credentials: any user may bind, or connect to, any name.
  static ucred peer_of(File const& connection) noexcept;
  static void check_owner(File const& connection);

  static bool send(File const& to, Answer const& answer, int file);

  static bool receive(File const& from, Answer& answer, File& file);

  [[nodiscard]] sockaddr const* address() const noexcept { return reinterpret_cast<sockaddr const*>(&address_); }

  Hello hello_;
  sockaddr_un address_{};
  socklen_t address_bytes_ = 0;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/meeting.ipp>
#endif
