// SPDX-License-Identifier: Apache-2.0
// All-reduce of float32 on one machine: Lockstep's engines, Gloo and OpenMPI against the roof (equal work on equal
// memory, without waiting). algbw is bytes over time; busbw is algbw times 2 (n - 1) / n, as nccl-tests define them.
// LOCKSTEP_BYTES and LOCKSTEP_RANKS, comma-separated lists, choose other sizes and numbers of ranks.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <comm/engine_ranks.hpp>
#include <python_peer.hpp>
#include <ratios.hpp>

using namespace lockstep_bench;

namespace {

/// A contestant: a program that runs on request, with a turn of `sign` times the number of seconds.
struct Contestant {
  std::string name;
  Peer* peer;
  double sign;
  std::vector<double> rates = {};
};

std::string text(std::size_t bytes) {
  return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MB" : std::to_string(bytes >> 10) + " KB";
}

std::vector<std::size_t> list_of(char const* variable, std::string const& usual) {
  auto const* const given = std::getenv(variable);
  std::istringstream in(given != nullptr ? given : usual);
  std::vector<std::size_t> out;
  for (std::string word; std::getline(in, word, ',');) out.push_back(std::stoull(word));
  return out;
}

std::optional<Peer> mpi_peer([[maybe_unused]] std::size_t ranks, [[maybe_unused]] std::size_t bytes) {
#if defined(LOCKSTEP_MPI_PEER)
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);  // a container's only user is root
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  std::vector<std::string> command{"mpirun", "-np", std::to_string(ranks), "--oversubscribe"};
  if (ranks <= processor_numbers().size()) command.insert(command.end(), {"--bind-to", "core"});
  command.insert(command.end(), {LOCKSTEP_MPI_PEER, std::to_string(bytes)});
  auto peer = Peer::start(command);
  if (!peer) std::puts("skipped: OpenMPI: mpirun does not start");
  return peer;
#else
  return std::nullopt;
#endif
}

/// All contestants for one number of ranks and one size.
class Round {
 public:
  Round(std::size_t ranks, std::size_t bytes)
      : ranks_(ranks),
        bytes_(bytes),
        thread_(engine("thread")),
        process_(engine("process")),
        gloo_(python_peer("all_reduce.py", {std::to_string(ranks), std::to_string(bytes)})),
        mpi_(mpi_peer(ranks, bytes)) {
    // Ranks that share a core would measure only their own time slice, so a turn takes many slices.
    bool const roof = ranks <= processor_numbers().size() || bytes >= std::size_t{64} << 20;
    add("thread", thread_, 1);
    if (roof) add("thread roof", thread_, -1);
    add("process", process_, 1);
    if (roof) add("process roof", process_, -1);
    add("gloo", gloo_, 1);
    add("openmpi", mpi_, 1);
  }

  /// A block has one turn of each contestant; blocks during which the machine changed its state are dropped.
  void measure(int blocks, double turn) {
    for (auto& one : contestants_) (*one.peer)(one.sign * turn / 4);
    auto before = Probe::measure();
    for (int block = 0; block < blocks; ++block) {
      std::vector<double> rates(contestants_.size());
      for (std::size_t i = 0; i < rates.size(); ++i) {
        auto const k = (i + static_cast<std::size_t>(block)) % rates.size();
        rates[k] = (*contestants_[k].peer)(contestants_[k].sign * turn);
      }
      auto const after = Probe::measure();
      if (Probe::agree(before, after)) {
        for (std::size_t i = 0; i < rates.size(); ++i) contestants_[i].rates.push_back(rates[i]);
        trips_.push_back((before.round_trip_ns + after.round_trip_ns) / 2);
      }
      before = after;
    }
  }

  void report(Ratios& ratios, std::ostream& plot) const {
    plot << ranks_ << ' ' << bytes_;
    for (char const* name : {"thread", "process", "gloo", "openmpi"}) {
      auto const* const one = find(name);
      plot << ' ' << (one == nullptr ? 0 : Spread::of(one->rates).median * static_cast<double>(bytes_) * 1e-9);
    }
    plot << std::endl;
    for (auto const& one : contestants_) print(one);
    for (std::string const engine : {"thread", "process"}) {
      auto const* const ours = find(engine);
      if (ours == nullptr) continue;
      auto const name = "all_reduce " + text(bytes_) + ", " + std::to_string(ranks_) + " ranks, " + engine;
      auto const how = std::to_string(ours->rates.size()) + " blocks";
      for (auto const& [column, peer] : {std::pair{engine + " roof", "roof"}, std::pair{std::string("gloo"), "gloo"},
                                         std::pair{std::string("openmpi"), "openmpi"}})
        if (auto const* const theirs = find(column)) ratios.report(name, peer, over(ours->rates, theirs->rates), how);
      if (bytes_ > 4096 || ranks_ > processor_numbers().size()) continue;
      std::vector<double> trips;  // per second, so that larger is better here too
      for (auto const trip : trips_) trips.push_back(1e9 / trip);
      auto const spread = over(ours->rates, trips);
      std::printf("%s: p50 is %.2f round trips of a cache line\n", name.c_str(), 1 / spread.median);
      ratios.report(name, "round trip", spread, how);
    }
  }

 private:
  [[nodiscard]] std::optional<Peer> engine(char const* name) const {
    return Peer::start({"/proc/self/exe", name, std::to_string(ranks_), std::to_string(bytes_)});
  }
  void add(std::string name, std::optional<Peer>& peer, double sign) {
    if (peer) contestants_.push_back({std::move(name), &*peer, sign});
  }
  [[nodiscard]] Contestant const* find(std::string const& name) const {
    for (auto const& one : contestants_)
      if (one.name == name && one.rates.size() >= 3) return &one;
    return nullptr;
  }
  static Spread over(std::vector<double> ours, std::vector<double> const& theirs) {
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i] /= theirs[i];
    return Spread::of(ours);
  }
  void print(Contestant const& one) const {
    if (one.rates.size() < 3) return;
    auto const rate = Spread::of(one.rates).median, n = static_cast<double>(ranks_);
    auto const algbw = rate * static_cast<double>(bytes_) * 1e-9;
    std::printf("  %zu ranks %7s  %-13s p50 %10.2f us   algbw %7.2f GB/s   busbw %7.2f GB/s\n", ranks_,
                text(bytes_).c_str(), one.name.c_str(), 1e6 / rate, algbw, algbw * 2 * (n - 1) / n);
  }

  std::size_t ranks_, bytes_;
  std::optional<Peer> thread_, process_, gloo_, mpi_;
  std::vector<Contestant> contestants_;
  std::vector<double> trips_;
};

/// A plot of the table, for `gnuplot all_reduce.gnuplot`.
void write_plot_script(std::string const& stem) {
  std::ofstream(stem + ".gnuplot") << "set terminal svg size 800,500\nset output '" << stem
                                   << ".svg'\nset logscale xy\n"
                                   << "set xlabel 'bytes per rank'\nset ylabel 'algbw, GB/s'\nset key left top\n"
                                   << "plot for [column=3:6] '" << stem
                                   << ".dat' using ($1==2 && column(column)>0 ? $2 : 1/0):column with linespoints "
                                   << "title columnheader(column)\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) return run_engine(argv[1], std::atoi(argv[2]), std::stoull(argv[3]));
  if (processor_numbers().size() < 2) {
    std::puts("skipped: all_reduce: there is one processor only");
    return 0;
  }
#if !defined(LOCKSTEP_MPI_PEER)
  std::puts("skipped: OpenMPI: it was not there when this was built");
#endif
  Ratios ratios("comm/collectives/all_reduce");
  auto const* const ratios_path = std::getenv("LOCKSTEP_RATIOS");
  std::string const folder =
      ratios_path == nullptr ? "" : std::string(ratios_path, std::string(ratios_path).rfind('/') + 1);
  auto const stem = folder + "all_reduce";
  std::ofstream plot(stem + ".dat");
  plot << "ranks bytes thread process gloo openmpi\n";
  auto const* const turn_text = std::getenv("LOCKSTEP_TURN_SECONDS");
  auto const turn = turn_text == nullptr ? 0.4 : std::atof(turn_text);
  for (auto const ranks : list_of("LOCKSTEP_RANKS", "2,4")) {
    std::string const usual = ranks <= processor_numbers().size()
                                  ? "1024,16384,65536,1048576,16777216,67108864,268435456"
                                  : "1024,1048576,67108864";
    for (auto const bytes : list_of("LOCKSTEP_BYTES", usual)) {
      Round round(ranks, bytes);
      round.measure(9, turn);
      round.report(ratios, plot);
    }
  }
  write_plot_script(stem);
  std::printf("%s.dat holds algbw; gnuplot %s.gnuplot draws it\n", stem.c_str(), stem.c_str());
}
