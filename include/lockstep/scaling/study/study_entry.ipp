// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/scaling/study/study_entry.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {
inline constexpr std::array<std::pair<StudyEntry::State, char const*>, 4> state_words{
    {{StudyEntry::State::planned, "planned"},
     {StudyEntry::State::running, "running"},
     {StudyEntry::State::finished, "finished"},
     {StudyEntry::State::failed, "failed"}}};
}  // namespace detail

LOCKSTEP_INLINE std::string StudyEntry::json() const {
  json::Writer out(json::Layout::indented);
  out.begin_object().member("schema", 1).member("name", name).member("example", example);
  out.member("parallel", parallel).member("devices", devices);
  if (batch_size) out.member("batch_size", *batch_size);
  if (!data.empty()) out.member("data", data);
  out.member("repeat", repeat).member("command", command).member("processors", processors);
  for (auto const& [value, word] : detail::state_words)
    if (value == state) out.member("state", word);
  if (state == State::failed) out.member("exit_code", exit_code).member("message", message);
  out.member("seconds", seconds).member("peak_resident_bytes", peak_resident_bytes).end_object();
  return out.text();
}

LOCKSTEP_INLINE StudyEntry StudyEntry::read(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError(path + ": cannot be read");
  std::string const text{std::istreambuf_iterator<char>(in), {}};
  auto const json = json::parse(text, path);
  try {
    StudyEntry out{.name = json.at("name").string(),
                   .example = json.at("example").string(),
                   .parallel = json.at("parallel").string(),
                   .devices = json.at("devices").integer()};
    if (auto const* const batch = json.find("batch_size")) out.batch_size = batch->integer();
    if (auto const* const data = json.find("data")) out.data = data->string();
    out.repeat = json.at("repeat").integer();
    for (auto const& word : json.at("command").array()) out.command.push_back(word.string());
    out.processors = json.at("processors").integer();
    for (auto const& [value, word] : detail::state_words)
      if (json.at("state").string() == word) out.state = value;
    if (auto const* const code = json.find("exit_code")) out.exit_code = static_cast<int>(code->integer());
    if (auto const* const message = json.find("message")) out.message = message->string();
    out.seconds = json.at("seconds").number();
    out.peak_resident_bytes = static_cast<std::size_t>(json.at("peak_resident_bytes").integer());
    return out;
  } catch (DataError const& error) {
    throw DataError(path + ": " + error.what());
  }
}

}}}  // namespace lockstep::scaling
