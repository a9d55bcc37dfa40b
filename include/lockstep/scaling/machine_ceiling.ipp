// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/machine_ceiling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// Work of one thread of the measurement, in units of equal size.
class CeilingWork {
 public:
  CeilingWork() : pool_(1), factors_(2 * size * size, 0.5f), product_(size * size), state_(state_floats, 1.0f) {}

  void multiply() {
    using Factor = TensorView<float const, 2, HostSpace>;
    float const* const a = factors_.data();
    kernel::Gemm<HostSpace>::multiply(memory::Stream<HostSpace>(pool_), 1.0f, Factor(a, {size, size}),
                                      kernel::Transpose::no, Factor(a + size * size, {size, size}),
                                      kernel::Transpose::no, 0.0f,
                                      TensorView<float, 2, HostSpace>(product_.data(), {size, size}));
  }
  /// Updates a part of an array as an optimizer does.
  void update() {
    auto* const part = state_.data() + next_;
    for (std::size_t i = 0; i < part_floats; ++i) part[i] = part[i] * 0.999f + 0.001f;
    next_ = (next_ + part_floats) % state_floats;
  }

 private:
  static constexpr Index size = 192;
  static constexpr std::size_t state_floats = 2 << 20, part_floats = 64 << 10;

  ThreadPool pool_;
  std::vector<float> factors_, product_, state_;
  std::size_t next_ = 0;
};

/// Processor seconds per unit of work, mean over threads, and the processor's share of the time.
struct CeilingSample {
  double seconds_per_unit = 0;
  double share = 1;
};

LOCKSTEP_INLINE CeilingSample sample_ceiling(std::vector<CeilingWork>& works, Index threads,
                                             void (CeilingWork::*unit)(), double seconds) {
  std::vector<CeilingSample> samples(static_cast<std::size_t>(threads));
  std::atomic<Index> waiting{threads};
  auto const run = [&](std::size_t i) {
    (works[i].*unit)();  // in the caches
    for (--waiting; waiting.load() > 0;) std::this_thread::yield();
    auto const began = Clock::seconds(), used = Clock::thread_seconds();
    double units = 0;
    do {  // at least one unit, even if the thread had to wait for a processor longer than its turn lasts
      (works[i].*unit)();
      ++units;
    } while (Clock::seconds() - began < seconds);
    auto const processor = Clock::thread_seconds() - used;
    samples[i] = {processor / units, processor / (Clock::seconds() - began)};
  };
  std::vector<std::thread> others;
  auto const starter = ::getpid();
  try {
    for (std::size_t i = 1; i < samples.size(); ++i)
      others.push_back(start_thread("MachineCeiling", "thread " + std::to_string(i), [&run, i] { run(i); }));
  } catch (...) {
    waiting = 0;  // the others do not wait for threads that do not exist
    join_threads(others, starter);
    throw;
  }
  run(0);
  join_threads(others, starter);
  CeilingSample out{0, 0};
  for (auto const& each : samples) {
    out.seconds_per_unit += each.seconds_per_unit / static_cast<double>(threads);
    out.share += each.share / static_cast<double>(threads);
  }
  return out;
}

/// Returns the time that ranks lose because of slow ones, if they take turns on fewer cores, as a fraction of what they
/// would lose with a core each. Waiting ranks leave their core to others: with `cores` of them, cores are idle only
/// while the last `cores` - 1 ranks compute.
[[nodiscard]] LOCKSTEP_INLINE double idle_while_waiting(Index ranks, Index cores) noexcept {
  double idle = 0;
  for (Index k = 1; k < cores; ++k)  // after the k-th last rank but one has ended, k compute
    idle += static_cast<double>(cores - k) * (expected_order(ranks - k + 1, ranks) - expected_order(ranks - k, ranks));
  return idle / static_cast<double>(cores) / expected_maximum(ranks);
}

LOCKSTEP_INLINE double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}}}  // namespace lockstep::scaling::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE MachineCeiling MachineCeiling::measure(double seconds) {
  MachineCeiling out;
  out.cores = processors();
  for (Index n = 1; n < out.cores; n *= 2) out.points.push_back({.threads = n});
  out.points.push_back({.threads = out.cores});
  std::vector<detail::CeilingWork> works(static_cast<std::size_t>(out.cores));
  constexpr int rounds = 7;
  auto const turn = seconds / static_cast<double>(2 * rounds * out.points.size());
  std::vector<double> shares;
  for (auto const& [kind, unit] : {std::pair{&Point::arithmetic, &detail::CeilingWork::multiply},
                                   {&Point::memory, &detail::CeilingWork::update}}) {
    std::vector<std::vector<double>> ratios(out.points.size());
    for (int round = 0; round < rounds; ++round) {
      double alone = 0;
      for (std::size_t i = 0; i < out.points.size(); ++i) {
        auto const sample = detail::sample_ceiling(works, out.points[i].threads, unit, turn);
        if (i == 0) alone = sample.seconds_per_unit;
        ratios[i].push_back(sample.seconds_per_unit / alone);
        shares.push_back(sample.share);
      }
    }
    for (std::size_t i = 0; i < out.points.size(); ++i)
      out.points[i].*kind = std::max(1.0, detail::median_of(ratios[i]));
  }
  out.busy = detail::median_of(shares) < 0.9;
  return out;
}

LOCKSTEP_INLINE std::string MachineCeiling::file_name() {
  std::string model, line;
  for (std::ifstream file("/proc/cpuinfo"); model.empty() && std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) model = line;
  char host[256] = {};
  static_cast<void>(::gethostname(host, sizeof host - 1));
  return "ceiling-" + hexadecimal(mix(mix(model), mix(host), static_cast<std::uint64_t>(processors()))) + ".json";
}

LOCKSTEP_INLINE std::string MachineCeiling::json() const {
  json::Writer out(json::Layout::indented);
  out.begin_object().member("schema", 1).member("cores", cores).member("busy", busy).key("points").begin_array();
  for (auto const& point : points)
    out.begin_object()
        .member("threads", point.threads)
        .member("arithmetic", point.arithmetic)
        .member("memory", point.memory)
        .end_object();
  out.end_array().end_object();
  return out.text();
}

LOCKSTEP_INLINE std::optional<MachineCeiling> MachineCeiling::read(std::filesystem::path const& file) {
  FileDescriptor const descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct ::stat status {};
  constexpr ::off_t most = 1 << 16;
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || status.st_size > most)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (::read(descriptor.get(), text.data(), text.size()) != static_cast<::ssize_t>(text.size())) return std::nullopt;
  try {
    auto const json = json::parse(text, file.string());
    MachineCeiling out{.cores = json.at("cores").integer(), .busy = json.at("busy").boolean(), .points = {}};
    auto const factor = [](json::Value const& value) {
      auto const number = value.number();
      if (!(number >= 1 && number <= 1000)) throw DataError("no factor");
      return number;
    };
    for (auto const& point : json.at("points").array()) {
      out.points.push_back({point.at("threads").integer(), factor(point.at("arithmetic")), factor(point.at("memory"))});
      auto const before = out.points.size() > 1 ? out.points[out.points.size() - 2].threads : 0;
      if (out.points.back().threads <= before) return std::nullopt;
    }
    if (json.at("schema").integer() != 1 || out.points.empty() || out.points[0].threads != 1 ||
        out.points.back().threads != out.cores)
      return std::nullopt;
    return out;
  } catch (DataError const&) {
    return std::nullopt;
  }
}

LOCKSTEP_INLINE MachineCeiling MachineCeiling::cached(std::filesystem::path const& folder, double seconds) {
  auto const file = folder / file_name();
  if (auto found = read(file); found && !found->busy && found->cores == processors()) return *std::move(found);
  auto const out = measure(seconds);
  try {
    std::filesystem::create_directories(folder);
    struct ::stat status {};  // in another user's folder, a link could lead to any file
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return out;
    AtomicFile written(file.string());
    written.write(out.json());
    written.commit();
    static_cast<void>(::chmod(file.c_str(), 0600));  // whatever the umask is: `read` trusts no other file
  } catch (DataError const&) {                       // measured again next time
  } catch (std::filesystem::filesystem_error const&) {
  }
  return out;
}

LOCKSTEP_INLINE double MachineCeiling::factor(Index ranks, double Point::*kind) const {
  auto const n = static_cast<double>(ranks), most = static_cast<double>(cores);
  if (points.empty() || ranks >= points.back().threads)
    return (points.empty() ? 1 : points.back().*kind) * std::max(1.0, n / most);
  auto const above = std::find_if(points.begin(), points.end(), [&](Point const& p) { return p.threads >= ranks; });
  if (above == points.begin()) return (*above).*kind;
  auto const below = above - 1;
  auto const low = static_cast<double>(below->threads), high = static_cast<double>(above->threads);
  return (*below).*kind + ((*above).*kind - (*below).*kind) * (n - low) / (high - low);
}

LOCKSTEP_INLINE Prediction predict(Workload const& work, Index ranks, parallel::CollectiveCost const& cost,
                                   MachineCeiling const& ceiling, Scaling scaling) {
  double bytes = 0;
  for (auto const& part : work.gradients) bytes += std::max(part.bytes, part.table_bytes);
  auto const pass = ceiling.pass_factor(ranks) / ceiling.pass_factor(work.ranks);
  auto shared = work;
  shared.pass_seconds *= pass;
  for (auto& part : shared.gradients) part.ready_seconds *= pass;
  shared.optimizer_seconds *= ceiling.update_factor(ranks, bytes) / ceiling.update_factor(work.ranks, bytes);
  shared.other_seconds *= pass;
  if (ranks > ceiling.cores) shared.spread_seconds *= detail::idle_while_waiting(ranks, ceiling.cores);
  auto out = predict(shared, ranks, cost, scaling, Overlap::none);
  auto alone = work;
  if (work.ranks != 1) {  // one of them alone would be faster
    alone.pass_seconds /= ceiling.pass_factor(work.ranks);
    alone.other_seconds /= ceiling.pass_factor(work.ranks);
    alone.optimizer_seconds /= ceiling.update_factor(work.ranks, bytes);
  }
  auto const one = predict(alone, 1, cost, scaling, Overlap::none);
  if (one.samples_per_second > 0)
    out.efficiency = out.samples_per_second / (static_cast<double>(ranks) * one.samples_per_second);
  return out;
}

}}}  // namespace lockstep::scaling
