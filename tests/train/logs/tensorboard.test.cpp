// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/tensorboard.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {

/// CRC-32C bit by bit, by definition.
std::uint32_t check_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (char const c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78 & (0 - (crc & 1)));
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}
std::uint64_t number(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

/// A protocol buffer message, read from the wire format: each field's content, with numbers as bits.
struct Message {
  std::map<int, std::vector<std::string>> texts;
  std::map<int, std::uint64_t> numbers;

  explicit Message(std::string_view bytes) {
    auto const varint = [&] {
      std::uint64_t out = 0;
      for (int shift = 0;; shift += 7) {
        REQUIRE(!bytes.empty());
        auto const byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        out |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return out;
      }
    };
    auto const take = [&](std::size_t count) {
      REQUIRE(bytes.size() >= count);
      auto const out = bytes.substr(0, count);
      bytes.remove_prefix(count);
      return out;
    };
    while (!bytes.empty()) {
      auto const key = varint();
      auto const field = static_cast<int>(key >> 3);
      switch (key & 7) {
        case 0:
          numbers[field] = varint();
          break;
        case 1:
          numbers[field] = number(take(8));
          break;
        case 2:
          texts[field].emplace_back(take(static_cast<std::size_t>(varint())));
          break;
        case 5:
          numbers[field] = number(take(4));
          break;
        default:
          FAIL("wire type ", key & 7);
      }
    }
  }
  [[nodiscard]] Message at(int field) const { return Message(texts.at(field).at(0)); }
};

/// The events of a file, with each record checked.
std::vector<Message> events(std::string const& path) {
  std::vector<Message> out;
  auto const file = lockstep_test::read_file(path);
  for (std::string_view rest = file; !rest.empty();) {
    REQUIRE(rest.size() >= 16);
    auto const length = number(rest.substr(0, 8));
    CHECK(number(rest.substr(8, 4)) == check_of(rest.substr(0, 8)));
    REQUIRE(rest.size() >= 16 + length);
    CHECK(number(rest.substr(12 + length, 4)) == check_of(rest.substr(12, length)));
    out.emplace_back(rest.substr(12, length));
    rest.remove_prefix(16 + length);
  }
  return out;
}

/// The scalars of an event by tag.
std::map<std::string, float> scalars(Message const& event) {
  std::map<std::string, float> out;
  if (!event.texts.contains(5)) return out;
  auto const summary = event.at(5);
  for (auto const& each : summary.texts.at(1)) {
    Message const value(each);
    out[value.texts.at(1).at(0)] = std::bit_cast<float>(static_cast<std::uint32_t>(value.numbers.at(2)));
  }
  return out;
}

std::string only_file(lockstep_test::TemporaryFolder const& folder) {
  REQUIRE(folder.entries() == 1);
  return std::filesystem::directory_iterator(folder.path())->path().string();
}

}  // namespace

TEST_CASE("the checksum is CRC-32C") {
  CHECK(train::detail::crc32c("123456789") == 0xE3069283);  // RFC 3720 and every table of CRCs
  CHECK(train::detail::crc32c("") == 0);
  CHECK(train::detail::crc32c(std::string(32, '\0')) == 0x8A9136AA);  // RFC 3720, B.4
  CHECK(train::detail::crc32c(std::string(32, '\xff')) == 0x62A8AB43);
}

TEST_CASE("steps and evaluations are scalars of their step, complete while the log is open") {
  lockstep_test::TemporaryFolder const folder;
  train::TensorBoard board(folder.path().string());
  board.start({200, 2, 0});
  for (Index step = 1; step <= 200; ++step) {
    train::StepReport report{step, 200, 0, 1 / static_cast<double>(step), 1e-3, 8 * step, 0.25, 100};
    if (step == 2) report.loss_parts = {{"kl", 0.25}};
    board.step(report);
  }
  board.evaluation({200, 0, 77, 0.75, {{"accuracy", 0.5}, {"f1", 0.25}}, 1});

  auto const path = only_file(folder);
  CHECK(std::filesystem::path(path).filename().string().starts_with("events.out.tfevents."));
  auto const all = events(path);
  REQUIRE(all.size() == 2 + 150 + 1);
  CHECK(all[0].texts.at(3).at(0) == "brain.Event:2");
  CHECK(all[1].at(7).numbers.at(1) == 1);  // SessionLog::START
  CHECK(all[1].numbers.at(2) == 1);
  // seconds of the system clock
  for (auto const& event : all) CHECK(std::bit_cast<double>(event.numbers.at(1)) > 1.6e9);
  CHECK(all[3].numbers.at(2) == 2);
  CHECK(scalars(all[3]) == std::map<std::string, float>{{"train/loss", 0.5f},
                                                        {"train/learning_rate", 1e-3f},
                                                        {"train/samples_per_second", 100.0f},
                                                        {"train/kl", 0.25f}});
  CHECK(all[151].numbers.at(2) == 200);
  CHECK(all[152].numbers.at(2) == 200);
  CHECK(scalars(all[152]) ==
        std::map<std::string, float>{{"eval/loss", 0.75f}, {"eval/accuracy", 0.5f}, {"eval/f1", 0.25f}});
}

TEST_CASE("a resumed run marks from which step on earlier entries are void") {
  lockstep_test::TemporaryFolder const folder;
  train::TensorBoard board(folder.path().string());
  board.start({12, 3, 7});
  auto const all = events(only_file(folder));
  REQUIRE(all.size() == 2);
  CHECK(all[1].numbers.at(2) == 8);
  CHECK(all[1].at(7).numbers.at(1) == 1);
  CHECK_THROWS_WITH_AS(board.start({12, 3}), doctest::Contains("belongs to an earlier fit, and would be overwritten"),
                       ConfigError);
}

TEST_CASE("a missing directory is created; one that cannot be created is an error that names it") {
  lockstep_test::TemporaryFolder const folder;
  train::TensorBoard(folder / "runs/first").start({});
  CHECK(std::filesystem::exists(folder / "runs/first"));
  train::TensorBoard board("/dev/null/missing");
  CHECK_THROWS_WITH_AS(board.start({}), doctest::Contains("/dev/null/missing/events.out.tfevents."), DataError);
}

TEST_CASE("a run that never starts, because it was complete, writes no file") {
  lockstep_test::TemporaryFolder const folder;
  { train::TensorBoard const board(folder.path().string()); }
  CHECK(folder.entries() == 0);
}
