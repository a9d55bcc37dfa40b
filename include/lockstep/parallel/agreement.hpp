// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/core/sha256.hpp>
#include <lockstep/launch/peer_text.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Named values that must be equal on all ranks for their replicas to stay equal, in the caller's order.
class Agreement {
 public:
  /// Sets the end of the error's message for fields that are added later. All ranks must call it before the same field.
  void set_remedy(char const* remedy) { add({}, remedy); }

  /// Adds a value under the name that an error shows.
  void add(std::string_view field, std::string_view value);
  /// Adds a string.
  void add(std::string_view field, char const* value) { add(field, std::string_view(value)); }
  /// Adds a number, compared as text.
  void add(std::string_view field, Index value) { add(field, std::to_string(value)); }
  /// Compares values bit by bit.
  void add(std::string_view field, double value);
  /// Adds the options that must be equal on all ranks: those with a name for the error.
  void add(OptionList const& options);

  /// Compares 128-bit hashes on all ranks, and the values themselves only if hashes differ.
  /// @collective   @throws CollectiveMismatch on all ranks, with the first rank and field that differ and both values
  template <class Communicator>
  void check(Communicator& communicator) const {
    struct Sent {
      std::uint8_t hash[16];
      std::uint64_t bytes;
      bool operator==(Sent const&) const = default;
    };
    auto const ranks = static_cast<std::size_t>(communicator.size());
    if (ranks == 1) return;
    Sent mine{{}, text_.size()};
    Sha256 hash;
    hash.update(std::as_bytes(std::span(text_)));
    std::copy_n(hash.digest().begin(), sizeof mine.hash, mine.hash);
    std::vector<Sent> all(ranks);
    detail::all_gather_bytes(communicator, &mine, all.data(), sizeof mine);
    std::size_t rank = 1, longest = all[0].bytes;
    while (rank < ranks && all[rank] == all[0]) ++rank;
    if (rank == ranks) return;
    for (auto const& sent : all) longest = std::max<std::size_t>(longest, sent.bytes);
    if (longest > max_bytes)
      throw CollectiveMismatch("a rank has options of " + std::to_string(longest) + " bytes; at most " +
                               std::to_string(max_bytes) + " can be compared");
    auto padded = text_;
    padded.resize(longest);
    std::string texts(longest * ranks, '\0');
    detail::all_gather_bytes(communicator, padded.data(), texts.data(), longest);
    std::string_view const seen(texts);
    refuse(rank, seen.substr(0, all[0].bytes), seen.substr(rank * longest, all[rank].bytes));
  }

 private:
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;

  /// Removes text up to the next zero and returns it.
  static std::string_view next_part(std::string_view& text);
  /// Removes the first "field = value" and returns it. Counts the remedies before it in `remedies`.
  static std::string next(std::string_view& text, int& remedies);
  /// Returns the remedy that is set by this number of calls of set_remedy.
  [[nodiscard]] std::string_view remedy(int number) const;
  [[noreturn]] void refuse(std::size_t rank, std::string_view first, std::string_view other) const;

  std::string text_;  // field and value in turns, each followed by a zero; a remedy is the value of an empty field
};

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/agreement.ipp>
#endif
