// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/readable.hpp>
#include <lockstep/launch/detail/store_protocol.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Key-value store for the ranks of a run that share no memory. Serves bytes under names over TCP, on a thread of its
/// own, until it is destroyed. Accepts only ranks of this run. A rank is lost if its connection ends without a farewell
/// or its host stops responding; all waiting ranks get an error. Connections of kind `notifications` receive a message
/// for every rank that ends or is lost, including earlier ones.
class StoreServer {
 public:
  struct Options {
    std::uint64_t job = 0;        ///< number of the run, unknown to other programs
    int size = 1;                 ///< number of ranks
    std::uint16_t port = 0;       ///< 0: a free port, see `port()`
    double silence_seconds = 15;  ///< a rank is lost if its host cannot be reached for this long
  };

  /// @throws ConfigError if the port is not available
  explicit StoreServer(Options const& options);
  StoreServer(StoreServer const&) = delete;
  StoreServer& operator=(StoreServer const&) = delete;
  ~StoreServer();

  /// Waits until every rank that has connected has ended, left or is lost, for at most `seconds`.   @returns whether
  /// they have
  bool wait_for_ends(double seconds) const;

  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  static constexpr int socket_type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

  struct Connection {
    FileDescriptor file;
    int rank = -1;  // -1 before the handshake
    detail::StoreConnectionKind kind = detail::StoreConnectionKind::requests;
    bool waiting = false, closed = false;
    bool ended = false;        // the rank has said so, or is lost
    std::string in, out, key;  // key: name that the rank waits for
    Deadline handshake_deadline = no_deadline;
  };
  struct Notification {
    detail::StoreReply type;
    int rank;
    std::string value;
  };

  void run();

  void admit();

  void serve(Connection& connection);

  void send(Connection& connection);

  void parse(Connection& connection);

  bool accept_handshake(Connection& connection, detail::StoreHandshake const& handshake);

  void answer(Connection& connection, detail::StoreCall call, std::string const& key, std::string const& value,
              int members);

  void gather(Connection const& connection, std::string const& key, std::string const& value, int members);
  void notify_all(Notification notification);
  void end(Connection const& connection, std::string const& value);
  /// Answers waiting ranks. Values that exist are returned even after a rank was lost; only ranks that would wait in
  /// vain get an error.
  void answer_waiting();

  void mark_lost(Connection& connection, std::string const& why);
  /// Ends waits for values that are not set: they would not end otherwise.
  void fail_waiting(int rank, std::string why);

  static void reply(Connection& connection, detail::StoreReply type, std::string_view value, int rank = 0,
                    std::string_view key = {});

  Options options_;
  FileDescriptor listening_socket_;
  FileDescriptor stop_{::eventfd(0, EFD_CLOEXEC)};
  Deadline accept_after_ = 0;  // set if the system could not accept a connection
  std::vector<Connection> connections_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::map<int, std::string>> gatherings_;  // by rank
  std::vector<Notification> notifications_;
  std::atomic<int> active_connections_{0};  // connections of ranks that have not ended
  std::string lost_;
  int lost_rank_ = -1;
  std::thread thread_;
};

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/store/store_server.ipp>
#endif
