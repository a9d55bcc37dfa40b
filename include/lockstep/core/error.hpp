// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// Root of all errors that Lockstep throws. The message says who, which value, which rule and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Extents that do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or data that does not follow its format; names file and line, or index, and
/// the system's reason.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A sample of a batch that a model cannot take. Layers know its row; who runs the model adds its place in the epoch's
/// order, and a trainer says which sample of the dataset it is.
class RowError : public DataError {
 public:
  RowError(std::string const& what, Index row, Index position = -1) : DataError(what), row_(row), position_(position) {}
  /// In the batch.
  [[nodiscard]] Index row() const noexcept { return row_; }
  /// In the epoch's order; -1 where it is not known.
  [[nodiscard]] Index position() const noexcept { return position_; }

 private:
  Index row_, position_;
};

/// An option, or a combination of options, that cannot work.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A CUDA call that failed.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// A collective operation that cannot complete.
class CommunicationError : public Error {
 public:
  explicit CommunicationError(std::string const& what, std::string history = {})
      : Error(what), history_(std::move(history)) {}
  /// The last operations of each rank, a line for each rank; empty where none are known.
  [[nodiscard]] std::string const& history() const noexcept { return history_; }

 private:
  std::string history_;
};

/// The process or thread of a rank is gone.
class RankLost : public CommunicationError {
 public:
  RankLost(int rank, std::string const& what, std::string history = {})
      : CommunicationError(what, std::move(history)), rank_(rank) {}
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A rank is alive and has not arrived within the deadline.
class RankStalled : public CommunicationError {
 public:
  RankStalled(int rank, std::string const& what, std::string history = {})
      : CommunicationError(what, std::move(history)), rank_(rank) {}
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A rank arrived with another operation, size or type.
class CollectiveMismatch : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

}  // namespace lockstep::inline LOCKSTEP_ABI
