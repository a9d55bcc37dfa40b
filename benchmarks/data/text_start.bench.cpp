// SPDX-License-Identifier: Apache-2.0
// The text classifier's work before its first step, with all cores: indexes a CSV file of 300,000 rows (75 MB), counts
// words, encodes all texts and writes them for the ranks. Compared with Python's csv, re and Counter, with and without
// encoding. Also the time to open prepared texts.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/text/token_cache.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>

#include <python_peer.hpp>
#include <sized.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index rows_of_file = sized(300000, 3000);

struct News {
  int label;
  std::string title, description;
};

/// Rows of 40 words, with the word frequencies of a natural language.
class NewsFile {
 public:
  NewsFile() {
    std::string row;
    std::ofstream file(path(), std::ios::binary);
    for (std::uint64_t i = 0; i < rows_of_file; ++i) {
      row = "\"" + std::to_string(1 + i % 4) + "\",\"";
      for (std::uint64_t k = 0; k < 40; ++k) {
        auto const part = static_cast<double>(mix(i, k) >> 11) * 0x1p-53;
        auto const rank = static_cast<std::uint64_t>(std::exp(part * std::log(40000.0)));
        for (auto left = mix(rank); left > mix(rank) % 7 + 1 && left > 0; left /= 300000)
          row += static_cast<char>((k == 0 ? 'A' : 'a') + left % 26);
        row += static_cast<char>('a' + rank % 26);
        row += k == 7 ? "\",\"" : k == 39 ? ".\"\n" : " ";
      }
      file << row;
    }
  }
  ~NewsFile() { std::filesystem::remove_all(folder_); }
  NewsFile(NewsFile const&) = delete;
  NewsFile& operator=(NewsFile const&) = delete;
  [[nodiscard]] std::string path() const { return folder_ + "/news.csv"; }
  [[nodiscard]] std::string cache() const { return folder_ + "/cache"; }

 private:
  static std::string new_folder() {
    auto name = (std::filesystem::temp_directory_path() / "lockstep-bench-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::exit(1);
    return name;
  }
  std::string folder_ = new_folder();
};

void prepare(NewsFile const& file) {
  data::TextSources sources;
  sources.add_file(file.path());
  auto const cache = data::TokenCache::prepare(
      sources, {.tokenizer = "words"}, {.folder = file.cache(), .threads = processors()}, data::WordTokenizer{},
      [&](auto const& build) {
        data::CsvDataset<News> const rows(
            file.path(), {.header = data::CsvHeader::none, .max_held_bytes = 0, .threads = processors()});
        build(data::LabelledTexts(rows.size(),
                                  [rows](Index i) -> data::LabelledText {
                                    auto const row = rows.get(i);
                                    return {row.title + " " + row.description, row.label};
                                  }),
              data::LabelledTexts(), {"a", "b", "c", "d"});
      });
  if (cache.training_size() != rows_of_file) std::exit(1);
}

}  // namespace

void register_benchmarks() {
  Shared const file([] { return NewsFile(); });
  auto const add_texts = [&](std::string const& name, auto before) {
    add(name,
        [=](benchmark::State& state) {
          prepare(*file);
          for (auto _ : state) {
            before();
            prepare(*file);
          }
          state.SetItemsProcessed(state.iterations() * rows_of_file);
        })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  auto const forget = [file] { std::filesystem::remove_all(file->cache()); };
  add_texts("text_start/prepare/texts:300000", forget);
  // The second peer only counts words.
  for (auto const& [peer, flag] : {std::pair{"python", "encode"}, std::pair{"python_counts", ""}})
    add_peer("text_start/prepare/texts:300000", peer,
             python_peer("count_words.py", {}, "",
                         [file, flag = std::string(flag)] {
                           return std::vector<std::string>{file->path(), flag};
                         }))
        ->Unit(benchmark::kMillisecond);
  add_texts("text_start/open/texts:300000", [] {});
  add_texts("text_start/open/texts:300000/peer:prepare", forget);
}
