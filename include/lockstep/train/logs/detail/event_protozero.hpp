// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_TENSORBOARD)
#include <time.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the CRC-32C of the bytes.
/// @source Castagnoli et al. (1993), reflected, polynomial 0x1EDC6F41
[[nodiscard]] inline std::uint32_t crc32c(std::string_view bytes) noexcept {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> rows{};
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      auto row = i;
      for (int bit = 0; bit < 8; ++bit) row = (row >> 1) ^ ((row & 1) != 0 ? 0x82F63B78u : 0u);
      rows[i] = row;
    }
    return rows;
  }();
  auto crc = ~std::uint32_t{0};
  for (char const c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xffu];
  return ~crc;
}

/// Returns an event as a record of a TensorFlow file: its length, the event, each followed by a masked CRC-32C.
[[nodiscard]] inline std::string record_of(std::string_view event) {
  std::string record;
  auto const append = [&](std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) record += static_cast<char>(number >> (8 * i) & 0xffu);
  };
  auto const append_check = [&](std::string_view bytes) {
    auto const crc = crc32c(bytes);
    append(((crc >> 15) | (crc << 17)) + 0xA282EAD8u, 4);
  };
  append(event.size(), 8);
  append_check(std::string(record));
  record += event;
  append_check(event);
  return record;
}

/// TensorBoard event with time and step, to which one field is added.
/// @source tensorflow/core/util/event.proto and framework/summary.proto
class Event {
 public:
  explicit Event(Index step) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    writer_.add_double(1, static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
    if (step != 0) writer_.add_int64(2, step);
  }
  /// Makes this the first event of a file.
  Event& version() {
    writer_.add_string(3, "brain.Event:2");
    return *this;
  }
  Event& scalars(std::vector<std::pair<std::string, double>> const& all) {
    protozero::pbf_writer summary(writer_, 5);
    for (auto const& [tag, number] : all) {
      protozero::pbf_writer value(summary, 1);
      value.add_string(1, tag);
      value.add_float(2, static_cast<float>(number));
    }
    return *this;
  }
  /// Marks the start of a run: earlier files' events of this step and later ones are void.
  Event& start() {
    protozero::pbf_writer session(writer_, 7);
    session.add_enum(1, 1);
    return *this;
  }
  [[nodiscard]] std::string const& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
  protozero::pbf_writer writer_{bytes_};
};

}}}  // namespace lockstep::train::detail
#endif
