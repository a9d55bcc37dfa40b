// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/text/detail/padded_word.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The bytes of a word in two 64-bit integers. They are unique for words of up to 15 bytes, and a hash for longer
/// words.
struct WordBytes {
  std::uint64_t low = 0, high = 0;

  explicit WordBytes(std::string_view word) noexcept {
    auto const* const at = word.data();
    auto const size = word.size();
    if (size >= 16) {
      take_long(word);
    } else if (size >= 8) {
      low = load(at, std::uint64_t{});
      if (size > 8) high = load(at + size - 8, std::uint64_t{}) >> 8 * (16 - size);
    } else if (size >= 4) {
      low = load(at, std::uint32_t{}) | load(at + size - 4, std::uint32_t{}) << 8 * (size - 4);
    } else if (size > 0) {
      low = load(at, std::uint8_t{}) | load(at + size / 2, std::uint8_t{}) << 8 * (size / 2) |
            load(at + size - 1, std::uint8_t{}) << 8 * (size - 1);
    }
    add_size(size);
  }
  /// Equal to the constructor for a string, without branches for short words.
  explicit WordBytes(PaddedWord word) noexcept {
    auto const size = word.size();
    if (size >= 16) {
      take_long(word);
    } else {
      static_assert(PaddedWord::readable >= 16);
      low = load(word.data(), std::uint64_t{}) & masks[size][0];
      high = load(word.data() + 8, std::uint64_t{}) & masks[size][1];
    }
    add_size(size);
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
  /// The bytes of two integers that a word of each size fills.
  static constexpr auto masks = [] {
    std::array<std::array<std::uint64_t, 2>, 16> out{};
    for (std::size_t size = 0; size < 16; ++size)
      for (std::size_t i = 0; i < size; ++i) out[size][i / 8] |= std::uint64_t{0xff} << 8 * (i % 8);
    return out;
  }();

  template <class Value>
  static std::uint64_t load(char const* from, Value out) noexcept {
    std::memcpy(&out, from, sizeof out);
    return std::uint64_t{out};
  }
  void take_long(std::string_view word) noexcept {
    auto const* const at = word.data();
    low = load(at, std::uint64_t{});
    for (std::size_t i = 8; i + 8 < word.size(); i += 8) high = mix_in(high, load(at + i, std::uint64_t{}));
    high = mix_in(high, load(at + word.size() - 8, std::uint64_t{}));
  }
  void add_size(std::size_t size) noexcept {
    high = (high & ~(std::uint64_t{0xff} << 56)) | std::uint64_t{std::min<std::size_t>(size, 255)} << 56;
  }
  static std::uint64_t mix_in(std::uint64_t hash, std::uint64_t next) noexcept {
    hash = (hash ^ next) * factor;
    return hash ^ hash >> 29;
  }
};

/// Words by number, from 0 in the order in which they were added, each with a count. Texts are kept in blocks with
/// stable addresses. A word of up to 15 bytes is found in one cache line. Takes about 90 bytes per word in total.
/// Tables of several threads share no cache line.
class alignas(64) WordTable {
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
    for (auto const& slot : slots())
      if (slot.is_taken()) words_[slot.number()].count = slot.count;
    return words_;
  }
  [[nodiscard]] std::uint32_t find(std::string_view word) const noexcept {
    if (slots().empty()) return none;
    WordBytes const bytes(word);
    return slots()[slot_of(word, bytes, bytes.hash())].number();
  }
  /// Adds 1 to the count of a word. @returns its number
  std::uint32_t count(std::string_view word) {
    WordBytes const bytes(word);
    return count(word, bytes, bytes.hash());
  }
  /// Counts a word with a delay, while its slot is prefetched. Writes its number to `numbers[place]` when it counts the
  /// word, if the place exists.
  template <std::convertible_to<std::string_view> Token>
  void count_delayed(Token const& word, std::vector<std::uint32_t>& numbers, std::size_t place) {
    WordBytes const bytes(word);
    auto const hash = bytes.hash();
    if (word.size() >= 16) return write(count(word, bytes, hash), numbers, place);
    if (auto const all = slots(); !all.empty()) __builtin_prefetch(&all[hash & (all.size() - 1)], 1);
    delayed_[delayed_count_++] = {bytes, place, hash, static_cast<std::uint32_t>(word.size())};
    if (delayed_count_ == max_delayed) flush_delayed(numbers);
  }
  /// Counts all delayed words.
  void flush_delayed(std::vector<std::uint32_t>& numbers) {
    for (std::size_t i = 0; i < delayed_count_; ++i) count(delayed_[i], numbers);
    delayed_count_ = 0;
  }
  /// Adds the count of a word of another table, which keeps the text.
  std::uint32_t count(Word const& word) {
    WordBytes const bytes(word.view());
    grow_table();
    auto& slot = slots()[slot_of(word.view(), bytes, word.hash)];
    if (!slot.is_taken()) slot = {bytes, 0, add({word.text, word.size, word.hash, 0}) + 1, word.hash};
    slot.count += word.count;
    return slot.number();
  }

 private:
  /// A word of up to 15 bytes whose count is delayed.
  struct DelayedWord {
    WordBytes bytes = WordBytes::no_word();
    std::size_t place = 0;
    std::uint32_t hash = 0, size = 0;
  };
  static constexpr std::size_t max_delayed = 64;

  /// Place of a word in the hash table, with its count. Zero bytes are a free place.
  struct alignas(32) Slot {
    WordBytes bytes;
    Index count;
    std::uint32_t number_plus_one, hash;

    [[nodiscard]] bool is_taken() const noexcept { return number_plus_one != 0; }
    [[nodiscard]] std::uint32_t number() const noexcept { return number_plus_one - 1; }  ///< `none` if free
  };
  static_assert(std::is_trivially_copyable_v<Slot>);

  [[nodiscard]] std::span<Slot> slots() const noexcept {
    return {reinterpret_cast<Slot*>(memory_.data()), memory_.bytes() / sizeof(Slot)};
  }

  static void write(std::uint32_t number, std::vector<std::uint32_t>& numbers, std::size_t place) {
    if (place < numbers.size()) numbers[place] = number;
  }
  void count(DelayedWord const& later, std::vector<std::uint32_t>& numbers) {
    char text[16];
    std::memcpy(text, &later.bytes.low, 8);
    std::memcpy(text + 8, &later.bytes.high, 8);
    write(count({text, later.size}, later.bytes, later.hash), numbers, later.place);
  }
  std::uint32_t count(std::string_view word, WordBytes const& bytes, std::uint32_t hash) {
    grow_table();
    auto& slot = slots()[slot_of(word, bytes, hash)];
    if (!slot.is_taken())
      slot = {bytes, 0, add({store_text(word), static_cast<std::uint32_t>(word.size()), hash, 0}) + 1, hash};
    ++slot.count;
    return slot.number();
  }
  static constexpr std::size_t block_bytes = std::size_t{1} << 16;

  /// Returns the slot of the word, or the free slot for it.
  [[nodiscard]] std::size_t slot_of(std::string_view word, WordBytes const& bytes, std::uint32_t hash) const noexcept {
    auto const all = slots();
    auto const mask = all.size() - 1;
    for (auto place = hash & mask;; place = (place + 1) & mask) {
      auto const& slot = all[place];
      if (slot.bytes == bytes && slot.is_taken() && (word.size() < 16 || words_[slot.number()].view() == word))
        return place;
      if (!slot.is_taken()) return place;
    }
  }
  std::uint32_t add(Word const& word) {
    if (words_.size() >= none - 1) throw DataError("WordTable: a text has more than 4,000,000,000 different words");
    words_.push_back(word);
    return static_cast<std::uint32_t>(words_.size() - 1);
  }
  void grow_table() {
    auto const before = slots();
    if (4 * (words_.size() + 1) <= 3 * before.size()) return;
    auto const kept = std::move(memory_);
    // Large pages, because most prefetches would need another small page.
    memory_ = memory::HostResource{}.allocate(std::max<std::size_t>(1024, 2 * before.size()) * sizeof(Slot));
    auto const all = slots();
    auto const mask = all.size() - 1;
    for (auto const& slot : before) {
      if (!slot.is_taken()) continue;
      auto place = slot.hash & mask;
      while (all[place].is_taken()) place = (place + 1) & mask;
      all[place] = slot;
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

  std::array<DelayedWord, max_delayed> delayed_{};
  std::size_t delayed_count_ = 0;
  std::vector<Word> words_;
  memory::Block memory_;  // of the slots
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
