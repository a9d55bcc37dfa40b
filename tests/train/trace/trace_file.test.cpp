// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trace/trace_file.hpp>

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {

class Model {
 public:
  void visit(auto&& each) { each("head", head_); }

 private:
  nn::Linear head_{2, 3};
};

/// A trainer as write_trace sees it: one rank of several, whose texts the other ranks have sent in `said`.
struct Rank {
  nn::ParameterLayout layout_;
  int number = 0, all = 1;
  std::vector<std::string>* printed;

  [[nodiscard]] nn::ParameterLayout const& layout() const { return layout_; }
  [[nodiscard]] int rank() const { return number; }
  [[nodiscard]] int ranks() const { return all; }
  [[nodiscard]] std::string broadcast(std::string text, int root) {
    if (!text.empty() && text.front() == '{') (*printed)[static_cast<std::size_t>(root)] = text;
    return text.empty() ? (*printed)[static_cast<std::size_t>(root)] : text;
  }
};

void record(double at, train::Trace& trace) {
  trace.begin(11, 2, true);
  auto const span = [&](char const* name, double begin, double end, Span::Kind kind, Index number = -1,
                        Index amount = 0, int first = -1) {
    return Span{name, at + begin, at + end, number, amount, first, first, kind};
  };
  using enum Span::Kind;
  trace.device(0).add(span("a mangled type", 0.2, 0.4, forward, 0, 24, 0));
  trace.device(0).add(span("forward", 0.1, 0.5, phase));
  trace.device(0).add(span("a mangled type", 0.5, 0.6, backward, 0, 0, 0));
  trace.device(1).add(span("forward", 0.1, 0.7, phase));
  trace.training().add(span("step", 0, 1, phase, 11));
  for (Index i = 0; i < 3; ++i) {  // the second begins during the first, the third after it
    auto const begin = 0.2 * static_cast<double>(i), end = begin + 0.3;
    trace.training().add(span("sum", begin + 0.05, end, bucket, i, 100));
    trace.training().add(span("bucket", begin, end, bucket, i, 100));
  }
  trace.loading().add(span("write", 0.1, 0.2, batch, 21, 8, 1));
  trace.loading().add(span("batches ready", 0.3, 0.3, level, -1, 2));
  trace.count();
}

/// Name and "tid", by number of the thread.
std::map<std::int64_t, std::string> threads(json::Array const& events, int rank) {
  std::map<std::int64_t, std::string> out;
  for (auto const& event : events)
    if (event.at("name").string() == "thread_name" && event.at("pid").integer() == rank)
      out[event.at("tid").integer()] = event.at("args").at("name").string();
  return out;
}

}  // namespace

TEST_CASE("one file has all ranks as processes, with their threads, devices and work") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "trace.json";
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<std::string> printed(2);
  for (int number : {1, 0}) {
    Rank rank{layout, number, 2, &printed};
    train::Trace trace;
    record(1000 + number, trace);
    train::write_trace(path, rank, trace);
    CHECK(std::filesystem::exists(path) == (number == 0));
  }
  auto const text = lockstep_test::read_file(path);
  auto const file = json::parse(text, path);
  auto const& events = file.at("traceEvents").array();
  std::vector<std::string> ranks;
  for (auto const& event : events)
    if (event.at("name").string() == "process_name") ranks.push_back(event.at("args").at("name").string());
  CHECK(ranks == std::vector<std::string>{"rank 0", "rank 1"});

  for (int rank : {0, 1}) {
    auto const names = threads(events, rank);
    CHECK(names.size() == 6);
    auto const find = [&](std::string const& name, std::string const& category) {
      for (auto const& event : events)
        if (event.at("ph").string() == "X" && event.at("pid").integer() == rank && event.at("name").string() == name &&
            event.at("cat").string() == category)
          return event;
      FAIL("no event ", name, " of ", category);
      return events[0];
    };
    auto const step = find("step 11", "phase");
    CHECK(step.at("ts").number() == (1000 + rank) * 1e6);
    CHECK(step.at("dur").number() == 1e6);
    CHECK(names.at(step.at("tid").integer()) == "training");
    auto const forward = find("head", "forward");
    CHECK(names.at(forward.at("tid").integer()) == "training");  // the first device's thread, on the host
    CHECK(forward.at("args").at("operation").string() == "operation");
    CHECK(forward.at("args").at("bytes").integer() == 24);
    CHECK(find("head", "backward").at("ts").number() == (1000 + rank) * 1e6 + 0.5e6);
    auto const first = find("bucket 0", "communication"), second = find("bucket 1", "communication"),
               third = find("bucket 2", "communication");
    CHECK(names.at(first.at("tid").integer()) == "gradient buckets");
    CHECK(first.at("tid").integer() != second.at("tid").integer());
    CHECK(first.at("tid").integer() == third.at("tid").integer());
    CHECK(first.at("args").at("bytes").integer() == 100);
    auto const write = find("write", "loader");
    CHECK(names.at(write.at("tid").integer()) == "loader worker 1");
    CHECK(write.at("args").at("batch").integer() == 21);
  }
  auto const levels = std::ranges::count_if(events, [](auto const& e) { return e.at("ph").string() == "C"; });
  CHECK(levels == 2);
}

TEST_CASE("ranks of one host share a clock, other hosts' are placed by the time of day") {
  using train::detail::clock_difference;
  CHECK(clock_difference(1000, 1000.004) == 0);
  CHECK(clock_difference(1000, 1000.0625) == 0.0625);  // no two readings on one host are that far apart
  CHECK(clock_difference(1000, 1500) == 500);          // the first host was started 500 s before this one
  CHECK(clock_difference(1000, 400) == -600);
}

TEST_CASE("an unwritable file is an error") {
  Model model;
  std::vector<std::string> printed(1);
  Rank rank{nn::ParameterLayout::of(model), 0, 1, &printed};
  train::Trace trace;
  record(0, trace);
  CHECK_THROWS_AS(train::write_trace("/missing/trace.json", rank, trace), DataError);
}
