// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <lockstep/app/options.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/interop/sentencepiece.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/files/safetensors.hpp>

/// Selects the SentencePiece model of a run.
namespace pose_to_text {

using lockstep::interop::SentencePiece;

/// Returns the saved parameters that a run starts from, or an empty string.
inline std::string starting_point(lockstep::app::Options const& options) {
  using lockstep::app::Options;
  if (!options.init_from.empty()) return options.init_from;
  if (options.resume != Options::automatic) return options.resume == Options::never ? "" : options.resume;
  return options.save_dir.empty() ? "" : lockstep::train::newest_checkpoint(options.save_dir + "/checkpoints");
}

/// Trains a SentencePiece model on texts, or loads the one that an earlier call or another rank left in the cache
/// folder. Equal texts give bit-identical models, so all ranks have one vocabulary.
inline SentencePiece trained_tokenizer(std::vector<std::string> const& texts, lockstep::Index vocabulary) {
  namespace fs = std::filesystem;
  auto key = lockstep::mix(lockstep::mix("lockstep.pose_to_text.tokenizer"), static_cast<std::uint64_t>(vocabulary));
  for (auto const& text : texts) key = lockstep::mix(key, lockstep::mix(std::string_view(text)));
  auto const file = lockstep::app::cache_folder() / ("sentencepiece-" + lockstep::hexadecimal(key) + ".model");
  try {
    if (std::error_code error; fs::exists(file, error)) return SentencePiece::load(file.string());
  } catch (lockstep::DataError const&) {  // damaged, will be replaced
  }
  auto pieces = SentencePiece::train(texts, {.vocabulary = vocabulary});
  try {
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    lockstep::train::AtomicFile out(file.string());
    out.write(pieces.bytes());
    out.commit();
  } catch (lockstep::DataError const&) {  // the next call trains again
  }
  return pieces;
}

/// Returns the model saved with the parameters that a run starts from, else the model of `file`, else a trained one.
/// @param file  value of --tokenizer; may be empty
/// @throws ConfigError if the vocabulary of `file` differs from the saved one
inline SentencePiece choose_tokenizer(lockstep::app::Options const& options, std::string const& file,
                                      std::vector<std::string> const& texts, lockstep::Index vocabulary) {
  auto const start = starting_point(options);
  if (start.empty()) return file.empty() ? trained_tokenizer(texts, vocabulary) : SentencePiece::load(file);
  auto saved = SentencePiece::from_text(lockstep::train::load_text(start, "tokenizer"));
  if (!file.empty() && !(SentencePiece::load(file) == saved))
    throw lockstep::ConfigError("--tokenizer " + file + ": has another vocabulary (" +
                                std::to_string(SentencePiece::load(file).size()) + " pieces) than " + start + " (" +
                                std::to_string(saved.size()) +
                                "), whose parameters belong to its own; leave --tokenizer out");
  return saved;
}

}  // namespace pose_to_text
