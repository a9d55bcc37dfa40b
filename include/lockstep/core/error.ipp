// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE std::string limited_message(std::string const& message) {
  if (message.size() <= max_message_bytes) return message;
  constexpr std::size_t tail = 700, room = 60;  // room for the note between the two parts
  auto const within_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(message[at]) & 0xC0) == 0x80;
  };
  std::size_t end = max_message_bytes - tail - room, begin = message.size() - tail;
  for (int i = 0; i < 3 && within_character(end); ++i) --end;
  for (int i = 0; i < 3 && within_character(begin); ++i) ++begin;
  return message.substr(0, end) + " [... " + std::to_string(begin - end) + " bytes left out ...] " +
         message.substr(begin);
}

LOCKSTEP_COLD_INLINE Error::Error(std::string const& what) : std::runtime_error(limited_message(what)) {}

}}  // namespace lockstep
