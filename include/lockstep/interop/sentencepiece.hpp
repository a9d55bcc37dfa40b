// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_SENTENCEPIECE)
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#endif

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/base64.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace interop {

#if defined(LOCKSTEP_SENTENCEPIECE)

/// Options of SentencePiece::train.
struct SentencePieceOptions {
  Index vocabulary = 8000;        ///< largest number of pieces, including padding, begin, end and unknown
  double character_coverage = 1;  ///< fraction of the training characters that get a piece; others are unknown
};

/// Splits strings into pieces of a SentencePiece model and numbers them, and back. Copies share the model. Thread-safe.
/// @source Kudo and Richardson 2018, "SentencePiece"
class SentencePiece {
 public:
  /// Trains a unigram model. Ids 0 to 3 are padding, begin, end and unknown.
  /// @param texts UTF-8, one sentence per string
  /// @determinism bitwise: the model depends only on the texts, their order and the options
  /// @throws ConfigError if no model of this size fits the texts, for example for more characters than pieces
  [[nodiscard]] static SentencePiece train(std::span<std::string const> texts,
                                           SentencePieceOptions const& options = {}) {
    Sentences sentences(texts);
    std::string bytes;
    auto const status = ::sentencepiece::SentencePieceTrainer::Train(
        std::unordered_map<std::string, std::string>{{"model_type", "unigram"},
                                                     {"vocab_size", std::to_string(options.vocabulary)},
                                                     {"hard_vocab_limit", "false"},
                                                     {"character_coverage", shortest(options.character_coverage)},
                                                     {"pad_id", "0"},
                                                     {"bos_id", "1"},
                                                     {"eos_id", "2"},
                                                     {"unk_id", "3"},
                                                     {"num_threads", "1"},
                                                     {"max_sentence_length", "1048576"},
                                                     {"minloglevel", "2"}},
        &sentences, &bytes);
    if (!status.ok())
      throw ConfigError("sentencepiece: no vocabulary of at most " + std::to_string(options.vocabulary) +
                        " pieces can be trained on " + std::to_string(texts.size()) +
                        " texts; give more texts, or another size (" + std::string(status.message()) + ")");
    return SentencePiece(std::move(bytes), "the trained model");
  }
  /// Loads a model file, as `spm_train` writes it.   @throws DataError if it cannot be read or is no model
  [[nodiscard]] static SentencePiece load(std::string const& path) {
    constexpr std::uint64_t most = std::uint64_t{1} << 28;  // models have some megabytes
    auto const file = open_regular_file(path, "cannot be read as a sentencepiece model");
    if (file.size() == 0 || file.size() > most)
      throw DataError(path + ": cannot be read as a sentencepiece model; name a .model file");
    std::string bytes(static_cast<std::size_t>(file.size()), '\0');
    bytes.resize(read_at(file.file.get(), bytes.data(), bytes.size(), 0, path));
    return SentencePiece(std::move(bytes), path);
  }
  /// Loads a model from a string of `to_text`, for example from a checkpoint's metadata.
  /// @throws DataError for any other string
  [[nodiscard]] static SentencePiece from_text(std::string_view text) {
    return SentencePiece(from_base64(text), "the saved model");
  }

  /// Returns the model as an ASCII string that can be saved with parameters.
  [[nodiscard]] std::string to_text() const { return to_base64(model_->bytes); }
  /// Returns the bytes of the model file.
  [[nodiscard]] std::string const& bytes() const noexcept { return model_->bytes; }

  /// Returns the number of pieces, which is the number of rows of a model's embedding.
  [[nodiscard]] Index size() const { return processor().GetPieceSize(); }
  /// Returns the id of a decoder's first input: the begin piece, else padding, as in T5, else the end piece.
  [[nodiscard]] std::int32_t begin() const {
    return processor().bos_id() >= 0 ? processor().bos_id() : processor().pad_id() >= 0 ? processor().pad_id() : end();
  }
  /// Returns the id of the end piece.
  [[nodiscard]] std::int32_t end() const { return processor().eos_id(); }
  /// Returns the id of strings that no piece covers.
  [[nodiscard]] std::int32_t unknown() const { return processor().unk_id(); }

  /// Returns the ids of a string's pieces, without begin and end.   @throws DataError if the string cannot be encoded
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<int> ids;
    auto const status = processor().Encode(text, &ids);
    if (!status.ok()) throw DataError("sentencepiece: a text cannot be encoded: " + std::string(status.message()));
    return {ids.begin(), ids.end()};
  }
  /// Returns the string of pieces, without begin, end and padding.   @throws DataError for an id that the model does
  /// not have
  [[nodiscard]] std::string decode(std::span<std::int32_t const> ids) const {
    for (auto const id : ids)
      if (id < 0 || id >= size())
        throw DataError("sentencepiece: id " + std::to_string(id) + " is not one of the model's " +
                        std::to_string(size()) + " pieces");
    std::string text;
    auto const status = processor().Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) throw DataError("sentencepiece: pieces cannot be decoded: " + std::string(status.message()));
    return text;
  }

  /// Returns whether the bytes of both models are equal.
  friend bool operator==(SentencePiece const& a, SentencePiece const& b) { return a.bytes() == b.bytes(); }

 private:
  struct Model {
    std::string bytes;
    ::sentencepiece::SentencePieceProcessor processor;
  };
  /// Passes the texts to the trainer.
  class Sentences : public ::sentencepiece::SentenceIterator {
   public:
    explicit Sentences(std::span<std::string const> texts) : texts_(texts) {}
    [[nodiscard]] bool done() const override { return texts_.empty(); }
    void Next() override { texts_ = texts_.subspan(1); }
    [[nodiscard]] std::string const& value() const override { return texts_.front(); }
    [[nodiscard]] ::sentencepiece::util::Status status() const override { return {}; }

   private:
    std::span<std::string const> texts_;
  };

  SentencePiece(std::string bytes, std::string const& name) {
    auto model = std::make_shared<Model>();
    auto const status = model->processor.LoadFromSerializedProto(bytes);
    if (!status.ok())
      throw DataError(name + ": is no sentencepiece model; name a .model file (" + std::string(status.message()) + ")");
    model->bytes = std::move(bytes);
    model_ = std::move(model);
    if (end() < 0)
      throw DataError(name + ": the sentencepiece model has no end piece; train it with --eos_id at least 0");
  }
  [[nodiscard]] ::sentencepiece::SentencePieceProcessor const& processor() const noexcept { return model_->processor; }

  std::shared_ptr<Model const> model_;
};

#endif

}}}  // namespace lockstep::interop
