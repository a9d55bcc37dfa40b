// SPDX-License-Identifier: Apache-2.0
// Trains a transformer to classify text: news by topic, reviews by sentiment, files by pattern or, without --data,
// source files of this machine by their origin.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/app/cache_options.hpp>
#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/csv_first_row.hpp>
#include <lockstep/data/source/labelled_files_dataset.hpp>
#include <lockstep/data/text/token_cache.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>
#include <lockstep/lockstep.hpp>

#include "transformer_flags.hpp"

using namespace lockstep;

namespace {

// ---- Your own types: flags, sample, model.

enum class LengthBuckets { automatic, on, off };

struct Options : app::Options {
  nn::TransformerEncoder::Options sizes{.layers = 2, .width = 128, .heads = 4, .feed_forward = 256, .dropout = 0.1};
  Index max_length = 128, vocabulary = 20000;
  app::Precision precision = app::Precision::fp32;
  LengthBuckets length_buckets = LengthBuckets::automatic;
  std::string predictions, cache;

  void flags(app::Command& command) {
    transformer_flags::add(command, sizes);
    command.add("--max-length", max_length, 1, 8192, "Maximum number of words per text; longer texts are truncated");
    command.add("--vocabulary", vocabulary, 3, 10000000, "Maximum number of words in the vocabulary");
    command.add(
        "--length-buckets", length_buckets,
        {{"auto", LengthBuckets::automatic}, {"on", LengthBuckets::on}, {"off", LengthBuckets::off}},
        "Pad batches to few lengths, so that a GPU replays their passes as CUDA graphs; auto: on for GPUs. Changes "
        "the last bits of results");
    command.add("--predictions", predictions,
                "CSV file for the predictions of the evaluation texts, written at the end");
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

// ---- Sources of texts.

struct News {  // AG News: "3","Title","Description"
  int label;
  std::string title, description;
};
struct Review {  // IMDB: review,sentiment
  std::string review, sentiment;
};

struct Texts {
  data::LabelledTexts training, evaluation;
  std::vector<std::string> classes;
};

/// Splits text into words without punctuation, which doubles the length of source files and carries little information.
struct Words {
  void operator()(std::string_view text, auto&& each) const {
    data::WordTokenizer{}(text, [&](std::string_view token) {
      if (token.size() > 1 || static_cast<unsigned char>(token[0]) >= '0') each(token);
    });
  }
};

data::LabelledTexts read_news(std::string const& path, data::CsvOptions csv) {
  csv.header = data::CsvHeader::none;
  data::CsvDataset<News> const file(path, csv);
  return {file.size(), [file](Index i) -> data::LabelledText {
            auto const row = file.get(i);
            if (row.label < 1 || row.label > 4)
              file.refuse(i, "label " + std::to_string(row.label) + ": must be from 1 to 4");
            return {row.title + " " + row.description, row.label - 1};
          }};
}

data::LabelledTexts read_reviews(std::string const& path, data::CsvOptions csv) {
  csv.header = data::CsvHeader::first_line;
  data::CsvDataset<Review> const file(path, csv);
  return {file.size(), [file](Index i) -> data::LabelledText {
            auto const row = file.get(i);
            if (row.sentiment != "positive" && row.sentiment != "negative")
              file.refuse(i, "sentiment \"" + row.sentiment + "\": must be positive or negative");
            return {row.review, row.sentiment == "positive"};
          }};
}

/// Returns all of a dataset; sets a seeded tenth aside for evaluation if `hold_out` is true.
Texts part(data::Dataset auto const& dataset, std::vector<std::string> classes, bool hold_out, std::uint64_t seed) {
  if (!hold_out) return {data::LabelledTexts(dataset), {}, std::move(classes)};
  auto const parts = data::hold_out(dataset, 0.1, seed);
  return {data::LabelledTexts(parts.training), data::LabelledTexts(parts.evaluation), std::move(classes)};
}

constexpr std::string_view by_pattern = "files:";

Texts read(std::string const& source, data::LabelledFilesOptions const& sizes, data::CsvOptions const& csv,
           bool hold_out, std::uint64_t seed) {
  if (source.starts_with(by_pattern)) {
    data::LabelledFilesDataset const dataset(source.substr(by_pattern.size()), sizes);
    return part(dataset, dataset.classes(), hold_out, seed);
  }
  bool const reviews = data::csv_first_row(source) == std::vector<std::string>{"review", "sentiment"};
  std::vector<std::string> const sentiments{"negative", "positive"}, topics{"World", "Sports", "Business", "Sci/Tech"};
  return part(reviews ? read_reviews(source, csv) : read_news(source, csv), reviews ? sentiments : topics, hold_out,
              seed);
}

/// Texts of a machine that builds C++; missing files are ignored.
constexpr char texts_of_this_machine[] =
    "files:linux_uapi=/usr/include/linux/**/*.h,linux_uapi=/usr/include/asm-generic/**/*.h,"
    "libstdcxx=/usr/include/c++/**,thrust_cub=/usr/include/thrust/**,thrust_cub=/usr/include/cub/**,"
    "cmake_modules=/usr/share/cmake-*/Modules/**/*.cmake,cmake_help=/usr/share/cmake-*/Help/**/*.rst,"
    "copyright=/usr/share/doc/*/copyright";

/// Returns the texts as tokens. The first call tokenizes them with all cores of the ranks; later calls open the cache.
data::TokenCache prepared(Options const& options, std::FILE* out, bool verifies) {
  bool const given = !options.data.empty();
  auto const source = given ? options.data : texts_of_this_machine;
  auto evaluation = options.eval_data;
  if (auto const path = std::filesystem::path(source); evaluation.empty() && path.filename() == "train.csv")
    if (auto const test = path.parent_path() / "test.csv"; std::filesystem::exists(test)) evaluation = test.string();
  data::LabelledFilesOptions sizes;  // all of the given data; a quickly learned part of this machine's texts
  if (!given) sizes = {.files_per_class = 100, .windows_per_file = 6, .unmatched = data::Unmatched::skip};

  Progress progress(out);
  auto const cache = app::cache_options(options, given ? options.cache : "none", verifies, progress);
  data::TextSources sources;
  for (auto const& each : {source, evaluation}) {
    if (cache.folder.empty() || each.empty()) continue;
    if (each.starts_with(by_pattern))
      sources.add_files(data::LabelledFilesDataset(each.substr(by_pattern.size()), sizes));
    else
      sources.add_file(each);
  }
  sources.add(evaluation.empty() ? "a tenth held out by seed " + std::to_string(options.seed) : "two sources");
  data::TokenRules const rules{"words without punctuation, cut between characters", options.vocabulary, 2,
                               options.max_length};
  return data::TokenCache::prepare(sources, rules, cache, Words{}, [&](auto const& build) {
    data::CsvOptions const csv{.max_held_bytes = 0, .threads = cache.threads, .progress = &progress};
    auto texts = read(source, sizes, csv, evaluation.empty(), options.seed);
    if (!evaluation.empty()) {
      auto other = read(evaluation, sizes, csv, false, options.seed);
      if (other.classes != texts.classes)
        throw ConfigError("--eval-data " + evaluation + ": has other classes than the training data");
      texts.evaluation = std::move(other.training);
    }
    build(texts.training, texts.evaluation, texts.classes);
  });
}

// ---- Functions for app::run: the first two before ranks start, the last one in each rank.

void check(Options const& options) {
  transformer_flags::check(options.sizes);
  app::check_samples(options, prepared(options, stdout, true).training_size());
  if (!options.predictions.empty())
    static_cast<void>(train::AtomicFile(options.predictions));  // checks that it can be written
}

void prepare(Options const& options) { static_cast<void>(prepared(options, nullptr, true)); }

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto* const out = training.is_main_rank() ? stdout : nullptr;
  auto const texts = prepared(options, out, false);
  if (out && texts.truncated() > 0)
    std::printf("note: %td of %td texts have more than %td words; the rest of them is not read (--max-length)\n",
                texts.truncated(), texts.training_size() + texts.evaluation_size(), options.max_length);
  auto const loader = [&](auto const& articles, auto sampler) {
    return data::DataLoader{articles, sampler, collate(options), training.loader_options()};
  };
  auto batches = loader(texts.training(&Article::tokens, &Article::label), data::ShuffledSampler{.seed = options.seed});
  auto evaluation = loader(texts.evaluation(&Article::tokens, &Article::label), data::SequentialSampler{});

  auto const names = texts.classes();
  std::string classes;
  for (auto const& name : names) classes += name + "\n";
  auto const predict = [&](auto& trainer) {
    if (options.predictions.empty()) return;
    auto const name = [&](Index label) { return names[static_cast<std::size_t>(label)]; };
    Progress progress(out);
    train::write_predictions(
        options.predictions, trainer, evaluation, {"text", "label", "predicted"},
        [&](auto const& logits, auto const& batch, Index k) {
          auto const* const first = &logits.value(k, 0);
          auto const predicted = std::max_element(first, first + logits.extent(1)) - first;
          return std::tuple{batch.positions()(k), name(batch[&Article::label].values(k)), name(predicted)};
        },
        progress.steps("predicting"));
  };
  training.fit(Classifier{options, texts.vocabulary().size(), std::ssize(names)},
               optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation, train::Accuracy{&Article::label}},
               {{"vocabulary", texts.vocabulary_text()}, {"classes", classes}}, predict);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank, prepare); }
