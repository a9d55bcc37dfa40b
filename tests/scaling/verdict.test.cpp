// SPDX-License-Identifier: Apache-2.0
// The verdict against causes that are injected into small runs of two ranks on two processors. The short form tries a
// few seeds. LOCKSTEP_VERDICT="SEEDS HEALTHY FIRST" runs each cause with SEEDS seeds from FIRST, and HEALTHY healthy
// runs, and prints a table; `./dev check verdict` does so. Work is measured in processor time, so other programs on the
// machine make runs longer and change nothing else.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/scaling/bottleneck.hpp>
#include <lockstep/scaling/profile_of.hpp>
#include <lockstep/train/trainer/trainer.hpp>

using namespace lockstep;

namespace {

enum class Lock { none, mutex, file };

/// A run with an injected cause. Times are microseconds.
struct Scenario {
  std::string cause = "none";
  std::uint64_t seed = 0;
  int ranks = 2, processors = 2, workers = 1;
  Index batch = 16, width = 32, features = 32, steps = 120;
  double work = 200;       // processor time of the model for a sample
  double read_sleep = 0;   // time of a sample in Dataset::get without a processor
  double read_work = 0;    // and with one
  Lock lock = Lock::none;  // held during get
  int slow_rank = -1;      // its work takes slow_factor times as long
  double slow_factor = 1;
  double spread = 1;  // the longest sample over the shortest
  double quota = 0;   // processors of the control group; 0: no quota

  /// Returns a number in [low, high) that depends on the seed and on `key`.
  [[nodiscard]] double draw(std::string const& key, double low, double high) const {
    return low + (high - low) * static_cast<double>(mix(mix(key), seed) >> 11) * 0x1p-53;
  }
};

/// Uses the processor for that long, however many other threads use it as well.
void use_processor(double microseconds) {
  auto const end = Clock::thread_seconds() + microseconds * 1e-6;
  while (Clock::thread_seconds() < end) {
  }
}

Scenario scenario(std::string const& cause, std::uint64_t seed) {
  Scenario out{.cause = cause, .seed = seed};
  out.work = out.draw("work", 150, 300);
  out.batch = static_cast<Index>(out.draw("batch", 8, 24));
  out.width = static_cast<Index>(out.draw("width", 16, 96));
  if (cause == "slow data") {
    out.work = 60;
    out.workers = 1 + static_cast<int>(seed % 2);
    auto const read = out.work * out.draw("read", 1.5, 4) * out.workers;
    (seed % 4 < 2 ? out.read_sleep : out.read_work) = read;
    out.steps = 60;
  } else if (cause == "lock contention") {
    out.work = 60;
    out.workers = 2;
    out.lock = seed % 2 == 0 ? Lock::mutex : Lock::file;
    (seed % 4 < 2 ? out.read_sleep : out.read_work) = out.draw("hold", 80, 200);
    out.steps = 60;
  } else if (cause == "slow rank") {
    out.slow_rank = static_cast<int>(seed % 2);
    out.slow_factor = out.draw("factor", 1.5, 2.5);
  } else if (cause == "oversubscription") {
    out.ranks = seed % 2 == 0 ? 4 : 3;
  } else if (cause == "small model") {
    out.work = 0;
    out.features = 4 + static_cast<Index>(seed % 4);
    out.width = 8;
    out.steps = 1000;
  } else if (cause == "small batch") {
    out.work = 0;
    out.features = 512;
    out.width = static_cast<Index>(out.draw("width", 1000, 2000));
    out.batch = 1 + static_cast<Index>(seed % 2);
    out.steps = 60;
  } else if (cause == "uneven batches") {
    out.spread = out.draw("spread", 30, 80);
    out.batch = 2;
    out.work *= 4;
    out.steps = 160;
  } else if (cause == "processor quota") {
    out.quota = out.draw("quota", 0.2, 0.5);
  }
  return out;
}

struct Sample {
  std::vector<float> at;
  float height = 0, length = 1;
};

class Samples {
 public:
  explicit Samples(Scenario const& scenario, std::string const& lock_file) : scenario_(&scenario) {
    if (scenario.lock == Lock::file) file_ = lock_file;
  }
  [[nodiscard]] Index size() const { return Index{1} << 20; }
  [[nodiscard]] Sample get(Index i) const {
    auto const& s = *scenario_;
    static std::mutex mutex;
    int file = -1;
    if (s.lock == Lock::mutex) mutex.lock();
    if (s.lock == Lock::file) {
      file = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      static_cast<void>(::flock(file, LOCK_EX));
    }
    if (s.read_sleep > 0) ::usleep(static_cast<unsigned>(s.read_sleep));
    if (s.read_work > 0) use_processor(s.read_work);
    if (s.lock == Lock::mutex) mutex.unlock();
    if (file >= 0) ::close(file);
    auto const place = static_cast<double>(mix(s.seed, static_cast<std::uint64_t>(i)) >> 11) * 0x1p-53;
    auto const mean = s.spread > 1 ? (s.spread - 1) / std::log(s.spread) : 1;  // of spread^place
    return {std::vector<float>(static_cast<std::size_t>(s.features), 0.5f), 1,
            static_cast<float>(std::pow(s.spread, place) / mean)};
  }

 private:
  Scenario const* scenario_;
  std::string file_;
};

thread_local int rank_here = 0;

struct Net {
  Scenario const* scenario;
  nn::Linear hidden, head;
  explicit Net(Scenario const& s) : scenario(&s), hidden{s.features, s.width}, head{s.width, 1} {}
  void visit(auto&& each) { each("hidden", hidden), each("head", head); }
  auto predict(auto& context, auto const& batch) const {
    double length = 0;
    for (Index row = 0; row < batch.rows(); ++row) length += static_cast<double>(batch[&Sample::length].values(row));
    use_processor(scenario->work * length * (rank_here == scenario->slow_rank ? scenario->slow_factor : 1));
    return head.forward(context, hidden.forward(context, context.input(batch[&Sample::at].values)));
  }
  auto loss(auto& context, auto const& predicted, auto const& batch) const {
    return nn::mean_squared_error(context, predicted, batch[&Sample::height]);
  }
};

/// Runs a scenario in this process. Returns the verdict: the cause's name and a sentence.
std::pair<std::string, std::string> verdict_of(Scenario const& s, std::string const& lock_file) {
  std::pair<std::string, std::string> out;
  launch::Options options;
  options.threads = s.ranks;
  int const code = launch::run(options, [&](launch::World& world) {
    rank_here = world.rank;
    data::DataLoader loader{Samples(s, lock_file),
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = s.batch, .workers = s.workers}};
    Trainer trainer{Net(s), optim::AdamW{.learning_rate = 1e-4},
                    parallel::DistributedDataParallel{comm::connect(world), 0, 1}};
    trainer.fit(loader, {.epochs = 1, .max_steps = 3});
    auto const record = trainer.fit(loader, {.epochs = 1, .max_steps = s.steps});
    if (world.rank == 0) {
      auto const found = scaling::find_bottleneck(scaling::profile_of(record));
      out = {found.cause, found.summary};
      if (std::getenv("LOCKSTEP_VERDICT_DEBUG"))
        for (auto const& r : scaling::profile_of(record).ranks)
          std::fprintf(stderr,
                       "%s: data %.3f compute %.3f comm %.3f opt %.3f | cpu %.3f dev %.3f queued %.3f loader %.3f fast "
                       "%.3f throttled "
                       "%.3f | looks %g locked %g threads %g cores %g\n",
                       s.cause.c_str(), r.data_ms, r.compute_ms, r.communication_ms, r.optimizer_ms, r.processor_ms,
                       r.deviation_ms, r.queued_ms, r.loader_ms, scaling::profile_of(record).fast_step_ms,
                       r.throttled_ms, r.observed, r.locked, r.threads, r.cores);
    }
    return 0;
  });
  if (code != 0) out.first = "failed";
  return out;
}

/// Control group of this test with a quota, below the groups of this process. Needs root.
class ControlGroup {
 public:
  explicit ControlGroup(double processors) {
    bool const first_version = ::access("/sys/fs/cgroup/cpu/cgroup.procs", F_OK) == 0;
    folder_ = std::string(first_version ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup") + "/lockstep-verdict-" +
              std::to_string(::getpid());
    if (::mkdir(folder_.c_str(), 0700) != 0) return;
    auto const quota = std::to_string(std::lround(1e5 * processors));
    exists_ = true;
    valid_ = first_version ? write("cpu.cfs_quota_us", quota) : write("cpu.max", quota + " 100000");
  }
  ~ControlGroup() {
    if (exists_) ::rmdir(folder_.c_str());
  }
  ControlGroup(ControlGroup const&) = delete;
  ControlGroup& operator=(ControlGroup const&) = delete;

  [[nodiscard]] bool valid() const { return valid_; }
  /// Moves the calling process into the group.
  [[nodiscard]] bool enter() const { return write("cgroup.procs", std::to_string(::getpid())); }

 private:
  [[nodiscard]] bool write(std::string const& name, std::string const& text) const {
    std::ofstream file(folder_ + "/" + name);
    return static_cast<bool>(file << text << std::flush);
  }
  std::string folder_;
  bool exists_ = false, valid_ = false;
};

/// Limits this process to its first processors.
bool limit_processors(int count) {
  cpu_set_t given, first;
  if (::sched_getaffinity(0, sizeof given, &given) != 0 || CPU_COUNT(&given) < count) return false;
  CPU_ZERO(&first);
  for (std::size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) < count; ++i)
    if (CPU_ISSET(i, &given)) CPU_SET(i, &first);
  return ::sched_setaffinity(0, sizeof first, &first) == 0;
}

enum class Form { brief, complete };

/// Runs a scenario in a process of its own, with a third of its steps if brief.
std::pair<std::string, std::string> verdict(std::string const& cause, std::uint64_t seed, Form form) {
  auto s = scenario(cause, seed);
  if (form == Form::brief) s.steps /= 3;
  ControlGroup const group(s.quota > 0 ? s.quota : 1);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto const lock_file = "/tmp/lockstep-verdict-" + std::to_string(::getpid());
  std::fflush(nullptr);
  auto const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    if (!limit_processors(s.processors) || (s.quota > 0 && !group.enter())) ::_exit(1);
    auto const [name, sentence] = verdict_of(s, lock_file);
    auto const text = name + "\n" + sentence;
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t size = 0; (size = ::read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(size));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::unlink(lock_file.c_str());
  if (status != 0 || text.find('\n') == std::string::npos) return {"failed", "exit status " + std::to_string(status)};
  return {text.substr(0, text.find('\n')), text.substr(text.find('\n') + 1)};
}

/// "other programs" is right on a shared machine: no cause in the run was found.
bool is_right(std::string const& cause, std::string const& found) {
  return found == cause || (cause == "none" && found == "other programs");
}

char const* const causes[] = {"slow data",        "lock contention", "slow rank",
                              "oversubscription", "small model",     "small batch",
                              "uneven batches",   "processor quota", "none"};

/// Runs all causes with many seeds and prints a line for each, with the wrong verdicts.
void run_all(std::uint64_t seeds, std::uint64_t healthy, std::uint64_t first) {
  std::uint64_t all = 0, right = 0, false_alarms = 0;
  for (std::string const cause : causes) {
    if (cause == "processor quota" && !ControlGroup(1).valid()) {
      std::printf("%-18s not run: needs root and the cpu controller\n", cause.c_str());
      continue;
    }
    std::uint64_t here = 0;
    auto const count = cause == "none" ? healthy : seeds;
    std::string wrong;
    for (auto seed = first; seed < first + count; ++seed) {
      auto const [found, sentence] = verdict(cause, seed, Form::complete);
      bool const ok = is_right(cause, found);
      here += ok;
      if (cause == "none") false_alarms += !ok;
      if (cause != "none" || seed < first + seeds) ++all, right += ok;
      if (!ok) wrong += "  seed " + std::to_string(seed) + ": " + found + ": " + sentence + "\n";
    }
    std::printf("%-18s %3d of %3d right\n%s", cause.c_str(), static_cast<int>(here), static_cast<int>(count),
                wrong.c_str());
    std::fflush(stdout);
  }
  std::printf("all: %d of %d right; healthy runs with an alarm: %d of %d\n", static_cast<int>(right),
              static_cast<int>(all), static_cast<int>(false_alarms), static_cast<int>(healthy));
  CHECK(static_cast<double>(right) >= 0.95 * static_cast<double>(all));
  CHECK(false_alarms == 0);
}

}  // namespace

TEST_CASE("the verdict names the cause that was injected into a run, and none in a healthy one") {
  if (auto const* const wanted = std::getenv("LOCKSTEP_VERDICT")) {
    char* at = nullptr;
    auto const seeds = std::strtoull(wanted, &at, 10), healthy = std::strtoull(at, &at, 10);
    return run_all(seeds, healthy, std::strtoull(at, nullptr, 10));
  }
  cpu_set_t given;
  if (::sched_getaffinity(0, sizeof given, &given) != 0 || CPU_COUNT(&given) < 2) {
    MESSAGE("not tested: needs two processors");
    return;
  }
  // A virtual machine's processors differ in speed for a while, so that a rank is slow. Therefore one cause may be
  // missed here; `./dev check verdict` counts.
  int looked_at = 0, missed = 0;
  for (std::string const cause : causes) {
    if (cause == "processor quota") continue;  // needs root
    std::string found, all;
    for (std::uint64_t seed = 0; seed < 5 && !is_right(cause, found); ++seed) {
      auto const said = verdict(cause, seed, Form::brief);
      found = said.first;
      all += found + ": " + said.second + "\n";
    }
    bool const right = is_right(cause, found);
    missed += !right;
    CHECK_MESSAGE((right || (missed < 2 && cause != "none")), cause, ": ", all);
    ++looked_at;
  }
  CHECK(looked_at == 8);
}
