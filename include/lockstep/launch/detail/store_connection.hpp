// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/launch/detail/local_socket.hpp>
#include <lockstep/launch/detail/readable.hpp>
#include <lockstep/launch/detail/store_protocol.hpp>
#include <lockstep/launch/peer_text.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Address of a store, and the rank that connects to it.
struct StoreAddress {
  std::string host = "localhost";
  std::uint16_t port = 0;
  std::uint64_t job = 0;
  int rank = 0;
  int size = 1;
  double join_seconds = 60;     ///< time limit for the server to appear
  double wait_seconds = 600;    ///< time limit of `get`, and of a send; may be infinity
  double silence_seconds = 15;  ///< a server is lost if it cannot be reached for this long
  std::string local_name = {};  ///< the store's abstract Unix socket, instead of host and port
  std::string secret = {};      ///< of the run; empty: accepts a store that does not prove that it is this run's
};

/// Returns whether a socket is connected to itself. The system may do this if nothing listens at a port from the range
/// that it also gives to clients.
[[nodiscard]] bool is_connected_to_itself(FileDescriptor const& file) noexcept;

/// The store refuses this rank.
struct StoreRefusal : ConfigError {
  using ConfigError::ConfigError;
};

/// A rank's connection to a store: whole messages in both directions. One thread may send while another receives.
class StoreConnection {
 public:
  struct Message {
    StoreReply type;
    int rank;
    std::string key, value;
  };

  /// Connects and authenticates. Tries again until `join_seconds` have passed if there is no server, or if it closes
  /// the connection before it has answered.
  /// @throws ConfigError if no server is found in time, or it refuses this rank
  StoreConnection(StoreAddress address, StoreConnectionKind kind);
  /// Tries once, until the deadline at most. A server that has a secret has `challenge_seconds` to prove that it knows
  /// it.
  /// @throws ConfigError if there is no server, or it refuses this rank
  StoreConnection(StoreAddress address, StoreConnectionKind kind, Deadline deadline,
                  double challenge_seconds = max_answer_seconds);

  [[nodiscard]] StoreAddress const& address() const noexcept { return address_; }
  [[nodiscard]] std::string address_text() const {
    return address_.local_name.empty() ? address_.host + ":" + std::to_string(address_.port) : address_.local_name;
  }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

  /// @throws CommunicationError if the server cannot be reached, or accepts nothing until the deadline
  void send(std::string_view bytes, Deadline deadline);
  void send(std::string_view bytes) { send(bytes, deadline_in(address_.wait_seconds)); }
  /// Sends as much as the system accepts without waiting.   @returns the number of bytes
  /// @throws CommunicationError if the server cannot be reached
  [[nodiscard]] std::size_t send_some(std::string_view bytes);
  void send(StoreCall call, std::string_view key, std::string_view value, int members = 0);

  /// Returns the next message if it has arrived.
  /// @throws CommunicationError if the server cannot be reached, ConfigError if it is no store
  [[nodiscard]] std::optional<Message> next();
  /// Waits for the next message. Returns nullopt at the deadline.
  [[nodiscard]] std::optional<Message> wait(Deadline deadline);
  /// Throws the error for an answer that is not from a store.
  [[noreturn]] void throw_no_store() const;
  /// Returns whether a short message can be sent without waiting.
  [[nodiscard]] bool can_send() const noexcept;

 private:
  enum class Joined { yes, no_server, hung_up };
  static std::string time_limit_text(double seconds);
  [[noreturn]] void throw_not_joined(Joined joined) const;

  /// Connects and authenticates, once.
  Joined join(StoreConnectionKind kind, Deadline deadline, double challenge_seconds);
  bool connect(Deadline deadline);
  bool connect_to(int family, sockaddr const* address, socklen_t bytes, Deadline deadline);
  /// Checks the store's proof, and sends this rank's.
  void answer_challenge(Message const& message, StoreHandshake const& handshake, Deadline deadline);

  std::optional<Message> parse();
  /// Returns the most bytes of the value of an answer.
  [[nodiscard]] std::uint64_t max_value_bytes(StoreReply type) const noexcept;

  [[noreturn]] void throw_lost(std::string const& why) const;

  StoreAddress address_;
  FileDescriptor file_;
  std::string connect_error_;  // reason of the last failed connection
  std::string received_;
  std::size_t parsed_bytes_ = 0;  // number of parsed bytes in `received_`
  bool has_joined_ = false;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/detail/store_connection.ipp>
#endif
