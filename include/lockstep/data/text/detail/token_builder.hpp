// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/content_hash.hpp>
#include <lockstep/data/source/labelled_files_dataset.hpp>
#include <lockstep/data/text/detail/token_file.hpp>
#include <lockstep/data/text/detail/word_table.hpp>
#include <lockstep/data/text/vocabulary.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Texts with labels from any source: a dataset whose type does not depend on the source. Thread-safe if its function
/// is thread-safe.
class LabelledTexts {
 public:
  LabelledTexts() = default;
  /// @param get called by several threads at once, by each thread mostly in order
  LabelledTexts(Index size, std::function<LabelledText(Index)> get) : size_(size), get_(std::move(get)) {}
  /// Takes all samples of a dataset of LabelledText. Shares the dataset.
  template <class Source>
  requires(!std::derived_from<Source, LabelledTexts> && Dataset<Source>)  // in this order, against recursion
      explicit LabelledTexts(Source const& dataset)
      : LabelledTexts(dataset.size(), [dataset](Index i) -> LabelledText { return dataset.get(i); }) {}

  [[nodiscard]] Index size() const noexcept { return size_; }
  [[nodiscard]] LabelledText get(Index i) const { return get_(i); }

 private:
  Index size_ = 0;
  std::function<LabelledText(Index)> get_;
};

/// Rules that turn texts into tokens. All of them are part of a cache's key.
struct TokenRules {
  std::string tokenizer = {};  ///< identifies the tokenizer: change the name when its behaviour changes
  Index vocabulary = 20000;    ///< ids at most, including padding and unknown
  Index min_count = 2;         ///< minimum occurrences of a vocabulary word in the training texts
  Index max_length = 128;      ///< tokens of a text that are kept
};

namespace detail {

/// Writes texts as tokens. Threads take blocks of texts in turn. Each thread counts words in a separate table and
/// writes tokens as numbers of that table. After the counts are summed, the numbers are replaced in place by ids of the
/// vocabulary.
class TokenBuilder {
 public:
  TokenBuilder(TokenFileWriter const& file, TokenKey const& key, TokenRules const& rules, ThreadPool& pool,
               Progress* progress)
      : file_(file), rules_(rules), pool_(pool), progress_(progress) {
    header_.key = key;
  }

  /// @param given vocabulary of both parts; null: words of the training texts
  /// @throws the exception of the first text that cannot be read
  template <class Tokenizer>
  void build(LabelledTexts const& training, LabelledTexts const& evaluation, std::string const& classes,
             Tokenizer const& tokenizer, Vocabulary const* given = nullptr) {
    header_.parts[0].records_at = TokenHeader::body;
    header_.parts[1].records_at = TokenHeader::body + bytes_of_records(training);
    auto const records_end = header_.parts[1].records_at + bytes_of_records(evaluation);
    header_.tokens_at = (records_end + TokenHeader::body - 1) / TokenHeader::body * TokenHeader::body;
    if (header_.tokens_at > records_end) {  // fills the gap: the space of a hole would not be reserved
      std::vector<std::byte> const zeros(header_.tokens_at - records_end);
      file_.write(records_end, std::span(zeros));
    }

    auto words = given ? words_of(*given) : count(training, tokenizer);
    WordTable known;
    for (auto const& word : words) known.count(word);
    auto const encode = [&](std::size_t part, LabelledTexts const& texts, char const* what) {
      auto const blocks = write_part(part, texts, tokenizer, what, [&](std::size_t) { return Finder{known}; });
      header_.parts[part].fingerprint = fingerprint(blocks, part, [](auto const&, auto) {});
    };
    if (given) encode(0, training, "encoding texts");
    encode(1, evaluation, "encoding texts for evaluation");
    header_.tokens = next_token_;
    file_.seal(header_, Vocabulary(std::move(words)).to_text(), classes, pool_, progress_);
  }

 private:
  static constexpr Index rows_of_block = 1024;
  static constexpr std::uint32_t first_id = 2;

  /// Numbers tokens by a table that counts them: `number(token, numbers, place)`. `finish` completes pending numbers.
  struct Counter {
    static constexpr std::uint32_t none = WordTable::none;  // the number of a text without tokens
    WordTable& table;
    void number(auto const& token, std::vector<std::uint32_t>& numbers, std::size_t place) const {
      table.count_delayed(token, numbers, place);
    }
    void finish(std::vector<std::uint32_t>& numbers) const { table.flush_delayed(numbers); }
  };
  /// Gives tokens the ids of a vocabulary.
  struct Finder {
    static constexpr auto none = std::uint32_t{Vocabulary::unknown};
    WordTable const& table;
    void number(std::string_view token, std::vector<std::uint32_t>& numbers, std::size_t place) const {
      if (place >= numbers.size()) return;
      auto const found = table.find(token);
      numbers[place] = found == WordTable::none ? none : found + first_id;
    }
    void finish(std::vector<std::uint32_t>&) const {}
  };
  /// The tokens of consecutive texts that one thread has written.
  struct Block {
    std::uint64_t begin = 0, tokens = 0;
    std::size_t worker = 0;
  };

  /// Counts and labels of the texts that a thread has read.
  struct Found {
    std::uint64_t truncated = 0, empty = 0;
    std::int32_t least_label = std::numeric_limits<std::int32_t>::max();
    std::int32_t largest_label = std::numeric_limits<std::int32_t>::min();
  };

  static std::vector<std::string> words_of(Vocabulary const& vocabulary) {
    std::vector<std::string> words;
    for (auto id = std::int32_t{first_id}; id < vocabulary.size(); ++id) words.emplace_back(vocabulary.token(id));
    return words;
  }
  /// Writes the training texts and returns their frequent words.
  template <class Tokenizer>
  std::vector<std::string> count(LabelledTexts const& training, Tokenizer const& tokenizer) {
    std::vector<WordTable> tables(static_cast<std::size_t>(pool_.threads()));
    auto const blocks = write_part(0, training, tokenizer, "counting words",
                                   [&](std::size_t worker) { return Counter{tables[worker]}; });
    auto const size = static_cast<std::size_t>(rules_.vocabulary - 2);
    auto words = frequent_words(tables, size, rules_.min_count, pool_);
    tables.clear();
    to_ids(blocks, words.ids);
    return std::move(words.words);
  }

  static std::uint64_t bytes_of_records(LabelledTexts const& texts) {
    return static_cast<std::uint64_t>(texts.size()) * sizeof(TokenRecord);
  }

  /// Writes records and tokens; number_of(worker) returns the object that numbers a thread's tokens. A text without
  /// tokens gets the single token `none`.
  template <class Tokenizer, class NumberOf>
  std::vector<Block> write_part(std::size_t part, LabelledTexts const& texts, Tokenizer const& tokenizer,
                                char const* what, NumberOf const& number_of) {
    auto const count = (texts.size() + rows_of_block - 1) / rows_of_block;
    std::vector<Block> blocks(static_cast<std::size_t>(count));
    std::atomic<Index> next_block{0};
    std::atomic<std::uint64_t> truncated{0}, empty{0};
    std::mutex merging;
    auto& header = header_.parts[part];
    header.least_label = std::numeric_limits<std::int32_t>::max();
    header.largest_label = std::numeric_limits<std::int32_t>::min();
    std::atomic<bool> failed{false};
    std::mutex failing;
    std::exception_ptr error;
    Index failed_block = count;
    if (progress_) progress_->begin(what, texts.size());
    pool_.run(pool_.threads(), [&](Index worker) {
      auto const number = number_of(static_cast<std::size_t>(worker));
      std::vector<std::uint32_t> tokens;
      std::vector<TokenRecord> records;
      for (Index block; !failed && (block = next_block++) < count;) {
        try {
          auto const first = block * rows_of_block, end = std::min(texts.size(), first + rows_of_block);
          tokens.clear();
          records.clear();
          Found found;
          for (Index i = first; i < end; ++i) add(texts.get(i), tokenizer, number, tokens, records, found);
          truncated += found.truncated;
          empty += found.empty;
          for (auto const& record : records) {
            found.least_label = std::min(found.least_label, record.label);
            found.largest_label = std::max(found.largest_label, record.label);
          }
          {
            std::lock_guard const lock(merging);
            header.least_label = std::min(header.least_label, found.least_label);
            header.largest_label = std::max(header.largest_label, found.largest_label);
          }
          number.finish(tokens);
          auto const begin = next_token_.fetch_add(tokens.size());
          for (auto& record : records) record.begin += begin;
          file_.write(header_.tokens_at + begin * sizeof(std::int32_t), std::span<std::uint32_t const>(tokens));
          file_.write(record_at(part, first), std::span<TokenRecord const>(records));
          blocks[static_cast<std::size_t>(block)] = {begin, tokens.size(), static_cast<std::size_t>(worker)};
          if (progress_) progress_->add(end - first);
        } catch (...) {
          failed = true;
          std::lock_guard const lock(failing);
          if (block < failed_block) error = std::current_exception();
          failed_block = std::min(failed_block, block);
        }
      }
    });
    if (error) std::rethrow_exception(error);  // all blocks before it were started earlier, and are complete
    header.rows = static_cast<std::uint64_t>(texts.size());
    header.truncated = truncated;
    header.empty = empty;
    return blocks;
  }
  /// Appends the tokens and the record of a text, and counts it in `found`.
  template <class Tokenizer, class Number>
  void add(LabelledText const& text, Tokenizer const& tokenizer, Number const& number,
           std::vector<std::uint32_t>& tokens, std::vector<TokenRecord>& records, Found& found) const {
    auto const begin = tokens.size(), most = begin + static_cast<std::size_t>(rules_.max_length);
    bool truncated = false;
    tokenizer(text.text, [&](auto const& token) {
      auto const place = tokens.size() < most ? tokens.size() : std::numeric_limits<std::size_t>::max();
      if (tokens.size() < most)
        tokens.push_back(0);
      else
        truncated = true;
      number.number(token, tokens, place);
    });
    found.truncated += truncated;
    found.empty += tokens.size() == begin;
    if (tokens.size() == begin) tokens.push_back(Number::none);
    records.push_back({begin, static_cast<std::uint32_t>(tokens.size() - begin), text.label});
  }
  [[nodiscard]] std::uint64_t record_at(std::size_t part, Index i) const noexcept {
    return header_.parts[part].records_at + static_cast<std::uint64_t>(i) * sizeof(TokenRecord);
  }

  /// Replaces numbers of the tables that wrote them by ids.
  void to_ids(std::vector<Block> const& blocks, std::vector<std::vector<std::uint32_t>> const& ids) {
    header_.parts[0].fingerprint = fingerprint(blocks, 0, [&](Block const& block, std::span<std::uint32_t> tokens) {
      auto const& of_table = ids[block.worker];
      for (auto& token : tokens) {
        auto const id = token == WordTable::none ? WordTable::none : of_table[token];
        token = id == WordTable::none ? std::uint32_t{Vocabulary::unknown} : id + first_id;
      }
      file_.write(header_.tokens_at + block.begin * sizeof(std::int32_t), std::span<std::uint32_t const>(tokens));
    });
  }
  /// Reads the blocks of a part again and calls change(block, tokens). Returns the fingerprint of an InMemoryDataset of
  /// samples with these tokens and labels.
  template <class Change>
  std::uint64_t fingerprint(std::vector<Block> const& blocks, std::size_t part, Change const& change) {
    auto const rows = static_cast<Index>(header_.parts[part].rows);
    auto hash = header_.parts[part].rows;
    auto const wave = std::size_t{16} * static_cast<std::size_t>(pool_.threads());
    std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> hashes(wave);  // of a text's tokens, and label
    if (progress_) progress_->begin("encoding texts", rows);
    for (std::size_t first = 0; first < blocks.size(); first += wave) {
      auto const count = std::min(wave, blocks.size() - first);
      pool_.run(static_cast<Index>(count), [&](Index k) {
        auto const number = first + static_cast<std::size_t>(k);
        auto const& block = blocks[number];
        auto const row = static_cast<Index>(number) * rows_of_block, end = std::min(rows, row + rows_of_block);
        thread_local std::vector<std::uint32_t> tokens;
        thread_local std::vector<TokenRecord> records;
        tokens.resize(static_cast<std::size_t>(block.tokens));
        records.resize(static_cast<std::size_t>(end - row));
        file_.read(header_.tokens_at + block.begin * sizeof(std::int32_t), std::span(tokens));
        file_.read(record_at(part, row), std::span(records));
        change(block, std::span(tokens));
        auto& out = hashes[static_cast<std::size_t>(k)];
        out.clear();
        auto const* at = reinterpret_cast<char const*>(tokens.data());
        for (auto const& record : records) {
          auto const bytes = record.length * sizeof(std::int32_t);
          out.emplace_back(content_hash({at, bytes}),
                           content_hash({reinterpret_cast<char const*>(&record.label), sizeof record.label}));
          at += bytes;
        }
        if (progress_) progress_->add(end - row);
      });
      for (std::size_t k = 0; k < count; ++k)
        for (auto const& [tokens, label] : hashes[k]) hash = mix(mix(hash, tokens), label);
    }
    return hash;
  }

  TokenFileWriter const& file_;
  TokenRules const& rules_;
  ThreadPool& pool_;
  Progress* progress_;
  TokenHeader header_;
  std::atomic<std::uint64_t> next_token_{0};
};

}  // namespace detail
}}}  // namespace lockstep::data
