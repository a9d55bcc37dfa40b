// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/text/detail/basic_tokenizer_utf8proc.hpp>
#include <lockstep/data/text/vocabulary.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

#if defined(LOCKSTEP_UTF8PROC)

/// Options of WordPieceTokenizer, which must be those of the model's training.
struct WordPieceOptions {
  bool lower_case = true;           ///< also removes accents, as for "uncased" models
  std::size_t max_word_size = 100;  ///< a word of more characters is unknown as a whole
};

/// The ids of two texts, such as question and answer, for BERT.
struct WordPiecePair {
  std::vector<std::int32_t> first;   ///< "[CLS]", then the first text, then "[SEP]"
  std::vector<std::int32_t> second;  ///< the second text, then "[SEP]"
};

/// Converts texts to ids as for the training of BERT, DistilBERT, MiniLM and ELECTRA. Splits words into the longest
/// pieces in the model's `vocab.txt`, which holds one piece per line; the line number from 0 is the id. A piece that
/// does not begin its word is written with the prefix "##". A word without matching pieces is one "[UNK]". Special
/// tokens in a text have no meaning: "[SEP]" in a text is three words. Thread-safe: nothing changes after construction.
/// @source Devlin et al. 2019, BERT; Schuster and Nakajima 2012
class WordPieceTokenizer {
 public:
  /// @throws DataError if the file cannot be read, or lacks "[UNK]", "[CLS]" or "[SEP]"
  explicit WordPieceTokenizer(std::string const& path, WordPieceOptions options = {})
      : basic_tokenizer_(options.lower_case), max_word_size_(options.max_word_size) {
    detail::DataFile const file(path);
    constexpr std::uint64_t most = std::uint64_t{1} << 26;  // vocabularies have less than a megabyte
    auto const content = file.read_claimed_text(0, file.size(), most, "the vocabulary");
    for (std::string_view rest = content; !rest.empty();) {
      auto const end = std::min(rest.find('\n'), rest.size());
      auto line = rest.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      pieces_.emplace_back(line);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      std::string_view const piece = pieces_[i];
      auto const id = static_cast<std::int32_t>(i);
      if (piece.starts_with("##")) {
        rest_.add(piece.substr(2), id);
      } else {
        first_.add(piece, id);
      }
    }
    auto const special = [&](char const* piece) {
      auto const found = first_.ids.find(std::string_view(piece));
      if (found == first_.ids.end())
        file.fail(std::string("has no line \"") + piece +
                  "\"; a BERT vocabulary has that line, with one piece per line");
      return found->second;
    };
    unknown_ = special("[UNK]");
    begin_ = special("[CLS]");
    end_ = special("[SEP]");
  }

  /// Returns the number of rows of the model's embedding table.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(pieces_.size()); }
  /// Returns the piece of an id in [0, size()).
  [[nodiscard]] std::string_view token(std::int32_t id) const noexcept { return pieces_[static_cast<std::size_t>(id)]; }
  /// Returns the id of a special token, such as "[MASK]", or of any other piece that begins a word.
  /// @throws ConfigError if the vocabulary does not have it
  [[nodiscard]] std::int32_t id(std::string_view piece) const {
    auto const found = first_.ids.find(piece);
    if (found == first_.ids.end())
      throw ConfigError("WordPieceTokenizer: the vocabulary has no piece \"" + std::string(piece) + "\"");
    return found->second;
  }

  /// Calls `each(piece)` for every piece in order, including the prefix "##".
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    for (auto const id : ids_of(text, unlimited)) each(token(id));
  }

  /// Returns "[CLS]", the text and "[SEP]", at most `limit` ids. Truncates only the text.
  /// @throws ConfigError if `limit` is less than 2
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, Index limit) const {
    require(limit, 2);
    auto ids = ids_of(text, limit - 2);
    ids.insert(ids.begin(), begin_);
    ids.push_back(end_);
    return ids;
  }

  /// Returns both texts with one "[CLS]" and two "[SEP]", at most `limit` ids together. Truncates the longer text until
  /// both are equally long, then both, as Hugging Face's tokenizers do.
  /// @throws ConfigError if `limit` is less than 3
  [[nodiscard]] WordPiecePair encode(std::string_view first, std::string_view second, Index limit) const {
    require(limit, 3);
    auto const room = static_cast<std::size_t>(limit - 3);
    WordPiecePair pair{ids_of(first, unlimited), ids_of(second, unlimited)};
    if (pair.first.size() + pair.second.size() > room) {
      bool const cut_second = pair.first.size() <= pair.second.size();
      auto& shorter = cut_second ? pair.first : pair.second;
      auto& longer = cut_second ? pair.second : pair.first;
      shorter.resize(std::min(shorter.size(), room / 2));
      longer.resize(room - shorter.size());
    }
    pair.first.insert(pair.first.begin(), begin_);
    pair.first.push_back(end_);
    pair.second.push_back(end_);
    return pair;
  }

 private:
  static constexpr Index unlimited = std::numeric_limits<Index>::max();

  // Pieces for one position in a word, without "##". If a piece occurs twice, the later line counts.
  struct Pieces {
    std::unordered_map<std::string, std::int32_t, detail::StringHash, std::equal_to<>> ids;
    std::size_t longest = 0;

    void add(std::string_view piece, std::int32_t id) {
      ids.insert_or_assign(std::string(piece), id);
      longest = std::max(longest, piece.size());
    }
  };

  static void require(Index limit, Index least) {
    if (limit < least)
      throw ConfigError("WordPieceTokenizer: the limit is " + std::to_string(limit) + "; [CLS] and [SEP] alone are " +
                        std::to_string(least));
  }

  std::vector<std::int32_t> ids_of(std::string_view text, Index limit) const {
    std::vector<std::int32_t> ids;
    auto const most = static_cast<std::size_t>(limit);
    basic_tokenizer_(text, [&](std::string_view word, std::size_t characters) {
      auto const before = ids.size();
      if (characters > max_word_size_ || !add_pieces(word, ids)) {
        ids.resize(before);
        ids.push_back(unknown_);
      }
      return ids.size() < most;
    });
    ids.resize(std::min(ids.size(), most));
    return ids;
  }

  // Adds the longest matching piece repeatedly; returns false if no piece begins the rest of the word.
  bool add_pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
    for (auto const* pieces = &first_; !word.empty(); pieces = &rest_) {
      auto size = std::min(word.size(), pieces->longest);
      auto found = pieces->ids.end();
      for (; size > 0; --size) {
        if (size < word.size() && (static_cast<unsigned char>(word[size]) & 0xc0) == 0x80) continue;
        found = pieces->ids.find(word.substr(0, size));
        if (found != pieces->ids.end()) break;
      }
      if (found == pieces->ids.end()) return false;
      ids.push_back(found->second);
      word.remove_prefix(size);
    }
    return true;
  }

  detail::BasicTokenizer basic_tokenizer_;
  std::size_t max_word_size_;
  std::vector<std::string> pieces_;
  Pieces first_, rest_;
  std::int32_t unknown_ = 0, begin_ = 0, end_ = 0;
};

#else

/// Placeholder without utf8proc: its use fails to compile and names the target to link.
template <class Path = std::string>
class WordPieceTokenizer {
  static_assert(
      sizeof(Path) == 0,
      "Lockstep: WordPieceTokenizer knows characters by utf8proc: link the target lockstep::utf8proc (Debian: "
      "libutf8proc-dev)");
};

#endif

}}}  // namespace lockstep::data
