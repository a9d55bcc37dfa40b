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
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/detail/store_wire.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Key-value store for the ranks of a run that share no memory. Serves bytes under names over TCP, on a thread of its
/// own, until it is destroyed. Accepts only ranks of this run. A rank is lost if its connection ends without a farewell
/// or its host stops responding; all waiting ranks are told. Connections of kind `news` receive a message for every
/// rank that ends or is lost, including earlier ones.
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
  static constexpr int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

  struct Guest {
    detail::File file;
    int rank = -1;  // -1 before the handshake
    detail::StoreLineKind kind = detail::StoreLineKind::calls;
    bool waits = false, over = false;
    bool ended = false;               // the rank has said so, or is lost
    std::string in, out, key;         // key: name that the rank waits for
    Deadline patience = no_deadline;  // handshake deadline
  };
  struct News {
    detail::StoreReply what;
    int rank;
    std::string value;
  };

  void run();

  void admit();

  void serve(Guest& guest);

  void send(Guest& guest);

  void listen_to(Guest& guest);

  bool welcome(Guest& guest, detail::StoreHello const& hello);

  void answer(Guest& guest, detail::StoreCall call, std::string const& key, std::string const& value, int members);

  void gather(Guest const& guest, std::string const& key, std::string const& value, int members);
  void tell_all(News news);
  void end(Guest const& guest, std::string const& value);
  /// Answers waiting ranks. Values that exist are returned even after a rank was lost; only ranks that would wait in
  /// vain get an error.
  void tell_waiting();

  void lose(Guest& guest, std::string const& why);
  /// Ends waits for values that are not set: they would not end otherwise.
  void forget_waiting(int rank, std::string why);

  static void reply(Guest& guest, detail::StoreReply what, std::string_view value, int rank = 0,
                    std::string_view key = {});

  Options options_;
  detail::File door_;
  detail::File stop_{::eventfd(0, EFD_CLOEXEC)};
  Deadline shut_until_ = 0;  // set if the system could not accept a connection
  std::vector<Guest> guests_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::map<int, std::string>> gatherings_;  // by rank
  std::vector<News> news_;
  std::atomic<int> here_{0};  // connections of ranks that have not ended
  std::string lost_;
  int lost_rank_ = -1;
  std::thread thread_;
};

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/store/store_server.ipp>
#endif
