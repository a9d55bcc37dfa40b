// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/thread_pool.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The bytes of a word in two 64-bit integers. They are unique for words of up to 15 bytes, and a hash for longer
/// words.
struct WordBytes {
  std::uint64_t low = 0, high = 0;

  explicit WordBytes(std::string_view word) noexcept {
    auto const* const at = word.data();
    auto const size = word.size();
    auto const load = [](char const* from, auto out) {
      std::memcpy(&out, from, sizeof out);
      return std::uint64_t{out};
    };
    if (size >= 8) {
      low = load(at, std::uint64_t{});
      if (size < 16) {
        if (size > 8) high = load(at + size - 8, std::uint64_t{}) >> 8 * (16 - size);
      } else {
        for (std::size_t i = 8; i + 8 < size; i += 8) high = mix_in(high, load(at + i, std::uint64_t{}));
        high = mix_in(high, load(at + size - 8, std::uint64_t{}));
      }
    } else if (size >= 4) {
      low = load(at, std::uint32_t{}) | load(at + size - 4, std::uint32_t{}) << 8 * (size - 4);
    } else if (size > 0) {
      low = load(at, std::uint8_t{}) | load(at + size / 2, std::uint8_t{}) << 8 * (size / 2) |
            load(at + size - 1, std::uint8_t{}) << 8 * (size - 1);
    }
    high = (high & ~(std::uint64_t{0xff} << 56)) | std::uint64_t{std::min<std::size_t>(size, 255)} << 56;
  }
  [[nodiscard]] static WordBytes no_word() noexcept {
    WordBytes out{std::string_view()};
    out.low = 1;
    return out;
  }
  friend bool operator==(WordBytes const&, WordBytes const&) = default;
  [[nodiscard]] std::uint32_t hash() const noexcept {
    auto const both = (low ^ high * 0xd6e8feb86659fd93u) * factor;
    return static_cast<std::uint32_t>((both ^ both >> 32) * factor >> 32);
  }

 private:
  static constexpr std::uint64_t factor = 0x9fb21c651e98df25u;
  static std::uint64_t mix_in(std::uint64_t hash, std::uint64_t next) noexcept {
    hash = (hash ^ next) * factor;
    return hash ^ hash >> 29;
  }
};

/// Words by number, from 0 in the order in which they were added, each with a count. Texts are kept in blocks with
/// stable addresses. Takes about 45 bytes per word in total.
class WordTable {
 public:
  struct Word {
    char const* text;
    std::uint32_t size, hash;
    Index count;
    [[nodiscard]] std::string_view view() const noexcept { return {text, size}; }
  };
  static constexpr std::uint32_t none = 0xffffffff;

  /// Returns all words, with their counts.
  [[nodiscard]] std::vector<Word> const& words() noexcept {
    for (auto& recent : recent_)
      if (recent.count > 0) words_[recent.number].count += std::exchange(recent.count, 0);
    return words_;
  }
  [[nodiscard]] std::uint32_t find(std::string_view word) const noexcept {
    if (slots_.empty()) return none;
    return number_at(slot_of(word, WordBytes(word).hash()));
  }
  /// Adds 1 to the count of a word. @returns its number
  std::uint32_t count(std::string_view word) {
    WordBytes const bytes(word);
    return count(word, bytes, bytes.hash());
  }
  /// Counts a word with a delay, while its table entries are prefetched. Writes its number to `numbers[place]` when it
  /// counts the word, if the place exists.
  void count_delayed(std::string_view word, std::vector<std::uint32_t>& numbers, std::size_t place) {
    WordBytes const bytes(word);
    auto const hash = bytes.hash();
    if (word.size() >= 16) return write(count(word, bytes, hash), numbers, place);
    __builtin_prefetch(&recent_[hash % recent_slots], 1);
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    auto& oldest = delayed_[next_delayed_++ % max_delayed];
    if (oldest.size != none) count(oldest, numbers);
    oldest = {bytes, place, hash, static_cast<std::uint32_t>(word.size())};
  }
  /// Counts all delayed words.
  void flush_delayed(std::vector<std::uint32_t>& numbers) {
    for (auto& each : delayed_)
      if (each.size != none) {
        count(each, numbers);
        each.size = none;
      }
  }
  /// Adds the count of a word of another table, which keeps the text.
  std::uint32_t count(Word const& word) {
    grow_table();
    auto const slot = slot_of(word.view(), word.hash);
    auto number = number_at(slot);
    if (number == none) number = add(slot, {word.text, word.size, word.hash, 0});
    words_[number].count += word.count;
    return number;
  }

 private:
  /// A word of up to 15 bytes whose count is delayed.
  struct DelayedWord {
    WordBytes bytes = WordBytes::no_word();
    std::size_t place = 0;
    std::uint32_t hash = 0, size = none;
  };
  static constexpr std::size_t max_delayed = 16;

  static void write(std::uint32_t number, std::vector<std::uint32_t>& numbers, std::size_t place) {
    if (place < numbers.size()) numbers[place] = number;
  }
  void count(DelayedWord const& later, std::vector<std::uint32_t>& numbers) {
    char text[16];
    std::memcpy(text, &later.bytes.low, 8);
    std::memcpy(text + 8, &later.bytes.high, 8);
    write(count({text, later.size}, later.bytes, later.hash), numbers, later.place);
  }
  std::uint32_t count(std::string_view word, WordBytes const& bytes, std::uint32_t hash);
  static constexpr std::size_t block_bytes = std::size_t{1} << 16;

  [[nodiscard]] std::uint32_t number_at(std::size_t slot) const noexcept {
    return static_cast<std::uint32_t>(slots_[slot]) - 1;
  }
  /// Returns the slot of the word, or the free slot for it. A slot holds the hash in its upper half and the number plus
  /// 1 in its lower half; 0 is free.
  [[nodiscard]] std::size_t slot_of(std::string_view word, std::uint32_t hash) const noexcept {
    auto const mask = slots_.size() - 1;
    for (auto slot = hash & mask;; slot = (slot + 1) & mask) {
      auto const entry = slots_[slot];
      if (static_cast<std::uint32_t>(entry) == 0) return slot;
      if (static_cast<std::uint32_t>(entry >> 32) != hash) continue;
      auto const& found = words_[static_cast<std::uint32_t>(entry) - 1];
      if (found.size == word.size() && std::memcmp(found.text, word.data(), word.size()) == 0) return slot;
    }
  }
  std::uint32_t add(std::size_t slot, Word const& word) {
    if (words_.size() >= none - 1) throw DataError("WordTable: a text has more than 4,000,000,000 different words");
    words_.push_back(word);
    slots_[slot] = std::uint64_t{word.hash} << 32 | words_.size();
    return static_cast<std::uint32_t>(words_.size() - 1);
  }
  void grow_table() {
    if (4 * (words_.size() + 1) <= 3 * slots_.size()) return;
    std::vector<std::uint64_t> slots(std::max<std::size_t>(1024, 2 * slots_.size()));
    slots_.swap(slots);
    auto const mask = slots_.size() - 1;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      auto slot = words_[i].hash & mask;
      while (slots_[slot] != 0) slot = (slot + 1) & mask;
      slots_[slot] = std::uint64_t{words_[i].hash} << 32 | (i + 1);
    }
  }
  char const* store_text(std::string_view text) {
    if (text.size() > left_) {
      auto const bytes = std::max(block_bytes, text.size());
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
      free_ = blocks_.back().get();
      left_ = bytes;
    }
    auto* const at = free_;
    std::copy(text.begin(), text.end(), at);
    free_ += text.size();
    left_ -= text.size();
    return at;
  }

  /// A recently counted word: frequent words are found here, in few cache lines.
  struct Recent {
    WordBytes bytes = WordBytes::no_word();
    Index count = 0;  ///< that is not yet in `words_`
    std::uint32_t number = 0;
  };
  static constexpr std::size_t recent_slots = std::size_t{1} << 14;

  std::array<DelayedWord, max_delayed> delayed_{};
  std::size_t next_delayed_ = 0;
  std::vector<Recent> recent_ = std::vector<Recent>(recent_slots);
  std::vector<Word> words_;
  std::vector<std::uint64_t> slots_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t left_ = 0;
};

/// The most frequent words of several tables.
struct FrequentWords {
  std::vector<std::string> words;               ///< by decreasing count, then by text
  std::vector<std::vector<std::uint32_t>> ids;  ///< of each table's words, in `words`; WordTable::none for the others
};

/// Sums the counts of all tables and selects at most `max_words` words that were counted at least `min_count` times.
/// The result depends only on the sums, not on the number of tables.
FrequentWords frequent_words(std::span<WordTable> tables, std::size_t max_words, Index min_count, ThreadPool& pool);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/text/detail/word_table.ipp>
#endif
