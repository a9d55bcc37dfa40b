// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/store/store.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE Store::~Store() {
  try {
    connection_.send(detail::store_message(static_cast<std::uint8_t>(detail::StoreCall::leave), {}, {}),
                     deadline_in(detail::max_late_seconds));
  } catch (CommunicationError const&) {  // the store is gone, or reads nothing
  }
}

LOCKSTEP_INLINE std::int64_t Store::add(std::string_view name, std::int64_t more) {
  auto const text = request(detail::StoreCall::add, name, {reinterpret_cast<char const*>(&more), sizeof more});
  std::int64_t sum = 0;
  std::memcpy(&sum, text.data(), text.size() < sizeof sum ? text.size() : sizeof sum);
  return sum;
}

LOCKSTEP_INLINE void Store::contribute(std::string_view name, std::string_view bytes, int members) {
  connection_.send(message_of(detail::StoreCall::gather, name, bytes, members));
}

LOCKSTEP_INLINE std::string Store::message_of(detail::StoreCall call, std::string_view key, std::string_view value,
                                              int members) {
  if (key.size() > detail::max_store_bytes || value.size() > detail::max_store_bytes)
    throw ConfigError("Store: '" + std::string(key.substr(0, 64)) + "' has " + std::to_string(value.size()) +
                      " bytes; at most " + std::to_string(detail::max_store_bytes) + " can be stored");
  return detail::store_message(static_cast<std::uint8_t>(call), key, value, members);
}

LOCKSTEP_INLINE std::string Store::request(detail::StoreCall call, std::string_view key, std::string_view value) {
  auto const deadline = deadline_in(connection_.address().wait_seconds);
  connection_.send(message_of(call, key, value), deadline);
  if (auto text = answer(deadline, key)) return std::move(*text);
  ++stale_answers_;
  throw CommunicationError("Store: rank " + std::to_string(connection_.address().rank) + " received no '" +
                           std::string(key) + "' in time from " + connection_.address_text());
}

LOCKSTEP_INLINE std::optional<std::string> Store::answer(Deadline deadline, std::string_view key) {
  while (auto message = connection_.wait(deadline)) {
    if (handle_unsolicited(*message)) continue;
    switch (message->type) {
      case detail::StoreReply::lost:
        throw RankLost(message->rank, peer_text(message->value, detail::max_store_text_bytes) + "; rank " +
                                          std::to_string(connection_.address().rank) + " was waiting for '" +
                                          std::string(key) + "'");
      case detail::StoreReply::refused:
        throw ConfigError("Store: " + connection_.address_text() + " refuses: " + peer_text(message->value));
      default:
        return std::move(message->value);
    }
  }
  return std::nullopt;
}

LOCKSTEP_INLINE bool Store::handle_unsolicited(detail::StoreConnection::Message& message) {
  if (message.type == detail::StoreReply::gathered) {
    gathered_bytes_ += message.value.size();
    if (gathered_bytes_ > 2 * std::size_t{detail::max_unread_bytes} ||
        !gathered_.try_emplace(std::move(message.key), std::move(message.value)).second)
      connection_.throw_no_store();
    return true;
  }
  if (stale_answers_ == 0) return false;
  --stale_answers_;
  return true;
}

}}}  // namespace lockstep::launch
