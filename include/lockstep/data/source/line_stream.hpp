// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/data/source/detail/text_window.hpp>
#include <lockstep/data/source/stream_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

/// Reads files in sequence, line by line.
class LineReader {
 public:
  LineReader(std::shared_ptr<std::vector<std::string> const> paths, Index first, Index step, std::string encoding)
      : paths_(std::move(paths)),
        file_(static_cast<std::size_t>(first)),
        step_(static_cast<std::size_t>(step)),
        encoding_(std::move(encoding)),
        window_(TextDecoder(encoding_)) {}

  /// Returns the next line that is not blank, valid until the next call; nothing at the end.
  /// @throws DataError if the current file cannot be read further; the next call continues with the next file
  std::optional<std::string_view> next();
  /// Returns the place of the last line, such as "reviews.txt:17".
  [[nodiscard]] std::string name() const { return path() + ":" + std::to_string(number_); }

 private:
  [[nodiscard]] std::string const& path() const { return (*paths_)[file_]; }
  void close_file();
  std::optional<TextLine> line();

  std::shared_ptr<std::vector<std::string> const> paths_;
  std::size_t file_, step_;
  std::string encoding_;
  FileDescriptor open_;
  TextWindow window_;
  std::size_t used_ = 0;  // by the last line, which the next call drops
  Index number_ = 0;
};

}  // namespace detail

/// Reads the lines of text files from beginning to end and never holds a whole file. Removes line ends (LF or CR LF)
/// and a byte order mark; skips blank lines. `encoding` is as TextLinesOptions::encoding. Reads `lanes` files at a
/// time: lane k takes the files k, k + lanes, ... `convert` makes a sample of a line, given as a std::string_view;
/// several threads call it at once. For a DataLoader, use `Streamed{LineStream{paths, 4, to_sample}}`.
/// @throws ConfigError if there is no lane, if there are more lanes than files, or for an unknown encoding
/// @throws DataError from `next` of a lane if a file cannot be read or is not text, which ends the file, or `convert`
/// rejects a line; names file and line
template <class Function>
class LineStream {
 public:
  /// what `convert` returns
  using Sample = std::remove_cvref_t<std::invoke_result_t<Function const&, std::string_view>>;

  /// @param lanes files that are read at the same time, at most as many as paths
  LineStream(std::vector<std::string> paths, Index lanes, Function convert, std::string encoding = "utf-8")
      : paths_(std::make_shared<std::vector<std::string> const>(std::move(paths))),
        lanes_(lanes),
        convert_(std::move(convert)),
        encoding_(std::move(encoding)) {
    detail::TextDecoder const trial(encoding_);
    if (lanes < 1 || lanes > static_cast<Index>(paths_->size()))
      throw ConfigError("LineStream: " + std::to_string(lanes) + " lanes for " + std::to_string(paths_->size()) +
                        " files; there is at least one lane, and a file for each");
  }

  /// The samples of one lane, one line each.
  class Lane {
   public:
    /// For LineStream, which opens lanes.
    Lane(detail::LineReader lines, Function const& convert) : lines_(std::move(lines)), convert_(convert) {}

    /// Returns the sample of the next line, or nothing after the last.
    [[nodiscard]] std::optional<Sample> next() {
      std::optional<Sample> out;
      if (auto const line = lines_.next()) {
        try {
          out.emplace(convert_(*line));
        } catch (DataError const& error) {
          throw DataError(lines_.name() + ": " + error.what());
        }
      }
      return out;
    }

   private:
    detail::LineReader lines_;
    Function convert_;
  };

  /// Returns the number of lanes.
  [[nodiscard]] Index lanes() const noexcept { return lanes_; }
  /// Opens a lane; its content is equal in every epoch.
  [[nodiscard]] Lane lane(Index k, Index) const {
    return Lane(detail::LineReader(paths_, k, lanes_, encoding_), convert_);
  }

 private:
  std::shared_ptr<std::vector<std::string> const> paths_;
  Index lanes_;
  Function convert_;
  std::string encoding_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/line_stream.ipp>
#endif
