// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Longest message of an Error, in bytes.
inline constexpr std::size_t max_message_bytes = 2000;

/// Returns a message of at most `max_message_bytes`. A longer one, which may quote a file, keeps its beginning and
/// its end, cut between characters of UTF-8, and says how much is left out.
[[nodiscard]] std::string limited_message(std::string const& message);

/// Root of all errors that Lockstep throws. The message names the component, the value, the rule and the remedy. It is
/// limited to `max_message_bytes`.
class Error : public std::runtime_error {
 public:
  /// @param what shortened to `max_message_bytes`
  explicit Error(std::string const& what);
  /// @param what shortened to `max_message_bytes`
  explicit Error(char const* what) : Error(std::string(what)) {}
};

/// Extents that do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or data that does not follow its format. Names file and line, or index, and
/// the system's reason.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A sample of a batch that a model rejects. Layers know its row. The code that runs the model adds its position in the
/// epoch's order, and a trainer names the sample of the dataset.
class RowError : public DataError {
 public:
  /// @param row in the batch
  /// @param position in the epoch's order, -1 if unknown
  RowError(std::string const& what, Index row, Index position = -1) : DataError(what), row_(row), position_(position) {}
  /// Returns the row in the batch.
  [[nodiscard]] Index row() const noexcept { return row_; }
  /// Returns the position in the epoch's order; -1 if unknown.
  [[nodiscard]] Index position() const noexcept { return position_; }

 private:
  Index row_, position_;
};

/// An option, or a combination of options, that cannot work.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A failed CUDA call.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// A collective operation that cannot complete.
class CommunicationError : public Error {
 public:
  /// @param history last operations of each rank, a line per rank
  explicit CommunicationError(std::string const& what, std::string history = {})
      : Error(what), history_(std::move(history)) {}
  /// Returns the last operations of each rank, one line per rank; empty if unknown.
  [[nodiscard]] std::string const& history() const noexcept { return history_; }

 private:
  std::string history_;
};

/// The process or thread of a rank is gone.
class RankLost : public CommunicationError {
 public:
  /// @param rank the rank that is gone
  RankLost(int rank, std::string const& what, std::string history = {})
      : CommunicationError(what, std::move(history)), rank_(rank) {}
  /// Returns the rank that is gone.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A rank is alive but has not arrived within the deadline.
class RankStalled : public CommunicationError {
 public:
  /// @param rank the rank that is late
  RankStalled(int rank, std::string const& what, std::string history = {})
      : CommunicationError(what, std::move(history)), rank_(rank) {}
  /// Returns the rank that is late.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A rank called another operation, or passed another size or type.
class CollectiveMismatch : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/error.ipp>
#endif
