// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Synonyms of flags in other trainers, scripts and configuration files. To add one, add a word here, or to the
/// descriptor of an option that all trainers share, and to the tables in docs/reference/command-line.md. Names are
/// written with - and without leading dashes. A program's own flag of that name takes precedence.

/// Synonyms of a flag with equal values. The table has flags of programs.
struct OtherNames {
  std::string_view flag;
  std::string_view names;  ///< separated by spaces
};
inline constexpr OtherNames other_names[] = {
    {"--beam", "beam-size num-beams beam-width beams"},
    {"--class-weights", "class-weight class-weighting"},
    {"--d-model",
     "hidden-size embed-dim embedding-dim embedding-size emb-dim emb-size model-dim dim-model n-embd d-embed"},
    {"--dropout", "dropout-rate dropout-prob drop-rate hidden-dropout-prob"},
    {"--feed-forward",
     "dim-feedforward feedforward-dim feed-forward-dim feed-forward-size d-ff dff ff-dim ffn-dim ff-size "
     "ffn-hidden-size intermediate-size mlp-dim"},
    {"--frames", "num-frames n-frames clip-length frames-per-clip"},
    {"--label-smoothing", "label-smoothing-factor smoothing"},
    {"--max-length",
     "max-seq-len max-seq-length max-sequence-length max-len seq-len seq-length sequence-length block-size "
     "context-length max-position-embeddings"},
    {"--mode", "arch architecture model-type"},
    {"--num-heads", "n-heads nheads nhead n-head heads num-attention-heads attention-heads"},
    {"--num-layers",
     "n-layers nlayers n-layer layers num-encoder-layers n-encoder-layers encoder-layers num-hidden-layers depth"},
    {"--predictions", "predictions-file"},
    {"--sync-batch-norm", "sync-batchnorm sync-bn syncbn"},
    {"--tokenizer", "tokenizer-file tokenizer-path spm-model sentencepiece-model"},
    {"--vocabulary", "vocab-size vocabulary-size max-vocab-size max-vocab"},
};

/// Synonyms whose values differ from the flag's.
struct Translation {
  std::string_view names;
  std::string_view flag;
  /// "theirs=ours", separated by spaces. An empty right side leaves the flag unchanged. "bf16|fp16" is bf16, unless
  /// another name of the flag gives fp16. A final * passes on all other values.
  std::string_view values;
};
inline constexpr Translation translations[] = {
    {"mixed-precision amp use-amp autocast", "--precision",
     "true=bf16|fp16 false=fp32 no=fp32 fp16=fp16 bf16=bf16 fp32=fp32 float16=fp16 bfloat16=bf16"},
    {"fp16", "--precision", "true=fp16 false="},
    {"bf16", "--precision", "true=bf16 false="},
    {"amp-dtype dtype torch-dtype", "--precision",
     "fp32=fp32 bf16=bf16 fp16=fp16 float32=fp32 bfloat16=bf16 float16=fp16 float=fp32 half=fp16"},
    {"device accelerator", "--backend", "cpu=host gpu=cuda host=host cuda=cuda auto="},
    {"use-cuda use-gpu", "--backend", "true=cuda false=host"},
    {"no-cuda use-cpu", "--backend", "true=host false="},
    {"dist-backend ddp-backend distributed-backend", "--engine", "nccl=nccl gloo=process mpi=mpi"},
    {"weighted-loss use-class-weights", "--class-weights", "true=balanced false=none"},
    {"resume-from-checkpoint", "--resume", "true=auto false=never *"},
};

/// Constant value of a setting.
enum class Always {
  on,
  off,
  either,  ///< both values have an equal effect
  unused,  ///< all values have an equal effect
};
/// Settings that are constant. Their value is accepted with a note; the other value is rejected.
struct Constant {
  std::string_view names;
  Always is;
  std::string_view because;
};
inline constexpr Constant constants[] = {
    {"persistent-workers dataloader-persistent-workers", Always::on,
     "worker threads live as long as their loader, and a new epoch starts none"},
    {"pin-memory dataloader-pin-memory", Always::on, "batches for a GPU are assembled in pinned memory, and no others"},
    {"non-blocking", Always::on, "batches are copied to a GPU while it computes"},
    {"shuffle", Always::on, "each epoch has an order of its own, which follows from --seed"},
    {"drop-last dataloader-drop-last", Always::off,
     "a short last batch is weighted by its samples, so that none need be dropped"},
    {"use-distributed-sampler distributed-sampler", Always::on, "each sample is in the batch of one rank only"},
    {"gradient-as-bucket-view", Always::on, "gradients are summed where backward writes them"},
    {"find-unused-parameters ddp-find-unused-parameters", Always::either,
     "parameters without a gradient are found without a search, and named at the end"},
    {"cudnn-deterministic deterministic use-deterministic-algorithms", Always::on,
     "equal input gives equal bits, except with --timed-products"},
    {"per-device-eval-batch-size eval-batch-size val-batch-size test-batch-size", Always::unused,
     "an evaluation has batches of --batch-size and counts every sample once"},
    {"logging-steps log-interval log-every log-freq print-freq", Always::unused,
     "metrics.jsonl and the progress line have intervals of their own"},
    {"cudnn-benchmark", Always::off,
     "algorithms that are chosen by time change bits from run to run; --timed-products does so for matrix products"},
};

/// Settings that are never accepted, with the reason.
struct Refused {
  std::string_view names;
  std::string_view because;
};
inline constexpr Refused refused_names[] = {
    {"num-classes n-classes num-labels", "the number of classes follows from the data"},
    {"optimizer optim", "the optimizer is a type in the trainer's source, AdamW in the examples"},
    {"warmup-ratio", "--warmup-steps and --warmup-epochs say how long the learning rate rises"},
    {"early-stopping", "--patience says after how many evaluations without improvement a run ends"},
    {"gradient-checkpointing activation-checkpointing", "nn::Recompute in the model saves activations' memory"},
    {"compile torch-compile", "the compiler has compiled this program already"},
};

/// Calls f(word) with each word of a space-separated list until f returns true. Returns whether f returned true.
template <class Function>
constexpr bool any_word(std::string_view list, Function&& f) {
  for (std::size_t at = 0; at < list.size();) {
    auto const end = std::min(list.find(' ', at), list.size());
    if (f(list.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}
[[nodiscard]] constexpr bool has_word(std::string_view list, std::string_view word) {
  return any_word(list, [word](std::string_view each) { return each == word; });
}

/// Returns the row of a table that has a name, or a null pointer.
template <class Row, std::size_t rows>
[[nodiscard]] constexpr Row const* row_of(Row const (&table)[rows], std::string_view name) {
  for (auto const& row : table)
    if (has_word(row.names, name)) return &row;
  return nullptr;
}

/// Returns "true" or "false" for the spellings of Python, YAML and shells, and any other string unchanged.
[[nodiscard]] std::string parse_boolean(std::string const& text);

/// Meaning of a value for the flag of a translation: candidates in the flag's own words. The first one applies unless
/// another name of the flag gives another candidate. Without candidates the flag is unchanged.
struct Meaning {
  bool known = false;
  std::vector<std::string> values;
};
[[nodiscard]] Meaning translate(Translation const& row, std::string const& text);
/// Returns the values that a translation accepts, as "true, false, no or fp16".
[[nodiscard]] std::string words_of(Translation const& row);

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/synonyms.ipp>
#endif
