// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/text/detail/byte_pair_words_utf8proc.hpp>
#include <lockstep/data/text/vocabulary.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

#if defined(LOCKSTEP_UTF8PROC)

/// Converts texts to ids and back by byte-level byte-pair encoding (BPE), as for GPT-2 and RoBERTa. Reads the files of
/// Hugging Face's tokenizers: `vocab.json` with the id of each token, and `merges.txt` with one pair per line, the most
/// frequent first (`encoder.json` and `vocab.bpe` of OpenAI). Any bytes can be encoded, and decode to themselves.
/// Special tokens in a text have no meaning: "<|endoftext|>" in a text is seven tokens; `id` returns the special one.
/// Thread-safe: nothing changes after construction.
/// @source Sennrich et al. 2016; Radford et al. 2019, GPT-2
class BytePairTokenizer {
 public:
  /// @throws DataError if a file cannot be read, an id is missing or given twice, a token is longer than 64 KiB, one of
  /// the 256 bytes has no token, or a pair or its merged token is not in the vocabulary; names file and line
  BytePairTokenizer(std::string const& vocabulary, std::string const& merges) {
    read_vocabulary(vocabulary);
    read_merges(merges);
    for (std::int32_t id = 0; id < std::ssize(tokens_); ++id) {  // most words are a token; not all tokens are made
      std::vector<std::int32_t> ids;
      if (bytes_of_[static_cast<std::size_t>(id)]) merge(token(id), ids);
      if (ids.size() == 1 && ids[0] == id) words_.emplace(std::string(token(id)), id);
    }
  }

  /// Returns the number of rows of the model's embedding table.
  [[nodiscard]] Index size() const noexcept { return std::ssize(tokens_); }
  /// Returns the bytes of a token in [0, size()), which may be a part of a character.
  [[nodiscard]] std::string_view token(std::int32_t id) const noexcept { return tokens_[static_cast<std::size_t>(id)]; }
  /// Returns the id of a special token, such as "<|endoftext|>", by its name in the vocabulary.
  /// @throws ConfigError if the vocabulary does not have it
  [[nodiscard]] std::int32_t id(std::string_view special) const {
    auto const found = names_.find(special);
    if (found == names_.end())
      throw ConfigError("BytePairTokenizer: the vocabulary has no token \"" + std::string(special) + "\"");
    return found->second;
  }

  /// Returns the ids of a text, without special tokens.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    detail::BytePairWords{}(text, [&](std::string_view word) {
      if (auto const found = words_.find(word); found != words_.end())
        ids.push_back(found->second);
      else
        merge(word, ids);
    });
    return ids;
  }
  /// Returns the text of ids; a special token gives its name. The beginning or end of a part of a text may be a part of
  /// a character.   @throws DataError for an id that the vocabulary does not have
  [[nodiscard]] std::string decode(std::span<std::int32_t const> ids) const {
    std::string text;
    for (auto const id : ids) {
      if (id < 0 || id >= size())
        throw DataError("BytePairTokenizer: id " + std::to_string(id) + " is not one of the vocabulary's " +
                        std::to_string(size()) + " tokens");
      text += token(id);
    }
    return text;
  }

 private:
  static constexpr std::uint64_t max_bytes = std::uint64_t{1} << 26;  // of a file; they have a few megabytes
  static constexpr std::size_t max_token_bytes = 65536;  // merges take about 50 times the memory of a token

  struct Merge {
    std::int32_t rank, id;
  };
  /// Two adjacent parts of a word, with the merge that joins them. The lowest rank comes first, then the leftmost.
  struct Pair {
    Merge merge;
    std::int32_t left_id, right_id;  // for which the pair was found
    Index left;                      // position of the left part
    friend bool operator>(Pair const& a, Pair const& b) noexcept {
      return a.merge.rank != b.merge.rank ? a.merge.rank > b.merge.rank : a.left > b.left;
    }
  };
  struct Part {
    std::int32_t id;
    Index before, after;  // positions of the adjacent parts; -1: none
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }

  /// Returns the character of each byte in the files: itself if it is printable, else one from U+0100 on.
  static std::array<std::string, 256> byte_characters() {
    std::array<std::string, 256> out;
    std::uint32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      bool const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      auto const code = printable ? byte : next++;
      if (code < 0x80)
        out[byte] = {static_cast<char>(code)};
      else
        out[byte] = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    }
    return out;
  }

  void read_vocabulary(std::string const& path) {
    detail::DataFile const file(path);
    auto const content = file.read_claimed_text(0, file.size(), max_bytes, "the vocabulary");
    auto const root = json::parse(content, path);
    auto const characters = byte_characters();
    std::unordered_map<std::string_view, char> bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) bytes.emplace(characters[byte], static_cast<char>(byte));
    json::with_file_name(path, [&] {
      auto const& entries = root.object();
      tokens_.resize(entries.size());
      bytes_of_.resize(entries.size());
      std::vector<bool> given(entries.size());
      for (auto const& [name, value] : entries) {
        auto const id = value.integer();
        if (id < 0 || id >= std::ssize(entries) || given[static_cast<std::size_t>(id)])
          file.fail("gives the id " + std::to_string(id) + " to the token \"" + name +
                    "\"; ids are those from 0 to the number of tokens, each once");
        given[static_cast<std::size_t>(id)] = true;
        if (name.size() > max_token_bytes)
          file.fail("has a token of " + std::to_string(name.size()) + " bytes, id " + std::to_string(id) +
                    "; at most " + std::to_string(max_token_bytes) + " are read");
        names_.emplace(name, static_cast<std::int32_t>(id));
        auto& token = tokens_[static_cast<std::size_t>(id)];
        bool all = true;
        for (std::size_t at = 0; all && at < name.size();) {
          auto const size = std::size_t{(static_cast<unsigned char>(name[at]) & 0x80) == 0 ? 1U : 2U};
          auto const found = bytes.find(std::string_view(name).substr(at, size));
          if ((all = found != bytes.end())) token += found->second;
          at += size;
        }
        if (!all) token = name;
        bytes_of_[static_cast<std::size_t>(id)] = all;
      }
    });
    for (std::size_t byte = 0; byte < 256; ++byte) {
      auto const found = names_.find(characters[byte]);
      if (found == names_.end())
        file.fail("has no token \"" + characters[byte] + "\" for the byte " + std::to_string(byte) +
                  "; a byte-level vocabulary has a token for each byte, as the vocab.json of GPT-2");
      byte_ids_[byte] = found->second;
    }
  }

  void read_merges(std::string const& path) {
    detail::DataFile const file(path);
    auto const content = file.read_claimed_text(0, file.size(), max_bytes, "the merges");
    std::int32_t number = 0;
    for (std::string_view rest = content; !rest.empty();) {
      auto const end = std::min(rest.find('\n'), rest.size());
      auto line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      auto const blank = line.find(' ');
      auto const fail = [&](std::string const& why) {
        file.fail("line " + std::to_string(number) + ": \"" + std::string(line) + "\" " + why);
      };
      if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
        fail("is no pair of tokens with a blank between them");
      auto const id_of = [&](std::string const& name) {
        auto const found = names_.find(name);
        if (found == names_.end())
          fail("needs the token \"" + name + "\", which the vocabulary does not have; both files belong to one model");
        return found->second;
      };
      auto const left = std::string(line.substr(0, blank)), right = std::string(line.substr(blank + 1));
      if (!merges_.emplace(key(id_of(left), id_of(right)), Merge{number, id_of(left + right)}).second)
        fail("is a pair of an earlier line");
    }
  }

  /// Appends the ids of a word: merges the adjacent pair with the earliest line, again and again. Takes n log n
  /// steps for n bytes.
  void merge(std::string_view word, std::vector<std::int32_t>& ids) const {
    auto const length = static_cast<Index>(word.size());
    std::vector<Part> parts(word.size());
    auto const part = [&](Index i) -> Part& { return parts[static_cast<std::size_t>(i)]; };
    for (Index i = 0; i < length; ++i)
      part(i) = {byte_ids_[static_cast<unsigned char>(word[static_cast<std::size_t>(i)])], i - 1,
                 i + 1 < length ? i + 1 : -1};
    std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
    auto const add = [&](Index left) {
      if (left < 0 || part(left).after < 0) return;
      auto const a = part(left).id, b = part(part(left).after).id;
      if (auto const found = merges_.find(key(a, b)); found != merges_.end()) pairs.push({found->second, a, b, left});
    };
    for (Index i = 0; i + 1 < length; ++i) add(i);
    while (!pairs.empty()) {
      auto const top = pairs.top();
      pairs.pop();
      auto& left = part(top.left);
      if (left.id != top.left_id || left.after < 0 || part(left.after).id != top.right_id) continue;  // merged since
      auto& right = part(left.after);
      left.id = top.merge.id;
      right.id = -1;
      left.after = right.after;
      if (left.after >= 0) part(left.after).before = top.left;
      add(left.before);
      add(top.left);
    }
    for (Index i = length > 0 ? 0 : -1; i >= 0; i = part(i).after) ids.push_back(part(i).id);
  }

  std::vector<std::string> tokens_;  // bytes of each token
  std::vector<bool> bytes_of_;       // whether a token consists of bytes; else it is special
  std::unordered_map<std::string, std::int32_t, detail::StringHash, std::equal_to<>> names_;  // as in the file
  std::array<std::int32_t, 256> byte_ids_{};
  std::unordered_map<std::uint64_t, Merge> merges_;
  // The tokens that are the result of their own merges, by their bytes.
  std::unordered_map<std::string, std::int32_t, detail::StringHash, std::equal_to<>> words_;
};

#else

/// Placeholder without utf8proc: its use fails to compile and names the target to link.
template <class Path = std::string>
class BytePairTokenizer {
  static_assert(sizeof(Path) == 0,
                "Lockstep: BytePairTokenizer knows characters by utf8proc: link the target lockstep::utf8proc (Debian: "
                "libutf8proc-dev)");
};

#endif

}}}  // namespace lockstep::data
