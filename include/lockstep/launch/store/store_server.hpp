// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
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
#include <lockstep/launch/peer_text.hpp>
#include <lockstep/launch/store/detail/store_listener.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Key-value store for the ranks of a run that share no memory. Serves bytes under names over TCP, on a thread of its
/// own, until it is destroyed. Accepts only ranks of this run, which prove that they know its secret if it has one. A
/// rank is lost if its connection ends without a farewell or its host stops responding; all waiting ranks get an error.
/// Connections of kind `notifications` receive a message for every rank that ends or is lost, including earlier ones.
///
/// Connections that are not authenticated are limited in number, bytes and time. Names and values may have 64 MiB in
/// all.
class StoreServer {
 public:
  /// Options of a server: the run that it serves, where it listens, who may connect.
  struct Options {
    std::uint64_t job = 0;        ///< number of the run, unknown to other programs
    int size = 1;                 ///< number of ranks
    std::uint16_t port = 0;       ///< 0: a free port, see `port()`
    double silence_seconds = 15;  ///< a rank is lost if its host cannot be reached for this long
    /// Listens on the network interface of this address or name; on all if this host does not have it.
    std::string host = "localhost";
    /// Listens on an abstract Unix socket of this name instead, and accepts only processes of this user.
    std::string local_name = {};
    std::string secret = {};  ///< empty: accepts every process that knows `job`
  };

  /// @throws ConfigError if the port is not available
  explicit StoreServer(Options const& options);
  StoreServer(StoreServer const&) = delete;
  StoreServer& operator=(StoreServer const&) = delete;
  ~StoreServer();

  /// Waits until every rank that has connected has ended, left or is lost, for at most `seconds`.   @returns whether
  /// they have
  bool wait_for_ends(double seconds) const;

  /// Returns the TCP port on which it listens; 0 for a Unix socket.
  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port(); }
  /// Returns an address of this server for clients of this process.
  [[nodiscard]] std::string const& host() const noexcept { return listener_.host(); }
  /// Returns whether the server listens on all network interfaces, because this host does not have `Options::host`.
  [[nodiscard]] bool on_all_interfaces() const noexcept { return listener_.on_all_interfaces(); }

 private:
  /// Unauthenticated connections at a time. If all places are taken, a new connection takes that of the oldest, which
  /// has had at least `min_stay_seconds` by then: enough for a rank, which answers at once.
  static constexpr std::size_t most_unproven = 64;
  static constexpr double min_stay_seconds = 0.02;
  /// Bytes that a name takes in addition to its text and its value.
  static constexpr std::size_t entry_bytes = 128;

  struct Connection {
    FileDescriptor file;
    int rank = -1;  // -1 before it is authenticated
    detail::StoreConnectionKind kind = detail::StoreConnectionKind::requests;
    bool waiting = false, closed = false;
    bool ended = false;        // the rank has said so, or is lost
    bool challenged = false;   // has sent `handshake`, and got `nonce`
    std::string in, out, key;  // key: name that the rank waits for
    detail::StoreHandshake handshake = {};
    detail::StoreNonce nonce = {};
    std::size_t sent = 0;  // bytes of `out`
    Deadline accepted_at = 0;
    std::uint32_t events = 0;  // of epoll, that are watched for

    [[nodiscard]] std::size_t unsent() const noexcept { return out.size() - sent; }
  };
  using Connections = std::list<Connection>;  // whose elements keep their addresses
  /// Contributions under one name.
  struct Gathering {
    int members = 0;
    std::map<int, std::string> parts = {};  // by rank
  };
  struct Notification {
    detail::StoreReply type;
    int rank;
    std::string value;
  };

  static detail::StoreListener listener_for(Options const& options);
  static std::size_t places_of_process() noexcept;

  void run();
  /// Watches for events of a file; `data` comes with each.
  void watch(int operation, int file, std::uint32_t events, void* data) const;
  /// Watches for what a connection can do next.
  void watch(Connection& connection) const;

  /// Returns the time at which a new connection may have a place, or 0 for now.
  [[nodiscard]] Deadline next_place() const noexcept;
  /// Closes connections that have not been authenticated in time.   @returns the time of the next such limit
  Deadline close_late();
  void admit(FileDescriptor const& listening_socket);
  Connections::iterator remove(Connections& connections, Connections::iterator connection) const;
  void remove_closed();
  void close(Connection& connection) noexcept;

  void serve(Connection& connection);
  /// Returns how many bytes the connection may send now.
  [[nodiscard]] static std::size_t readable_bytes(Connection const& connection) noexcept;

  void send(Connection& connection);

  void parse(Connection& connection);
  /// Reads what an unauthenticated connection has sent. Returns whether the connection is a rank's now.
  bool authenticate(Connection& connection);
  [[nodiscard]] std::string refusal_reason(detail::StoreHandshake const& handshake) const;
  [[nodiscard]] bool has_joined(detail::StoreHandshake const& handshake) const noexcept;
  bool refuse(Connection& connection, std::string const& reason);
  void accept(Connection& connection);

  /// Returns whether a connection of this kind may make the call.
  [[nodiscard]] static bool may(detail::StoreConnectionKind kind, detail::StoreCall call) noexcept;
  void answer(Connection& connection, detail::StoreCall call, std::string const& key, std::string const& value,
              int members);
  /// Stores the value, if the store has room for it; else answers with a refusal.
  bool store(Connection& connection, std::string const& key, std::string_view value);

  void gather(Connection& connection, std::string const& key, std::string const& value, int members);
  void notify_all(Notification notification);
  void end(Connection& connection, std::string const& value);
  /// Answers waiting ranks. Values that exist are returned even after a rank was lost; only ranks that would wait in
  /// vain get an error.
  void answer_waiting();

  void mark_lost(Connection& connection, std::string const& why);
  /// Ends waits for values that are not set: they would not end otherwise.
  void fail_waiting(int rank, std::string why);

  static void reply(Connection& connection, detail::StoreReply type, std::string_view value, int rank = 0,
                    std::string_view key = {});

  Options options_;
  detail::StoreListener listener_;
  FileDescriptor stop_{::eventfd(0, EFD_CLOEXEC)};
  Deadline accept_after_ = 0;  // set if the system could not accept a connection
  FileDescriptor epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  Connections unproven_;     // not authenticated, the oldest first
  Connections connections_;  // of ranks
  bool has_closed_ = false, accepts_ = false;
  int waiting_ = 0;  // ranks that wait for a value
  std::map<std::string, std::string> values_;
  std::map<std::string, Gathering> gatherings_;
  std::size_t stored_bytes_ = 0, gathering_bytes_ = 0, places_ = places_of_process();
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
