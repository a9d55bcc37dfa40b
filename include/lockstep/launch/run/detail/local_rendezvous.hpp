// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/launch/detail/local_socket.hpp>
#include <lockstep/launch/detail/readable.hpp>
#include <lockstep/launch/peer_text.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Rendezvous of a run's ranks on one host that another launcher has started. They use an abstract socket with a name
/// derived from the run, so that no file remains. Rank 0 opens it and sends the shared memory to the others, if they
/// belong to its user. The connections stay open: one that closes means that a rank has ended.
class LocalRendezvous {
 public:
  static constexpr std::uint64_t magic = 0x4c4b53544d454554;
  static constexpr std::uint32_t version = 1;

  struct Handshake {
    std::uint64_t magic = LocalRendezvous::magic;
    std::uint32_t version = LocalRendezvous::version;
    std::int32_t rank = 0, size = 0;
    char key[492] = {};  // key of the run, truncated if it is longer
  };
  struct Reply {
    std::uint64_t magic = LocalRendezvous::magic;
    std::uint64_t job = 0;
    char refusal[240] = {};  // empty: accepted
  };

  /// @param secret of the run: no other program can then find out the socket's name before it exists. May be empty.
  LocalRendezvous(std::string const& key, int rank, int size, std::string const& secret = {});

  /// Runs the rendezvous on rank 0: waits for all other ranks and sends the memory to each.
  /// @returns the connections by rank; none for rank 0
  /// @throws ConfigError with the missing ranks after the time limit, or if a run with this name exists
  std::vector<FileDescriptor> accept_ranks(int memory, std::uint64_t job, double seconds);

  struct Joined {
    FileDescriptor connection, memory;
    std::uint64_t job = 0;
  };

  /// Joins the rendezvous on the other ranks: waits for rank 0 and its reply.
  /// @throws ConfigError if rank 0 does not appear in time, or refuses
  Joined join(double seconds);

 private:
  /// Connections of unauthenticated peers that have sent no handshake, at a time, in addition to those of the missing
  /// ranks. The next connection takes the place of the oldest.
  static constexpr std::size_t most_unknown = 64;
  static constexpr int backlog = 4096;
  struct Waiting {
    FileDescriptor file;
    Deadline until;  // for its handshake
  };

  [[nodiscard]] FileDescriptor open() const;
  /// Accepts all pending connections of this user. Keeps the last `most` that wait.
  static void accept_pending(FileDescriptor const& listening_socket, std::vector<Waiting>& waiting, std::size_t most);
  /// Reads a peer's hello. @returns 1 if it is a missing rank
  int admit(FileDescriptor peer_socket, std::vector<FileDescriptor>& ranks, int memory, std::uint64_t job) const;

  [[nodiscard]] std::string refusal_reason(Handshake const& handshake, std::vector<FileDescriptor> const& ranks) const;

  [[noreturn]] void throw_missing(std::vector<FileDescriptor> const& ranks, double seconds) const;

  [[nodiscard]] FileDescriptor connect(Deadline deadline, double seconds) const;

  static void check_owner(FileDescriptor const& connection);

  static bool send(FileDescriptor const& to, Reply const& reply, int file);

  static bool receive(FileDescriptor const& from, Reply& reply, FileDescriptor& file);

  Handshake handshake_;
  LocalAddress address_;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/local_rendezvous.ipp>
#endif
