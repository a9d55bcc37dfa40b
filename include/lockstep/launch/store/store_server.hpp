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
  explicit StoreServer(Options const& options) : options_(options), door_(::socket(AF_INET6, type, 0)) {
    int const on = 1, off = 0;
    ::setsockopt(door_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(door_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(options.port);
    bool open = door_.get() >= 0 && ::bind(door_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
    if (!open && errno != EADDRINUSE) {  // a system without IPv6
      door_ = detail::File(::socket(AF_INET, type, 0));
      ::setsockopt(door_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      sockaddr_in any4{};
      any4.sin_family = AF_INET;
      any4.sin_port = htons(options.port);
      open = ::bind(door_.get(), reinterpret_cast<sockaddr*>(&any4), sizeof any4) == 0;
    }
    if (!open || ::listen(door_.get(), 256) != 0)
      throw ConfigError("StoreServer: port " + std::to_string(options.port) + " is not available (" +
                        std::strerror(errno) + "); another program or another rank 0 uses it; choose another port");
    if (stop_.get() < 0) throw ConfigError("StoreServer: the system refused to watch for the end (eventfd)");
    thread_ = start_thread("StoreServer", "its thread", [this] { run(); });
  }
  StoreServer(StoreServer const&) = delete;
  StoreServer& operator=(StoreServer const&) = delete;
  ~StoreServer() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  /// Waits until every rank that has connected has ended, left or is lost, for at most `seconds`.   @returns whether
  /// they have
  bool wait_for_ends(double seconds) const {
    for (auto const deadline = deadline_in(seconds); here_ > 0 && Clock::nanoseconds() < deadline;) ::usleep(1000);
    return here_ == 0;
  }

  [[nodiscard]] std::uint16_t port() const noexcept {
    sockaddr_in6 name{};
    socklen_t bytes = sizeof name;
    ::getsockname(door_.get(), reinterpret_cast<sockaddr*>(&name), &bytes);
    return ntohs(name.sin6_port);  // an IPv4 address has the port at the same offset
  }

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

  void run() {
    sigset_t all;  // the rank's own threads handle signals
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::vector<pollfd> polled;
    for (;;) {
      bool const open = Clock::nanoseconds() >= shut_until_;
      polled = {{stop_.get(), POLLIN, 0}, {door_.get(), static_cast<short>(open ? POLLIN : 0), 0}};
      auto until = open ? no_deadline : shut_until_;
      for (auto const& guest : guests_) {
        polled.push_back({guest.file.get(), static_cast<short>(guest.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
        until = std::min(until, guest.patience);
      }
      ::poll(polled.data(), polled.size(), detail::milliseconds_until(until));
      if (polled[0].revents != 0) return;
      for (std::size_t i = 0; i + 2 < polled.size(); ++i) {
        auto& guest = guests_[i];
        if (polled[i + 2].revents != 0) serve(guest);
        if (Clock::nanoseconds() >= guest.patience) guest.over = true;
      }
      std::erase_if(guests_, [](Guest const& guest) { return guest.over; });
      here_ = static_cast<int>(std::count_if(guests_.begin(), guests_.end(),
                                             [](Guest const& guest) { return guest.rank >= 0 && !guest.ended; }));
      if (polled[1].revents != 0) admit();
    }
  }

  void admit() {
    detail::File file(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (file.get() < 0) {  // the connection stays pending and would make poll return at once
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) shut_until_ = deadline_in(0.05);
      return;
    }
    Guest guest;
    guest.file = std::move(file);
    guest.patience = deadline_in(std::min(options_.silence_seconds, detail::most_answer_seconds));
    guests_.push_back(std::move(guest));
  }

  void serve(Guest& guest) {
    char buffer[4096];
    ssize_t got = 0;
    while (!guest.over && (got = ::recv(guest.file.get(), buffer, sizeof buffer, 0)) > 0) {
      guest.in.append(buffer, static_cast<std::size_t>(got));
      listen_to(guest);
    }
    if (!guest.over && (got == 0 || (errno != EAGAIN && errno != EINTR)))
      lose(guest, got == 0 ? "its connection has ended" : std::strerror(errno));
    send(guest);
  }

  void send(Guest& guest) {
    auto const sent = ::send(guest.file.get(), guest.out.data(), guest.out.size(), MSG_NOSIGNAL);
    if (sent > 0) guest.out.erase(0, static_cast<std::size_t>(sent));
  }

  void listen_to(Guest& guest) {
    if (guest.rank < 0) {
      detail::StoreHello hello;
      auto const known = std::min(guest.in.size(), sizeof hello.magic);
      if (std::memcmp(guest.in.data(), &hello.magic, known) != 0) {
        guest.over = true;  // not a rank: send nothing
        return;
      }
      if (guest.in.size() < sizeof hello) return;
      std::memcpy(&hello, guest.in.data(), sizeof hello);
      guest.in.erase(0, sizeof hello);
      if (!welcome(guest, hello)) return;
    }
    detail::StoreHead head;
    while (!guest.over && guest.in.size() >= sizeof head) {
      std::memcpy(&head, guest.in.data(), sizeof head);
      if (head.key_bytes > detail::most_store_bytes || head.value_bytes > detail::most_store_bytes)
        return lose(guest, "it sent an invalid message");
      auto const bytes = sizeof head + head.key_bytes + head.value_bytes;
      if (guest.in.size() < bytes) return;
      auto const key = guest.in.substr(sizeof head, head.key_bytes);
      auto const value = guest.in.substr(sizeof head + head.key_bytes, head.value_bytes);
      guest.in.erase(0, bytes);
      answer(guest, static_cast<detail::StoreCall>(head.what), key, value, head.rank);
    }
  }

  bool welcome(Guest& guest, detail::StoreHello const& hello) {
    std::string refusal;
    auto const who = "rank " + std::to_string(hello.rank);
    if (hello.version != detail::StoreHello::right_version)
      refusal = who + " uses version " + std::to_string(hello.version) + " of the store protocol, the server version " +
                std::to_string(detail::StoreHello::right_version) + "; start the same program everywhere";
    else if (hello.job != options_.job)
      refusal = who +
                " belongs to another run than this port: two runs use one port, or this rank's MASTER_ADDR, "
                "MASTER_PORT or WORLD_SIZE differs from rank 0's; all must be identical";
    else if (hello.size != options_.size || hello.rank < 0 || hello.rank >= options_.size)
      refusal = who + " of " + std::to_string(hello.size) + " cannot join a run of " + std::to_string(options_.size) +
                " ranks";
    else if (std::any_of(guests_.begin(), guests_.end(),
                         [&](Guest const& g) { return !g.over && g.rank == hello.rank && g.kind == hello.kind; }))
      refusal = who + " has joined already; each rank needs its own number, and each run its own port";
    if (!refusal.empty()) {
      reply(guest, detail::StoreReply::refused, refusal);
      send(guest);
      guest.over = true;
      return false;
    }
    guest.rank = hello.rank;
    guest.kind = hello.kind;
    guest.patience = no_deadline;
    detail::notice_silence(guest.file.get(), options_.silence_seconds, guest.kind);
    reply(guest, detail::StoreReply::done, detail::StoreHello::welcome());
    if (guest.kind == detail::StoreLineKind::news)
      for (auto const& one : news_) reply(guest, one.what, one.value, one.rank);
    return true;
  }

  void answer(Guest& guest, detail::StoreCall call, std::string const& key, std::string const& value, int members) {
    switch (call) {
      case detail::StoreCall::set:
        values_[key] = value;
        reply(guest, detail::StoreReply::done, {});
        return tell_waiting();
      case detail::StoreCall::get:
        guest.waits = true;
        guest.key = key;
        return tell_waiting();
      case detail::StoreCall::add: {
        std::int64_t more = 0, sum = 0;
        std::memcpy(&more, value.data(), std::min(value.size(), sizeof more));
        auto& text = values_[key];
        std::memcpy(&sum, text.data(), std::min(text.size(), sizeof sum));
        sum += more;
        text.assign(reinterpret_cast<char const*>(&sum), sizeof sum);
        reply(guest, detail::StoreReply::done, text);
        return tell_waiting();
      }
      case detail::StoreCall::gather:
        return gather(guest, key, value, members);
      case detail::StoreCall::contributors: {
        std::string ranks;
        if (auto const found = gatherings_.find(key); found != gatherings_.end())
          for (auto const& [rank, part] : found->second) ranks.append(detail::store_bytes(rank));
        return reply(guest, detail::StoreReply::done, ranks);
      }
      case detail::StoreCall::ended:
        guest.ended = true;
        return end(guest, value);
      case detail::StoreCall::leave:
        guest.over = true;
        return;
    }
    lose(guest, "it sent an invalid message");
  }

  void gather(Guest const& guest, std::string const& key, std::string const& value, int members) {
    auto const found = gatherings_.try_emplace(key).first;
    auto& parts = found->second;
    parts[guest.rank] = value;
    if (std::ssize(parts) < members) return;
    std::string all;
    for (auto const& [rank, part] : parts) {
      std::int32_t const head[2]{rank, static_cast<std::int32_t>(part.size())};
      all.append(reinterpret_cast<char const*>(head), sizeof head).append(part);
    }
    for (auto& one : guests_) {
      if (one.over || one.kind != detail::StoreLineKind::calls || parts.count(one.rank) == 0) continue;
      reply(one, detail::StoreReply::gathered, all, 0, key);
      send(one);
    }
    gatherings_.erase(found);
  }
  void tell_all(News news) {
    for (auto& guest : guests_) {
      if (guest.over || guest.kind != detail::StoreLineKind::news || guest.rank == news.rank) continue;
      reply(guest, news.what, news.value, news.rank);
      send(guest);
    }
    news_.push_back(std::move(news));
  }
  void end(Guest const& guest, std::string const& value) {
    auto const how = detail::from_store<detail::StoreEnd>(value);
    if (how.exit_code != 0 || how.signal != 0)
      forget_waiting(guest.rank, "rank " + std::to_string(guest.rank) + " has failed: " + how.message);
    tell_all({detail::StoreReply::rank_ended, guest.rank, value});
  }
  /// Answers waiting ranks. Values that exist are returned even after a rank was lost; only ranks that would wait in
  /// vain get an error.
  void tell_waiting() {
    for (auto& guest : guests_) {
      if (!guest.waits || guest.over) continue;
      auto const found = values_.find(guest.key);
      if (found == values_.end() && lost_.empty()) continue;
      guest.waits = false;
      if (found != values_.end())
        reply(guest, detail::StoreReply::done, found->second);
      else
        reply(guest, detail::StoreReply::lost, lost_, lost_rank_);
      send(guest);
    }
  }

  void lose(Guest& guest, std::string const& why) {
    guest.over = true;
    if (guest.rank < 0 || guest.ended) return;
    // The system may take long to detect that the rank's other connection is dead.
    for (auto& line : guests_) line.ended = line.ended || line.rank == guest.rank;
    forget_waiting(guest.rank, "rank " + std::to_string(guest.rank) + " lost its connection to the store: " + why);
    bool const known = std::any_of(news_.begin(), news_.end(), [&](News const& one) { return one.rank == guest.rank; });
    if (!known) tell_all({detail::StoreReply::rank_lost, guest.rank, why});
  }
  /// Ends waits for values that are not set: they would not end otherwise.
  void forget_waiting(int rank, std::string why) {
    if (!lost_.empty()) return;
    lost_rank_ = rank;
    lost_ = std::move(why);
    tell_waiting();
  }

  static void reply(Guest& guest, detail::StoreReply what, std::string_view value, int rank = 0,
                    std::string_view key = {}) {
    guest.out += detail::store_message(static_cast<std::uint8_t>(what), key, value, rank);
  }

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
