// SPDX-License-Identifier: Apache-2.0
// Trains a transformer to classify text: tables with a text and a label, news by topic, reviews by sentiment, files by
// pattern or, without --data, source files of this machine by their origin.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/app/cache_options.hpp>
#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/labelled_files_dataset.hpp>
#include <lockstep/data/text/token_cache.hpp>
#include <lockstep/lockstep.hpp>

#include "class_predictions.hpp"
#include "text_classification/data.hpp"
#include "transformer_flags.hpp"

using namespace lockstep;
using text_classification::by_pattern, text_classification::texts_of_this_machine, text_classification::Words;

namespace {

// ---- Your own types: flags, sample, model.

enum class LengthBuckets { automatic, on, off };

struct Options : app::Options {
  static constexpr char about[] =
      "Trains a transformer to classify text.\n\n"
      "--data takes a table with a text and a label in each row (CSV or .tsv with a line of names, or .jsonl;\n"
      "--text-column, --label-column), the CSV files of AG News and IMDB, or files:NAME=PATTERN,NAME=PATTERN.\n"
      "To classify new texts: --evaluate --init-from CHECKPOINT --eval-data TABLE --predictions FILE.csv\n"
      "docs/explanation/stories/text-classification.md has examples.";
  nn::TransformerEncoder::Options sizes{.layers = 2, .width = 128, .heads = 4, .feed_forward = 256, .dropout = 0.1};
  Index max_length = 128, vocabulary = 20000;
  app::Precision precision = app::Precision::fp32;
  LengthBuckets length_buckets = LengthBuckets::automatic;
  std::string predictions, cache, encoding = "utf-8";
  text_classification::Columns columns;

  void flags(app::Command& command) {
    transformer_flags::add(command, sizes);
    command.add("--max-length", max_length, 1, 8192, "Maximum number of words per text; longer texts are truncated");
    command.add("--vocabulary", vocabulary, 3, 10000000, "Maximum number of words in the vocabulary");
    command.add(
        "--length-buckets", length_buckets,
        {{"auto", LengthBuckets::automatic}, {"on", LengthBuckets::on}, {"off", LengthBuckets::off}},
        "Pad batches to few lengths, so that a GPU replays their passes as CUDA graphs; auto: on for GPUs. Changes "
        "the last bits of results");
    class_predictions::add(command, predictions, "texts");
    command.add("--text-column", columns.text,
                "Column of the texts in a table: CSV or .tsv with a line of names, or .jsonl; default: text");
    command.add("--label-column", columns.label,
                "Column of the labels in a table, which become the classes; default: label");
    command.add("--encoding", encoding,
                "Encoding of CSV files: utf-8, bytes (not checked), or a name that `iconv -l` lists, such as latin-1, "
                "windows-1252 or utf-16");
    command.add("--cache", cache,
                "Folder for tokenized texts, which ranks of a host share; none: each rank keeps its own in memory; "
                "default: the user's cache folder for texts of 8 MiB or more, else none");
  }
};

data::PadCollate collate(Options const& options) {
  bool const buckets = options.length_buckets == LengthBuckets::on ||
                       (options.length_buckets == LengthBuckets::automatic && options.backend == app::Backend::cuda);
  return {.largest_bucket = buckets ? options.max_length : 0};
}

struct Article {
  std::vector<std::int32_t> tokens;
  int label;
};

class Classifier {
 public:
  Classifier(Options const& o, Index words, Index classes)
      : embedding_({.vocabulary = words, .length = o.max_length, .width = o.sizes.width, .dropout = o.sizes.dropout}),
        encoder_(o.sizes),
        head_(o.sizes.width, classes) {}

  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto x = encoder_.forward(context, embedding_.forward(context, batch[&Article::tokens], batch.positions()));
    return head_.forward(context, nn::mean_pool(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Article::label]);
  }

 private:
  nn::FusedEmbedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::Linear head_;
};

/// Whether the options evaluate saved parameters on --eval-data, by the vocabulary and the classes of the parameters.
bool only_evaluates(Options const& options) {
  return options.evaluate && options.data.empty() && !options.eval_data.empty();
}

std::vector<std::string> saved_classes(Options const& options) {
  std::vector<std::string> classes;
  std::istringstream lines(train::load_text(options.init_from, "classes"));
  for (std::string line; std::getline(lines, line);) classes.push_back(line);
  return classes;
}

/// Returns the evaluation data: --eval-data, or the file "test" next to a training file "train".
std::string evaluation_source(Options const& options, std::string const& training) {
  if (!options.eval_data.empty() || training.starts_with(by_pattern)) return options.eval_data;
  auto const path = std::filesystem::path(training);
  auto const test = path.parent_path() / ("test" + path.extension().string());
  return path.stem() == "train" && std::filesystem::exists(test) ? test.string() : "";
}

/// Returns the texts as tokens. The first call tokenizes them with all cores of the ranks; later calls open the cache.
/// @param stop ends a wait for another process that prepares them
data::TokenCache prepared(Options const& options, std::FILE* out, bool verifies, std::stop_token stop = {}) {
  bool const given = !options.data.empty(), evaluates = only_evaluates(options);
  std::string const source = evaluates ? "" : given ? options.data : texts_of_this_machine;
  auto const evaluation = evaluation_source(options, source);
  data::LabelledFilesOptions sizes;  // all of the given data; a quickly learned part of this machine's texts
  if (!given && !evaluates) sizes = {.files_per_class = 100, .windows_per_file = 6, .unmatched = data::Unmatched::skip};

  Progress progress(out);
  auto cache = app::cache_options(options, given || evaluates ? options.cache : "none", verifies, progress);
  cache.stop = std::move(stop);
  data::TextSources sources;
  for (auto const& each : {source, evaluation}) {
    if (cache.folder.empty() || each.empty()) continue;
    if (each.starts_with(by_pattern))
      sources.add_files(data::LabelledFilesDataset(each.substr(by_pattern.size()), sizes));
    else
      sources.add_file(each);
  }
  if (options.encoding != "utf-8") sources.add("encoding " + options.encoding);
  if (options.columns.given())
    sources.add("columns " + options.columns.text_name() + "\n" + options.columns.label_name());
  sources.add(evaluation.empty() ? "a tenth held out by seed " + std::to_string(options.seed) : "two sources");
  std::string const saved_words = evaluates ? train::load_text(options.init_from, "vocabulary") : "";
  if (evaluates) sources.add(saved_words);
  data::TokenRules const rules{"words without punctuation, cut between characters", options.vocabulary, 2,
                               options.max_length};
  return data::TokenCache::prepare(sources, rules, cache, Words{}, [&](auto const& build) {
    text_classification::ReadOptions reading{
        options.columns,
        sizes,
        {.max_held_bytes = 0, .encoding = options.encoding, .threads = cache.threads, .progress = &progress},
        options.seed};
    text_classification::Texts texts;
    if (evaluates) {
      texts.classes = saved_classes(options);
      reading.labels = text_classification::Labels::optional;
    } else {
      texts = text_classification::read(source, reading, evaluation.empty());
    }
    if (!evaluation.empty()) {
      auto other = text_classification::read(evaluation, reading, false, &texts.classes);
      if (other.classes != texts.classes)
        throw ConfigError("--eval-data " + evaluation + ": has other classes than the training data");
      texts.evaluation = std::move(other.training);
    }
    auto const words = data::Vocabulary::from_text(saved_words);
    build(texts.training, texts.evaluation, texts.classes, evaluates ? &words : nullptr);
  });
}

/// Whether the evaluation texts have labels, which a file for --evaluate may lack.
bool has_labels(data::TokenCache const& texts) {
  return texts.evaluation_size() == 0 || texts.evaluation(&Article::tokens, &Article::label).get(0).label >= 0;
}

/// Returns the files that a run with these options reads.
std::vector<std::string> files_of(Options const& options) {
  std::vector<std::string> files{options.init_from, options.resume};
  for (auto const& source : {options.data, evaluation_source(options, options.data)}) {
    files.push_back(source);
    if (!source.starts_with(by_pattern)) continue;
    data::LabelledFilesDataset const texts(source.substr(by_pattern.size()), {});
    for (Index i = 0; i < texts.groups(); ++i) files.push_back(texts.path(i));
  }
  return files;
}

// ---- Functions for app::run: the first two before ranks start, the last one in each rank.

/// Refuses saved parameters whose vocabulary differs from that of the data: their numbers would mean other words. With
/// --evaluate, refuses other classes, too.
void check_vocabulary(Options const& options, data::TokenCache const& texts) {
  if (options.init_from.empty() || only_evaluates(options)) return;
  std::string saved;
  try {
    saved = train::load_text(options.init_from, "vocabulary");
  } catch (DataError const&) {
    return;  // not saved by this program; loading the parameters explains what else is wrong
  }
  if (saved != texts.vocabulary_text())
    throw ConfigError(
        "--init-from " + options.init_from +
        ": has another vocabulary than the one of the training data, whose words have other numbers; give "
        "the --data, --vocabulary and --max-length of the run that saved it" +
        (options.evaluate ? ", or name other texts with --eval-data, and leave --data out" : ""));
  if (options.evaluate && saved_classes(options) != texts.classes())
    throw ConfigError("--init-from " + options.init_from +
                      ": has other classes than the training data; give the --data and the --label-column of the run "
                      "that saved it");
}

/// Returns the rows of the evaluation texts in --data, of which they are held out. Returns an empty vector if the
/// evaluation texts are a file of their own, or parts of files by pattern.
std::vector<Index> rows_held_out(Options const& options, data::TokenCache const& texts) {
  bool const is_table = !options.data.empty() && !options.data.starts_with(by_pattern);
  if (!is_table || !evaluation_source(options, options.data).empty()) return {};
  return text_classification::rows_held_out(texts.training_size() + texts.evaluation_size(), options.seed);
}

void check(Options const& options) {
  transformer_flags::check(options.sizes);
  auto const& file = only_evaluates(options) ? options.eval_data : options.data;
  if (options.encoding != "utf-8" && (file.empty() || file.starts_with(by_pattern)))
    throw ConfigError("--encoding " + options.encoding +
                      ": applies to CSV files, and text files by pattern are read as bytes; leave it out");
  if (options.columns.given() && (file.empty() || file.starts_with(by_pattern)))
    throw ConfigError("--text-column and --label-column apply to tables; leave them out, or name a table with --data");
  auto const texts = prepared(options, stdout, true);
  if (!only_evaluates(options)) app::check_samples(options, texts.training_size());
  if (!has_labels(texts) && options.predictions.empty())
    throw ConfigError("--eval-data " + options.eval_data + ": has no column \"" + options.columns.label_name() +
                      "\" to compare predictions with; name it with --label-column, or give --predictions FILE");
  check_vocabulary(options, texts);
  if (!options.predictions.empty())
    app::check_output_file("--predictions", options.predictions, files_of(options), options.save_dir);
}

void prepare(Options const& options) { static_cast<void>(prepared(options, nullptr, true)); }

/// Notes what probably is an error in the data.
void print_notes(data::TokenCache const& texts) {
  auto const all = texts.training_size() + texts.evaluation_size();
  if (texts.empty() > 0)
    std::printf("note: %td of %td texts are empty or have no words; each is read as one unknown word\n", texts.empty(),
                all);
  auto const names = texts.classes();
  auto const note = [&](char const* which, Index size, std::optional<std::int32_t> label, char const* consequence) {
    if (label && *label >= 0)
      std::printf("note: each of the %td %s texts has the class \"%s\", so that %s; check the labels\n", size, which,
                  names[static_cast<std::size_t>(*label)].c_str(), consequence);
  };
  note("training", texts.training_size(), texts.only_training_label(), "a model learns to predict nothing else");
  note("evaluation", texts.evaluation_size(), texts.only_evaluation_label(), "the accuracy says little");
  std::map<std::string, std::string> without_blanks;
  for (auto const& name : names) {
    auto const first = std::min(name.find_first_not_of(" \t"), name.size());
    auto const [known, is_new] =
        without_blanks.emplace(name.substr(first, name.find_last_not_of(" \t") + 1 - first), name);
    if (!is_new)
      std::printf("note: the classes \"%s\" and \"%s\" differ in blanks only; check the labels\n",
                  known->second.c_str(), name.c_str());
  }
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto* const out = training.is_main_rank() ? stdout : nullptr;
  auto const texts = prepared(options, out, false, training.stop_token());
  if (out && texts.truncated() > 0)
    std::printf("note: %td of %td texts have more than %td words; the rest of them is not read (--max-length)\n",
                texts.truncated(), texts.training_size() + texts.evaluation_size(), options.max_length);
  if (out) print_notes(texts);
  auto const loader = [&](auto const& articles, auto sampler) {
    return data::DataLoader{articles, sampler, collate(options), training.loader_options()};
  };
  auto const known = texts.evaluation(&Article::tokens, &Article::label);
  auto batches = loader(only_evaluates(options) ? known : texts.training(&Article::tokens, &Article::label),
                        data::ShuffledSampler{.seed = options.seed});
  auto evaluation = loader(known, data::SequentialSampler{});
  if (!has_labels(texts)) training.skip_evaluation();

  auto const names = texts.classes();
  std::string classes;
  for (auto const& name : names) classes += name + "\n";
  auto const predict = [&](auto& trainer) {
    if (options.predictions.empty()) return;
    auto const rows = rows_held_out(options, texts);
    class_predictions::write(training, trainer, evaluation, &Article::label, names, "text",
                             [&](Index i) { return rows.empty() ? i : rows[static_cast<std::size_t>(i)]; });
  };
  training.fit(Classifier{options, texts.vocabulary().size(), std::ssize(names)},
               optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation, train::Accuracy{&Article::label}},
               {{"vocabulary", texts.vocabulary_text()}, {"classes", classes}}, predict);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank, prepare); }
