// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/store/store.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE Store::~Store() {
  auto const message = detail::store_message(static_cast<std::uint8_t>(detail::StoreCall::leave), {}, {});
  (void)::send(connection_.descriptor(), message.data(), message.size(), MSG_NOSIGNAL);
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
  connection_.send(message_of(call, key, value));
  if (auto text = answer(deadline_in(connection_.address().wait_seconds), key)) return std::move(*text);
  throw CommunicationError("Store: rank " + std::to_string(connection_.address().rank) + " received no '" +
                           std::string(key) + "' in time from " + connection_.address_text());
}

LOCKSTEP_INLINE std::optional<std::string> Store::answer(Deadline deadline, std::string_view key) {
  while (auto message = connection_.wait(deadline)) {
    if (handle_unsolicited(*message)) continue;
    switch (message->type) {
      case detail::StoreReply::lost:
        throw RankLost(message->rank, message->value + "; rank " + std::to_string(connection_.address().rank) +
                                          " was waiting for '" + std::string(key) + "'");
      case detail::StoreReply::refused:
        throw ConfigError("Store: " + connection_.address_text() + " refuses: " + message->value);
      default:
        return std::move(message->value);
    }
  }
  return std::nullopt;
}

LOCKSTEP_INLINE bool Store::handle_unsolicited(detail::StoreConnection::Message& message) {
  if (message.type == detail::StoreReply::gathered) {
    gathered_[std::move(message.key)] = std::move(message.value);
    return true;
  }
  if (stale_answers_ == 0) return false;
  --stale_answers_;
  return true;
}

}}}  // namespace lockstep::launch
