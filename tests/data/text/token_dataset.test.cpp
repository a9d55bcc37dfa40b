// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/token_dataset.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/text/token_cache.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>

#include "sanitized.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;

namespace {

struct Article {
  std::vector<std::int32_t> tokens;
  int label;
};
struct Turned {
  std::int64_t label;
  std::vector<std::int32_t> tokens;
};

data::LabelledTexts texts(Index size) {
  return {size, [](Index i) -> data::LabelledText {
            std::string text;
            for (Index k = 0; k <= i % 40; ++k) text += "word" + std::to_string((i * 7 + k) % 300) + " ";
            return {text, static_cast<std::int32_t>(i % 3)};
          }};
}
data::TokenCache cache_of(std::string const& folder, Index size) {
  data::TextSources sources;
  sources.add(std::to_string(size));
  return data::TokenCache::prepare(sources, {"words", 1000, 1, 30}, {.folder = folder}, data::WordTokenizer{},
                                   [&](auto const& build) {
                                     build(texts(size), texts(2), {"a", "b", "c"});
                                   });
}
/// Returns this process's own memory in KiB.
long anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  return -1;
}

}  // namespace

TEST_CASE("a loader makes equal batches of the file and of samples in memory, and resumes equally") {
  lockstep_test::TemporaryFolder const folder;
  auto const cache = cache_of(folder / "cache", 501);
  auto const stored = cache.training(&Article::tokens, &Article::label);
  static_assert(data::Dataset<decltype(stored)> && data::HasFingerprint<std::remove_const_t<decltype(stored)>>);
  data::InMemoryDataset<Article> const held(stored);
  CHECK(held.fingerprint() == stored.fingerprint());
  data::DataLoaderOptions const options{.batch_size = 7, .workers = 2, .seed = 3};
  data::DataLoader a{stored, data::ShuffledSampler{.seed = 3}, data::PadCollate{}, options};
  data::DataLoader b{held, data::ShuffledSampler{.seed = 3}, data::PadCollate{}, options};
  a.start({}, 0, 0, 1);
  b.start({}, 0, 0, 1);
  for (Index step = 0; step < a.steps(); ++step) {
    auto const first = a.next();
    auto const second = b.next();
    auto const& x = first.batches()[0];
    auto const& y = second.batches()[0];
    REQUIRE(x.rows() == y.rows());
    auto const p = x[&Article::tokens].values, q = y[&Article::tokens].values;
    REQUIRE(p.extent == q.extent);
    CHECK(std::equal(p.data, p.data + p.extent[0] * p.extent[1], q.data));
    for (Index row = 0; row < x.rows(); ++row) CHECK(x[&Article::label].values(row) == y[&Article::label].values(row));
  }
  auto const turned = cache.training(&Turned::tokens, &Turned::label);
  CHECK(turned.get(5).tokens == stored.get(5).tokens);
  CHECK(turned.get(5).label == 2);
}

TEST_CASE("a process's own memory does not grow with the texts") {
  lockstep_test::TemporaryFolder const folder;
  constexpr Index texts_here = 60000;
  static_cast<void>(cache_of(folder / "cache", texts_here));  // and the memory that the allocator keeps
  auto const before = anonymous_kib();
  REQUIRE(before > 0);
  auto const cache = cache_of(folder / "cache", texts_here);
  auto const dataset = cache.training(&Article::tokens, &Article::label);
  Index tokens = 0;
  for (Index i = 0; i < dataset.size(); ++i) tokens += std::ssize(dataset.get(i).tokens);
  CHECK(tokens * 4 > (Index{4} << 20));
#if !LOCKSTEP_SANITIZED  // sanitizers use memory per page
  CHECK(anonymous_kib() - before < 2048);
#endif
}

TEST_CASE("a file truncated while it is in use causes an error that names it") {
  lockstep_test::TemporaryFolder const folder;
  auto const cache = cache_of(folder / "cache", 100);
  auto const dataset = cache.training(&Article::tokens, &Article::label);
  CHECK(dataset.get(99).tokens.size() == 20);
  for (auto const& entry : std::filesystem::directory_iterator(folder / "cache"))
    std::filesystem::resize_file(entry.path(), 4100);
  CHECK_THROWS_WITH_AS(dataset.get(99), doctest::Contains(".tokens: ends at byte 4100"), DataError);
}
