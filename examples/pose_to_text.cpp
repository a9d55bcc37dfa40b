// SPDX-License-Identifier: Apache-2.0
// Trains an encoder-decoder to translate sign language into text. Reads poses from .npy files, encodes text with
// sentencepiece, decodes by beam search, and scores with BLEU and chrF.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/epoch_plan.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/app/save_dir.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/data/sampler/length_bucketed_sampler.hpp>
#include <lockstep/data/sampler/padding_share.hpp>
#include <lockstep/lockstep.hpp>
#include <lockstep/train/files/csv_file.hpp>
#include <lockstep/train/metrics/bleu.hpp>
#include <lockstep/train/metrics/chrf.hpp>
#include <lockstep/train/prediction/generate.hpp>

#include "pose_to_text/data.hpp"
#include "pose_to_text/model.hpp"
#include "pose_to_text/synthetic.hpp"
#include "pose_to_text/tokenizer.hpp"
#include "transformer_flags.hpp"

using namespace lockstep;
using pose_to_text::Clip;
using pose_to_text::Part;
using pose_to_text::PoseDataset;

namespace {

struct Options : app::Options {
  static constexpr char about[] =
      "Trains an encoder-decoder to translate sign language, as poses of each frame, into text.\n\n"
      "--data takes a folder with index.tsv or index.csv (columns file, text and optionally split) and .npy files,\n"
      "[frames, joints, 3]. tools/poses_to_npy.py makes one from pickled poses.\n"
      "docs/explanation/stories/pose-to-text.md has examples.";
  pose_to_text::Sizes sizes{
      .vocabulary = 2000, .width = 128, .layers = 2, .heads = 4, .feed_forward = 256, .label_smoothing = 0.1};
  Index samples = 2000, longest = 64;
  app::Precision precision = app::Precision::fp32;
  std::string tokenizer, predictions, encoding = "utf-8";
  Part evaluated = Part::dev;
  Index beam = 4;
  double length_penalty = 1;

  Options() {
    batch_size = 16;
    epochs = 8;
  }
  void flags(app::Command& command) {
    transformer_flags::add(command, sizes);
    command.add("--vocabulary", sizes.vocabulary, 4, 1000000,
                "Maximum vocabulary size of a tokenizer that is trained on the training texts");
    command.add("--tokenizer", tokenizer,
                "SentencePiece model file; default: saved with --init-from, else trained on the training texts");
    command.add("--samples", samples, 1, 10000000,
                "Synthetic samples for training without --data; a tenth as many for evaluation");
    command.add("--max-length", longest, 1, 8192,
                "Maximum number of pieces (tokens) per text; longer texts are truncated, shorter ones not padded");
    command.add("--label-smoothing", sizes.label_smoothing, 0, 0.9,
                "Label smoothing: probability spread over all pieces");
    command.add("--eval-split", evaluated, {{"dev", Part::dev}, {"test", Part::test}}, "Split to evaluate on");
    command.add("--beam", beam, 0, 1000, "Hypotheses of the beam search at the end; 1: greedy, 0: no decoding");
    command.add("--length-penalty", length_penalty, 0, 10, "Exponent of the length in a hypothesis' score");
    command.add("--encoding", encoding,
                "Encoding of index.tsv or index.csv: utf-8, bytes (not checked), or a name that `iconv -l` lists, such "
                "as latin-1, windows-1252 or utf-16");
    command.add("--predictions", predictions, "CSV file for the decoded texts: file, reference, hypothesis");
  }
};

struct Input {
  pose_to_text::Parts parts;
  pose_to_text::SentencePiece pieces;

  /// Returns the samples of one part.
  [[nodiscard]] auto dataset(bool training, Index longest, pose_to_text::Reads reads) const {
    return data::Subset{PoseDataset{training ? parts.training_folder : parts.evaluation_folder, pieces, longest, reads},
                        training ? parts.training : parts.evaluation};
  }
};

Input load(Options const& options, std::FILE* out) {
  Index const evaluation = (options.samples + 9) / 10;
  pose_to_text::synthetic::Recipe const recipe{
      options.samples, evaluation, std::min(options.longest, pose_to_text::synthetic::places), options.seed};
  auto const folder = app::data_folder(options, recipe.text(),
                                       [&](auto const& empty) { pose_to_text::synthetic::write(empty, recipe); });
  auto parts = pose_to_text::read_parts(folder, options.eval_data, options.encoding, options.evaluated,
                                        options.on_failure, options.seed, std::max(options.cores, 1), out);
  std::vector<std::string> texts;
  for (Index const i : parts.training) texts.push_back(parts.training_folder->entry(i).text);
  auto pieces = pose_to_text::choose_tokenizer(options, options.tokenizer, texts, options.sizes.vocabulary);
  return {std::move(parts), std::move(pieces)};
}

/// Refuses to replace a file that the run reads.
void check_predictions(Options const& options, pose_to_text::Parts const& parts) {
  std::vector<std::string> inputs{options.tokenizer, options.init_from};
  for (auto const* const folder : {parts.training_folder.get(), parts.evaluation_folder.get()}) {
    inputs.push_back(folder->index());
    for (Index i = 0; i < std::ssize(folder->entries()); ++i) inputs.push_back(folder->path(i));
  }
  app::check_output_file("--predictions", options.predictions, inputs, options.save_dir);
}

void check(Options const& options) {
  transformer_flags::check(options.sizes);
  if (!options.predictions.empty()) {
    if (options.beam == 0)
      throw ConfigError("--predictions with --beam 0: nothing is decoded; give a beam of 1 or more");
    app::check_output_file("--predictions", options.predictions, {}, options.save_dir);
  }
  auto const parts = load(options, stdout).parts;
  if (!options.predictions.empty()) check_predictions(options, parts);
  app::check_samples(options, std::ssize(parts.training));
  if (options.on_failure != data::OnFailure::raise) return;
  parts.training_folder->examine(std::max(options.cores, 1), stdout);
  if (parts.evaluation_folder != parts.training_folder)
    parts.evaluation_folder->examine(std::max(options.cores, 1), stdout);
}

/// Prints the training data and its division into steps.
void announce(Options const& options, Input const& input, data::LengthBucketedSampler const& buckets) {
  auto const training = input.dataset(true, options.longest, pose_to_text::Reads::text);
  auto const samples = training.size();
  auto const& folder = *input.parts.training_folder;
  Index cut = 0;
  PoseDataset const whole{input.parts.training_folder, input.pieces, options.longest, pose_to_text::Reads::text};
  for (Index const i : input.parts.training) cut += whole.is_cut(i) ? 1 : 0;
  std::printf("data: %td samples for training, %zu for evaluation, poses of %td joints, %td pieces\n", samples,
              input.parts.evaluation.size(), folder.joints(), input.pieces.size());
  if (cut > 0)
    std::printf("note: %td training texts have more than --max-length %td pieces and are cut\n", cut, options.longest);
  if (folder.bad() > 0)
    std::printf("note: %td files cannot be used (--on-failure), the first because %s\n", folder.bad(),
                folder.first_problem().c_str());
  auto const shards = static_cast<int>(options.shards());
  auto const share = [&](auto const& sampler) {
    return 100 * data::padding_share(sampler.over(training), buckets.lengths, options.shard_size(), shards);
  };
  std::printf(
      "padding: %.1f %% of frames with length buckets, %.1f %% without, if batches were padded; they are ragged\n",
      share(buckets), share(data::ShuffledSampler{.seed = options.seed}));
  auto const plan = app::EpochPlan::of(options, samples);
  std::printf("epoch: %td micro-steps, %td optimizer steps, effective batch %td\n", plan.micro_steps,
              plan.optimizer_steps, plan.effective_batch);
  std::fflush(stdout);
}

/// Decodes each sample of the evaluation once over all ranks. The first rank scores and writes the results, one by one.
void decode(app::Training<Options>& training, Input const& input, pose_to_text::Sizes const& sizes, auto& trainer) {
  auto const& options = training.options();
  if (options.beam == 0) return;
  data::DataLoader prompts{input.dataset(false, options.longest, pose_to_text::Reads::begin), data::SequentialSampler{},
                           data::RaggedCollate{}, training.loader_options()};
  train::Predictor<pose_to_text::PoseToText> predictor(pose_to_text::PoseToText{sizes}, trainer.values(), {},
                                                       options.threads * options.devices);
  Progress progress(trainer.rank() == 0 ? stdout : nullptr);
  auto const next = [](std::vector<std::int32_t> const& tokens) {
    std::vector<Clip> rows;
    rows.reserve(tokens.size());
    for (auto const token : tokens) rows.push_back({{}, {}, {token}, {token}});
    return data::Collated{data::RaggedCollate{}, rows};
  };
  std::optional<train::CsvFile> table;
  if (trainer.rank() == 0 && !options.predictions.empty())
    table.emplace(options.predictions, std::vector<std::string>{"file", "reference", "hypothesis"});
  train::Bleu bleu;
  train::Chrf chrf;
  Index texts = 0;
  auto const receive = [&](train::Generated const& each) {
    auto const& entry =
        input.parts.evaluation_folder->entry(input.parts.evaluation[static_cast<std::size_t>(each.sample)]);
    auto const written = input.pieces.decode(each.hypothesis.tokens);
    ++texts;
    bleu.add(written, entry.text);
    chrf.add(written, entry.text);
    if (table) table->add({entry.file, entry.text, written});
  };
  train::generate_each(trainer, predictor, prompts,
                       {.beam = options.beam,
                        .length_penalty = options.length_penalty,
                        .max_length = options.longest + 1,
                        .end = input.pieces.end()},
                       next, receive, progress.steps("decoding"));
  progress.end();
  if (trainer.rank() != 0) return;
  std::printf("decoded %td texts with a beam of %td: BLEU %.2f (%s), chrF2 %.2f (%s)\n", texts, options.beam,
              bleu.value(), train::Bleu::signature, chrf.value(), train::Chrf::signature);
  std::fflush(stdout);
  training.final_metric("bleu", bleu.value());
  training.final_metric("chrf", chrf.value());
  if (table) table->commit();
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto const input = load(options, nullptr);
  auto sizes = options.sizes;
  sizes.coordinates = input.parts.training_folder->joints() * pose_to_text::channels;
  sizes.vocabulary = input.pieces.size();
  auto const known = input.dataset(true, options.longest, pose_to_text::Reads::text);
  data::LengthBucketedSampler buckets{.lengths = {}, .global_batch = options.global_batch(), .seed = options.seed};
  for (Index const i : input.parts.training) buckets.lengths.push_back(input.parts.training_folder->entry(i).frames);
  if (training.is_main_rank()) announce(options, input, buckets);

  data::DataLoader batches{known, buckets, data::RaggedCollate{}, training.loader_options()};
  data::DataLoader evaluation{input.dataset(false, options.longest, pose_to_text::Reads::text),
                              data::SequentialSampler{}, data::RaggedCollate{}, training.loader_options()};
  training.fit(pose_to_text::PoseToText{sizes}, optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation, train::Accuracy{&Clip::next}}, {{"tokenizer", input.pieces.to_text()}},
               [&](auto& trainer) { decode(training, input, sizes, trainer); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
