// SPDX-License-Identifier: Apache-2.0
#include "fuzz/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/app/detail/config_file.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/utf8.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/csv_first_row.hpp>
#include <lockstep/data/source/detail/decompress_zstd.hpp>
#include <lockstep/data/source/json_lines_dataset.hpp>
#include <lockstep/data/source/line_stream.hpp>
#include <lockstep/data/source/mds_dataset.hpp>
#include <lockstep/data/source/open_idx.hpp>
#include <lockstep/data/source/open_npy.hpp>
#include <lockstep/data/source/open_npz.hpp>
#include <lockstep/data/source/open_raw.hpp>
#include <lockstep/data/source/open_safetensors.hpp>
#include <lockstep/data/source/open_token_shard.hpp>
#include <lockstep/data/source/tar_dataset.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>
#include <lockstep/data/source/uci_har_dataset.hpp>
#include <lockstep/data/text/byte_pair_tokenizer.hpp>
#include <lockstep/data/text/detail/token_file.hpp>
#include <lockstep/data/text/vocabulary.hpp>
#include <lockstep/data/text/word_piece_tokenizer.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/logs/metrics_log.hpp>
#if defined(LOCKSTEP_FUZZ_ALL)  // takes a second to compile
#include <lockstep/train/trainer/trainer_state.hpp>
#endif

#include "temporary_folder.hpp"

namespace lockstep_test {
namespace {

using namespace lockstep;

/// A file in memory: thousands of inputs per second leave no files on a disk.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("input", MFD_CLOEXEC)) {}
  explicit MemoryFile(std::string_view content) : MemoryFile() { hold(content); }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(MemoryFile const&) = delete;
  MemoryFile& operator=(MemoryFile const&) = delete;

  void hold(std::string_view content) const {
    if (::ftruncate(fd_, 0) != 0 ||
        ::pwrite(fd_, content.data(), content.size(), 0) != static_cast<::ssize_t>(content.size()))
      throw std::runtime_error("no file in memory");
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

/// A folder with files in memory.
class MemoryFolder {
 public:
  /// @param names names of one file
  MemoryFile const& add(std::vector<std::string> const& names) {
    auto const& file = *files_.emplace_back(std::make_unique<MemoryFile>());
    for (auto const& name : names) {
      std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
      std::filesystem::create_symlink(file.path(), folder_ / name);
    }
    return file;
  }
  [[nodiscard]] std::string path() const { return folder_.path().string(); }
  [[nodiscard]] std::string operator/(std::string const& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<MemoryFile>> files_;
};

/// Returns the first part of a two-part input, with a zero byte as separator.
std::string_view take_part(std::string_view& input) {
  auto const end = std::min(input.find('\0'), input.size());
  auto const part = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return part;
}

template <class T>
void read_rows_as(data::FileArray const& array) {
  if (!array.type().reads_as<T>() || array.rows() == 0) return;
  std::vector<T> row(static_cast<std::size_t>(array.width()));
  for (auto const i : {Index{0}, array.rows() - 1}) array.read_rows(i, std::span(row));
}
void read_rows(data::FileArray const& array) {
  read_rows_as<std::uint8_t>(array);
  read_rows_as<std::int16_t>(array);
  read_rows_as<std::int64_t>(array);
  read_rows_as<float>(array);
  read_rows_as<double>(array);
  static_cast<void>(array.fingerprint());
}
template <class D>
void read_samples(D const& dataset) {
  if constexpr (data::HasFingerprint<D>) static_cast<void>(dataset.fingerprint());
  for (Index i = 0; i < std::min<Index>(dataset.size(), 20); ++i) {
    if constexpr (data::NamesSamples<D>) static_cast<void>(dataset.name(i));
    static_cast<void>(dataset.get(i));
  }
}

struct CsvRow {
  std::string text;
  std::int32_t whole = 0;
  double number = 0;
};

/// Returns an encoding in which any bytes are text, so that most mutations are read.
char const* plain_encoding(std::string_view input) { return utf8_prefix(input) == input.size() ? "utf-8" : "bytes"; }

void csv(std::string_view input) {
  MemoryFile const file(input);
  auto const* const encoding = plain_encoding(input);
  static_cast<void>(data::csv_first_row(file.path(), ',', encoding));
  data::CsvDataset<CsvRow> const held(file.path(), {.encoding = encoding}),
      read(file.path(), {.max_held_bytes = 0, .encoding = encoding});
  read_samples(held);
  read_samples(read);
  if (held.fingerprint() != read.fingerprint()) throw std::logic_error("a file's rows depend on where it is held");
}
/// Columns by name, among any number of others.
void csv_columns(std::string_view input) {
  MemoryFile const file(input);
  read_samples(data::CsvDataset<CsvRow>(file.path(),
                                        {.columns = {"text", "whole", "number"}, .encoding = plain_encoding(input)}));
}
void json_lines(std::string_view input) { read_samples(data::JsonLinesDataset(MemoryFile(input).path())); }
void compare_lines(std::string const& path, std::string const& encoding) {
  data::TextLinesDataset const indexed(path, {.encoding = encoding}),
      read(path, {.max_held_bytes = 0, .encoding = encoding});
  data::LineStream const stream(
      {path}, 1, [](std::string_view line) { return std::string(line); }, encoding);
  auto lane = stream.lane(0, 0);
  for (Index i = 0; i < indexed.size(); ++i)
    if (auto const line = lane.next(); line != indexed.get(i) || line != read.get(i))
      throw std::logic_error("a line differs");
  if (lane.next()) throw std::logic_error("there is a line more");
  data::TextLinesDataset const blocks(path, {.encoding = encoding, .unit = data::TextUnit::block});
  Index used = 0;  // each line is a line of one block
  for (Index i = 0; i < blocks.size(); ++i) {
    std::istringstream lines_of_block(blocks.get(i));
    for (std::string line; std::getline(lines_of_block, line);)
      if (used >= indexed.size() || indexed.get(used++) != line) throw std::logic_error("a block differs");
  }
  if (used != indexed.size()) throw std::logic_error("the blocks have other lines");
}
/// A stream of lines and their index must agree, wherever the text is, and in any encoding.
void lines(std::string_view input) {
  MemoryFile const file(input);
  for (auto const* const encoding : {"utf-8", "utf-16", "shift_jis"}) {
    try {
      compare_lines(file.path(), encoding);
    } catch (DataError const&) {
    }
  }
  compare_lines(file.path(), plain_encoding(input));
}
void npy(std::string_view input) { read_rows(data::open_npy(MemoryFile(input).path())); }
void npz(std::string_view input) { read_rows(data::open_npz(MemoryFile(input).path(), "x")); }
void safetensors(std::string_view input) { read_rows(data::open_safetensors(MemoryFile(input).path(), "x")); }
void idx(std::string_view input) { read_rows(data::open_idx(MemoryFile(input).path())); }
void token_shard(std::string_view input) { read_rows(data::open_token_shard(MemoryFile(input).path())); }
/// The extents of a record and the number of bytes before the records, as text, followed by the file.
void raw(std::string_view input) {
  std::string const header(take_part(input));
  std::vector<Index> shape;
  std::size_t at = 0;
  for (auto const* next = header.c_str(); *next != '\0' && shape.size() < 8; next += at) {
    try {
      shape.push_back(std::stoll(next, &at));
    } catch (std::exception const&) {
      break;
    }
  }
  std::uint64_t const offset = shape.empty() ? 0 : static_cast<std::uint64_t>(shape.back());
  if (!shape.empty()) shape.pop_back();
  read_rows(data::open_raw<float>(MemoryFile(input).path(), shape, offset));
}
void tar(std::string_view input) { read_samples(data::TarDataset(MemoryFile(input).path(), data::TarIndex::memory)); }
/// An archive of one file.
std::string archive() {
  std::string header(512, '\0');
  header.replace(0, 5, "a.txt").replace(124, 11, "00000000003").replace(148, 8, 8, ' ');
  std::uint64_t sum = 0;
  for (char const c : header) sum += static_cast<unsigned char>(c);
  for (std::size_t i = 6; i-- > 0; sum /= 8) header[148 + i] = static_cast<char>('0' + sum % 8);
  return header + "one" + std::string(509 + 1024, '\0');
}
/// The index of that archive, without the first line, which names the archive.
void tar_index(std::string_view input) {
  struct Files : MemoryFolder {
    MemoryFile const &tar = add({"a.tar"}), &index = add({"a.tar.index"});
    std::string first_line;
    Files() {
      tar.hold(archive());  // once: the first line has the time
      static_cast<void>(data::TarDataset(*this / "a.tar"));
      auto const text = read_file(*this / "a.tar.index");
      first_line = text.substr(0, text.find('\n') + 1);
    }
  };
  static Files const files;
  if (auto const index_path = files / "a.tar.index";
      !std::filesystem::is_symlink(index_path)) {  // the index was rebuilt
    std::filesystem::remove(index_path);
    std::filesystem::create_symlink(files.index.path(), index_path);
  }
  files.index.hold(files.first_line + std::string(input));
  read_samples(data::TarDataset(files / "a.tar"));
}
/// The index, followed by its only possible shard, shard.mds.
void mds(std::string_view input) {
  struct Files : MemoryFolder {
    MemoryFile const &index = add({"index.json"}), &shard = add({"shard.mds"});
  };
  static Files files;
  files.index.hold(take_part(input));
  files.shard.hold(input);
  data::MdsDataset const dataset(files.path());
  for (Index i = 0; i < std::min<Index>(dataset.size(), 20); ++i) {
    auto const sample = dataset.get(i);
    static_cast<void>(sample.bytes("x"));
    static_cast<void>(sample.text("x"));
  }
}
/// The labels, the subjects, and each of the nine channels.
void uci_har(std::string_view input) {
  struct Files : MemoryFolder {
    static std::vector<std::string> channels() {
      std::vector<std::string> out;
      for (std::string const what : {"body_acc", "total_acc", "body_gyro"})
        for (std::string const axis : {"_x", "_y", "_z"})
          out.push_back("train/Inertial Signals/" + what + axis + "_train.txt");
      return out;
    }
    MemoryFile const &labels = add({"train/y_train.txt"}), &subjects = add({"train/subject_train.txt"}),
                     &signals = add(channels());
  };
  static Files files;
  files.labels.hold(take_part(input));
  files.subjects.hold(take_part(input));
  files.signals.hold(input);
  read_samples(data::UciHarDataset(files.path(), "train"));
}
void json(std::string_view input) { static_cast<void>(json::parse(input)); }
void loader_state(std::string_view input) {
  auto const state = data::LoaderState::from_json(input);
  if (!(data::LoaderState::from_json(state.to_json()) == state)) throw std::logic_error("a state is not its text");
}
void vocabulary(std::string_view input) {
  auto const read = data::Vocabulary::from_text(input);
  if (data::Vocabulary::from_text(read.to_text()).to_text() != read.to_text())
    throw std::logic_error("a vocabulary is not its text");
}

/// A configuration file: names and values.
void config(std::string_view input) {
  MemoryFile const file(input);
  for (auto const& setting : app::detail::ConfigFile(file.path()).read())
    if (setting.line == 0) throw std::logic_error("a setting without a line");
}
struct Model {
  nn::Parameter weight{{2, 3}, {}}, bias{{2}, {}};
  nn::Buffer mean{{2}};
  void visit(auto&& each) { each("weight", weight), each("bias", bias), each("mean", mean); }
};
/// Parameters and buffers of a model, and a text.
void parameters(std::string_view input) {
  MemoryFile const file(input);
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), 0.5f),
      buffers(static_cast<std::size_t>(layout.buffer_size()), 0.5f);
  auto const before = values;
  try {
    static_cast<void>(train::load_text(file.path(), "classes"));
  } catch (DataError const&) {
  }
  for (Index const rows_after : {0, 1})
    for (auto const& axes : {std::vector<Index>{0, 1}, {1, 0}}) try {
        auto read = values, read_buffers = buffers;
        train::load_parameters(file.path(), layout, read, read_buffers,
                               [&](std::string_view name) -> train::TensorInFile {
                                 if (name != "weight") return {};
                                 return {.name = "weight", .rows_after = rows_after, .axes = axes};
                               });
      } catch (Error const&) {
      }
  try {
    train::load_parameters(file.path(), layout, values, buffers);
  } catch (Error const&) {
    if (values != before) throw std::logic_error("a refused file has changed the parameters");
    throw;
  }
}
void progress(std::string_view input) {
  auto const state = train::Progress::from_json(input, "progress");
  if (train::Progress::from_json(state.to_json(), "again").to_json() != state.to_json())
    throw std::logic_error("a state is not its text");
}
#if defined(LOCKSTEP_FUZZ_ALL)
void trainer_state(std::string_view input) {
  static_cast<void>(train::detail::TrainerState::from_json(std::string(input), "state"));
}
#endif
/// A run.json, from which other runs are predicted.
void saved_run(std::string_view input) {
  struct Files : MemoryFolder {
    MemoryFile const& run = add({"run.json"});
  };
  static Files const files;
  files.run.hold(input);
  static_cast<void>(scaling::SavedRun(files.path()).workload());
}
/// A metrics.jsonl that a run continues after step 5.
void metrics(std::string_view input) {
  MemoryFile const file(input);
  train::MetricsLog log(file.path());
  log.start({.resumed = 5});
}
/// A file of prepared texts, with the header's checksum made right, since anybody can.
void token_file(std::string_view input) {
  static MemoryFile const file;
  std::string bytes(input);
  data::detail::TokenHeader header;
  if (bytes.size() >= sizeof header) {
    std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
    header.header_checksum = header.compute_header_checksum();
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  file.hold(bytes);
  data::detail::TokenFile const tokens(file.path(), header.key);
  ThreadPool pool(1);
  tokens.verify(pool, nullptr);
  for (std::size_t part = 0; part < 2; ++part)
    for (Index i = 0; i < std::min<Index>(static_cast<Index>(tokens.header().parts[part].rows), 5); ++i) {
      auto const record = tokens.record(part, i);
      std::vector<std::int32_t> text(record.length);
      tokens.read(record, text);
    }
  static_cast<void>(data::Vocabulary::from_text(tokens.vocabulary()));
}

#if defined(LOCKSTEP_UTF8PROC)
/// A vocab.json of GPT-2, followed by its merges.txt.
void byte_pair(std::string_view input) {
  MemoryFile const vocabulary(take_part(input)), merges(input);
  data::BytePairTokenizer const tokenizer(vocabulary.path(), merges.path());
  constexpr std::string_view text = "a text, and   more of it: \xc3\xa9\xff";
  if (tokenizer.decode(tokenizer.encode(text)) != text) throw std::logic_error("another text");
}
/// A vocab.txt of BERT.
void word_piece(std::string_view input) {
  MemoryFile const file(input);
  data::WordPieceTokenizer const tokenizer(file.path());
  tokenizer("a text, and more of it", [](std::string_view) {});
}
#endif
#if defined(LOCKSTEP_ZSTD)
/// The expected number of bytes as text, followed by the compressed file.
void zstd(std::string_view input) {
  static TemporaryFolder const folder;
  static MemoryFile const packed;
  constexpr Index most = Index{1} << 20;  // the disk is not tested
  auto const bytes =
      static_cast<std::uint64_t>(std::clamp<Index>(std::atoll(std::string(take_part(input)).c_str()), 0, most));
  packed.hold(input);
  auto const plain = folder / "plain";
  data::detail::decompress_zstd(data::detail::DataFile(packed.path()), plain, bytes, nullptr);
  auto const made = std::filesystem::file_size(plain);
  std::filesystem::remove(plain);
  if (made != bytes || folder.entries() != 0) throw std::logic_error("not what was announced, or more than that");
}
#endif

}  // namespace

std::span<FuzzTarget const> fuzz_targets() {
  static constexpr std::array all {
    FuzzTarget{"config", config}, FuzzTarget{"csv", csv}, FuzzTarget{"csv_columns", csv_columns},
        FuzzTarget{"idx", idx}, FuzzTarget{"json", json}, FuzzTarget{"json_lines", json_lines},
        FuzzTarget{"lines", lines}, FuzzTarget{"loader_state", loader_state}, FuzzTarget{"mds", mds},
        FuzzTarget{"metrics", metrics}, FuzzTarget{"npy", npy}, FuzzTarget{"npz", npz},
        FuzzTarget{"parameters", parameters}, FuzzTarget{"progress", progress}, FuzzTarget{"raw", raw},
        FuzzTarget{"safetensors", safetensors}, FuzzTarget{"saved_run", saved_run}, FuzzTarget{"tar", tar},
        FuzzTarget{"tar_index", tar_index}, FuzzTarget{"token_file", token_file},
        FuzzTarget{"token_shard", token_shard}, FuzzTarget{"uci_har", uci_har}, FuzzTarget{"vocabulary", vocabulary},
#if defined(LOCKSTEP_FUZZ_ALL)
        FuzzTarget{"trainer_state", trainer_state},
#endif
#if defined(LOCKSTEP_UTF8PROC)
        FuzzTarget{"byte_pair", byte_pair}, FuzzTarget{"word_piece", word_piece},
#endif
#if defined(LOCKSTEP_ZSTD)
        FuzzTarget{"zstd", zstd},
#endif
  };
  return all;
}

bool parses(FuzzTarget const& target, std::string_view input) {
  try {
    target.parse(input);
    return true;
  } catch (Error const& error) {
    auto const size = std::string_view(error.what()).size();
    if (size < 10) throw std::logic_error("an error that says nothing");
    if (size > max_message_bytes) throw std::logic_error("an error that says too much");
    return false;
  }
}

}  // namespace lockstep_test
