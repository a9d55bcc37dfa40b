// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/token_cache.hpp>

#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/text/token_counts.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>

#include "sanitized.hpp"
#include "temporary_folder.hpp"
#include "unprivileged.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

struct Article {
  std::vector<std::int32_t> tokens;
  int label;
};

/// Texts of 0 to 30 words, some of them rare; text 11 is blank.
data::LabelledTexts texts(Index size, std::uint64_t seed) {
  return {size, [seed](Index i) -> data::LabelledText {
            auto const draw = mix(seed, static_cast<std::uint64_t>(i));
            std::string text;
            for (std::uint64_t k = 0; k < draw % 31; ++k)
              text += "Word" + std::to_string(mix(draw, k) % (1 + mix(k, draw) % 3000)) + (k % 5 == 0 ? ", " : " ");
            return {i == 11 ? "  " : text, static_cast<std::int32_t>(draw % 4)};
          }};
}
data::TokenRules const rules{"words", 500, 2, 20};

/// Prepares texts of a source file; `reads` counts how often they were read.
struct Source {
  TemporaryFolder folder;
  std::string cache = folder / "cache";
  Index training = 1100, evaluation = 300;
  mutable std::atomic<int> reads = 0;

  Source() { lockstep_test::write_file(folder / "source", "1"); }
  data::TokenCache prepare(data::TokenCacheOptions options = {}, data::TokenRules const& with = rules) const {
    data::TextSources sources;
    sources.add_file(folder / "source");
    if (options.folder.empty()) options.folder = cache;
    if (options.folder == "none") options.folder.clear();
    return data::TokenCache::prepare(sources, with, options, data::WordTokenizer{}, [&](auto const& build) {
      ++reads;
      build(texts(training, 1), texts(evaluation, 2), {"a", "b", "c", "d"});
    });
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (auto const& entry : fs::directory_iterator(cache)) out.push_back(entry.path().string());
    std::ranges::sort(out);
    return out;
  }
};

void check_equal(auto const& dataset, data::LabelledTexts const& expected, data::Vocabulary const& vocabulary,
                 Index limit) {
  REQUIRE(dataset.size() == expected.size());
  std::vector<Article> samples;
  for (Index i = 0; i < expected.size(); ++i) {
    auto const text = expected.get(i);
    samples.push_back({vocabulary.encode(text.text, data::WordTokenizer{}, limit), text.label});
    auto const found = dataset.get(i);
    REQUIRE(found.tokens == samples.back().tokens);
    REQUIRE(found.label == text.label);
  }
  CHECK(dataset.fingerprint() == data::InMemoryDataset(samples).fingerprint());
}

}  // namespace

TEST_CASE("vocabulary, tokens, labels and fingerprints equal those of one thread that encodes in memory") {
  for (Index const size : {0, 1, 1024, 1025, 2500})
    for (int const threads : {1, 3}) {
      CAPTURE(size);
      CAPTURE(threads);
      Source source;
      source.training = size;
      source.evaluation = size / 3;
      data::TokenCounts counts;
      for (Index i = 0; i < size; ++i) counts.add(texts(size, 1).get(i).text, data::WordTokenizer{});
      auto const expected = counts.vocabulary(rules.vocabulary, rules.min_count);
      for (char const* folder : {"", "none"}) {
        auto const cache = source.prepare({.folder = folder, .threads = threads});
        CHECK(cache.vocabulary() == expected);
        CHECK(cache.vocabulary_text() == expected.to_text());
        CHECK(cache.classes() == std::vector<std::string>{"a", "b", "c", "d"});
        CHECK(cache.training_size() == size);
        CHECK(cache.evaluation_size() == size / 3);
        check_equal(cache.training(&Article::tokens, &Article::label), texts(size, 1), expected, rules.max_length);
        check_equal(cache.evaluation(&Article::tokens, &Article::label), texts(size / 3, 2), expected,
                    rules.max_length);
        Index cut = 0;
        for (std::uint64_t const part : {std::uint64_t{1}, std::uint64_t{2}})
          for (Index i = 0; i < (part == 1 ? size : size / 3); ++i) {
            Index tokens = 0;
            data::WordTokenizer{}(texts(size, part).get(i).text, [&](auto) { ++tokens; });
            cut += tokens > rules.max_length;
          }
        CHECK(cache.truncated() == cut);
      }
      CHECK(source.reads == 2);
    }
}

TEST_CASE("a given vocabulary replaces the words of the training texts") {
  data::Vocabulary const given({"Word7", "Word1", "unused"});
  for (Index const size : {0, 1, 1500}) {
    auto const cache =
        data::TokenCache::prepare({}, rules, {.threads = 2}, data::WordTokenizer{}, [&](auto const& build) {
          build(texts(size, 1), texts(700, 2), {"a", "b", "c", "d"}, &given);
        });
    CHECK(cache.vocabulary() == given);
    check_equal(cache.training(&Article::tokens, &Article::label), texts(size, 1), given, rules.max_length);
    check_equal(cache.evaluation(&Article::tokens, &Article::label), texts(700, 2), given, rules.max_length);
  }
}

TEST_CASE("a cache is prepared once, and again when a source or a rule changes") {
  Source source;
  auto const options = data::TokenCacheOptions{};
  auto const first = source.prepare(options);
  CHECK(source.reads == 1);
  CHECK(source.prepare(options).vocabulary() == first.vocabulary());
  CHECK(source.reads == 1);
  CHECK(source.files().size() == 1);
  for (auto const& other : {data::TokenRules{"other words", 500, 2, 20},
                            {"words", 400, 2, 20},
                            {"words", 500, 3, 20},
                            {"words", 500, 2, 19}})
    static_cast<void>(source.prepare(options, other));
  CHECK(source.reads == 5);
  CHECK(source.files().size() == 5);
  CHECK(source.prepare(options).training_size() == 1100);
  CHECK(source.reads == 5);
  lockstep_test::write_file(source.folder / "source", "22");
  CHECK(source.prepare(options).training_size() == 1100);
  CHECK(source.reads == 6);
  CHECK(source.files().size() == 1);  // the old file's cache can never be used again
}

TEST_CASE("texts without tokens are counted, and a part of one label is known") {
  Source source;
  auto const cache = source.prepare();
  CHECK(cache.empty() == [] {
    Index count = 0;
    for (auto const& [size, seed] : {std::pair{Index{1100}, 1}, {Index{300}, 2}})
      for (Index i = 0; i < size; ++i)
        count += texts(size, static_cast<std::uint64_t>(seed)).get(i).text.find('W') == std::string::npos;
    return count;
  }());
  CHECK(cache.empty() > 2);
  CHECK_FALSE(cache.only_training_label());
  CHECK_FALSE(cache.only_evaluation_label());
  CHECK(source.prepare().empty() == cache.empty());  // read from the file

  auto const of_labels = [](std::vector<std::int32_t> const& labels) {
    return data::LabelledTexts(std::ssize(labels), [labels](Index i) -> data::LabelledText {
      return {"word", labels[static_cast<std::size_t>(i)]};
    });
  };
  auto const made = [&](std::vector<std::int32_t> const& training, std::vector<std::int32_t> const& evaluation,
                        std::vector<std::string> const& names = {"a", "b", "c"}) {
    return data::TokenCache::prepare({}, rules, {}, data::WordTokenizer{}, [&](auto const& build) {
      build(of_labels(training), of_labels(evaluation), names);
    });
  };
  CHECK(made({2, 2, 2}, {}).only_training_label() == 2);
  CHECK_FALSE(made({2, 2, 2}, {}).only_evaluation_label());
  CHECK(made({0, 1}, {-1, -1}).only_evaluation_label() == -1);
  CHECK(made({0, 1}, {}).empty() == 0);
  CHECK(made({0, 1}, {}, {"a\rb", ""}).classes() == std::vector<std::string>{"a\rb", ""});
  CHECK_THROWS_WITH_AS(made({0, 1}, {}, {"a", "b\nc"}),
                       "TokenCache: the name of class 1 has a line break after \"b\", and names are kept one per line; "
                       "replace it, as by a space",
                       ConfigError);
}

TEST_CASE("small sources are prepared in memory and leave no file") {
  Source source;
  auto const cache = source.prepare({.min_bytes = 100});
  CHECK(cache.training_size() == 1100);
  CHECK_FALSE(fs::exists(source.cache));
}

TEST_CASE("a damaged, truncated or foreign cache file is prepared again") {
  Source source;
  auto const expected = source.prepare().vocabulary();
  auto const path = source.files().at(0);
  auto const bytes = lockstep_test::read_file(path);
  int reads = source.reads;
  auto const comes_back = [&](std::string const& damaged) {
    lockstep_test::write_file(path, damaged);
    auto const cache = source.prepare({.threads = 2});
    CHECK(source.reads == ++reads);
    CHECK(cache.vocabulary() == expected);
    CHECK(lockstep_test::read_file(path).size() == bytes.size());
  };
  for (std::size_t const at : std::vector<std::size_t>{0, 20, 40, 100, 190, 4096, 4096 + 16 * 1100, bytes.size() / 2,
                                                       bytes.size() - 2000, bytes.size() - 1}) {
    CAPTURE(at);
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    comes_back(damaged);
  }
  comes_back(bytes.substr(0, bytes.size() - 1));
  comes_back(bytes.substr(0, 100));
  comes_back("");
  comes_back(bytes + "x");
  comes_back(std::string(bytes.size(), 'x'));
  // A file of other sources under this name.
  lockstep_test::write_file(source.folder / "source", "22");
  static_cast<void>(source.prepare());
  ++reads;
  auto const other = source.files().at(0);
  lockstep_test::write_file(other, bytes);
  CHECK(source.prepare().vocabulary() == expected);
  CHECK(source.reads == ++reads);
}

TEST_CASE("memory use of preparation depends on the distinct words, not on the texts") {
  TemporaryFolder const folder;
  data::TextSources sources;
  sources.add("many texts");
  std::string text;
  for (int i = 0; i < 20; ++i) text += "word" + std::to_string(i) + " ";
  auto const anonymous_kib = [] {
    std::istringstream status(lockstep_test::read_file("/proc/self/status"));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
    return -1l;
  };
  long most = 0;
  auto const before = anonymous_kib();
  auto const cache = data::TokenCache::prepare(sources, rules, {.folder = folder / "cache"}, data::WordTokenizer{},
                                               [&](auto const& build) {
                                                 build(data::LabelledTexts(200000,
                                                                           [&](Index i) -> data::LabelledText {
                                                                             if (i % 20000 == 0)
                                                                               most = std::max(most, anonymous_kib());
                                                                             return {text, 0};
                                                                           }),
                                                       data::LabelledTexts(), {"a"});
                                                 most = std::max(most, anonymous_kib());
                                               });
  CHECK(cache.training_size() == 200000);
  auto const file = fs::directory_iterator(folder / "cache")->file_size();
  CHECK(file > std::uintmax_t{18} << 20);
  REQUIRE(before > 0);
#if !LOCKSTEP_SANITIZED  // sanitizers use memory per page
  CHECK(most - before < 6 * 1024);
#endif
}

TEST_CASE("one of several concurrent processes prepares, and the others wait for it") {
  Source source;
  std::vector<std::thread> threads;
  std::atomic<Index> samples = 0;
  for (int t = 0; t < 6; ++t) threads.emplace_back([&] { samples += source.prepare({.threads = 1}).training_size(); });
  for (auto& thread : threads) thread.join();
  CHECK(source.reads == 1);
  CHECK(samples == 6 * 1100);
  CHECK(source.files().size() == 1);  // no lock and no partial file is left
}

TEST_CASE("a cache file of another user is not believed, and is replaced by an own one") {
  if (::geteuid() != 0) return;  // only root can give a file away
  Source const source;
  static_cast<void>(source.prepare());
  static_cast<void>(source.prepare());
  CHECK(source.reads == 1);
  auto const path = source.files().at(0);
  REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
  static_cast<void>(source.prepare());
  CHECK(source.reads == 2);
  struct ::stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK(found.st_uid == 0);
}

TEST_CASE("a link in place of the lock is not followed, and a wait for the lock ends when a stop is requested") {
  Source const source;
  static_cast<void>(source.prepare());
  auto const path = source.files().at(0), lock = path + ".lock", victim = source.folder / "victim";
  fs::remove(path);
  REQUIRE(::symlink(victim.c_str(), lock.c_str()) == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(source.prepare()), doctest::Contains(".lock: cannot be created"), DataError);
  CHECK_FALSE(fs::exists(victim));
  fs::remove(lock);
  lockstep_test::write_file(lock, "");
  int const held = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_WITH_AS(static_cast<void>(source.prepare({.stop = stop.get_token()})),
                       doctest::Contains("a stop was requested while another process prepared the texts"), DataError);
  ::close(held);
}

TEST_CASE("files of killed processes are removed, and a folder keeps the eight most recently used files") {
  Source source;
  static_cast<void>(source.prepare());
  auto const path = source.files().at(0);
  fs::remove(path);
  lockstep_test::write_file(path + ".123.456", "partial");
  static_cast<void>(source.prepare());
  CHECK(source.files() == std::vector{path});
  auto const forgotten = source.cache + "/0-0-0.tokens.1.2";
  lockstep_test::write_file(forgotten, "of another source");
  static_cast<void>(source.prepare({}, {"words", 9, 2, 20}));
  CHECK(fs::exists(forgotten));  // its process may still run
  fs::last_write_time(forgotten, fs::file_time_type::clock::now() - std::chrono::hours(25));
  static_cast<void>(source.prepare({}, {"words", 8, 2, 20}));
  CHECK_FALSE(fs::exists(forgotten));
  lockstep_test::write_file(source.cache + "/mine.tokens", "not a cache");
  for (Index vocabulary = 10; vocabulary < 22; ++vocabulary) {
    static_cast<void>(source.prepare({}, {"words", vocabulary, 2, 20}));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    static_cast<void>(source.prepare());  // used again and again
  }
  CHECK(source.files().size() == 9);
  CHECK(std::ranges::count(source.files(), path) == 1);
  CHECK(source.reads == 4 + 12);
}

TEST_CASE("the error of the first unreadable text propagates, and no file is left") {
  TemporaryFolder const folder;
  lockstep_test::write_file(folder / "source", "1");
  data::TextSources sources;
  sources.add_file(folder / "source");
  for (int const threads : {1, 4}) {
    auto const error = [&]() -> std::string {
      try {
        static_cast<void>(data::TokenCache::prepare(sources, rules, {.folder = folder / "cache", .threads = threads},
                                                    data::WordTokenizer{}, [&](auto const& build) {
                                                      build(data::LabelledTexts(9000,
                                                                                [](Index i) -> data::LabelledText {
                                                                                  if (i % 1500 == 1499)
                                                                                    throw DataError("text " +
                                                                                                    std::to_string(i));
                                                                                  return {"word", 0};
                                                                                }),
                                                            data::LabelledTexts(), {"a"});
                                                    }));
      } catch (DataError const& e) {
        return e.what();
      }
      return "no error";
    };
    for (int i = 0; i < 20; ++i) REQUIRE(error() == "text 1499");
    CHECK(fs::is_empty(folder / "cache"));
  }
}

TEST_CASE("unwritable folders and invalid options are refused") {
  Source source;
  auto const error = [&](data::TokenCacheOptions const& options,
                         data::TokenRules const& with = rules) -> doctest::String {
    try {
      static_cast<void>(source.prepare(options, with));
    } catch (Error const& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error({}, {"words", 2, 2, 20}) == doctest::Contains("the vocabulary size is 2"));
  CHECK(error({}, {"words", 3, 2, 0}) == doctest::Contains("the length 0"));
  CHECK(error({.folder = source.folder / "source"}) ==
        doctest::Contains("source: cannot be created for prepared texts"));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  auto const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit const small{4096, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK(error({.threads = 2}) == doctest::Contains("prepared texts cannot be written: File too large; free space"));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(source.files().empty());
  data::TextSources sources;
  CHECK_THROWS_WITH_AS(sources.add_file(source.folder / "absent"),
                       doctest::Contains("absent: cannot be opened: No such"), DataError);
}
