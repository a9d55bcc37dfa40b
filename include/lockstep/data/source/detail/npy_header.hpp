// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/excerpt.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Parses the header of an array that numpy wrote: the literal of a Python dictionary with three known keys.
class NpyHeader {
 public:
  /// Limit for the bytes of a header: those of the largest header of version 1. The header of an array of numbers has
  /// about a hundred.
  static constexpr std::uint64_t max_bytes = 65'535;

  NpyHeader(DataFile const& file, std::string_view text);

  NumberType type{};
  std::vector<Index> shape{};
  FileArray::Order order = FileArray::Order::native;

 private:
  void descr(std::string_view text);
  void tuple();
  void space();
  bool try_take(char c);
  void take(char c);
  std::string_view quoted();
  std::string_view word();
  void expect_first(bool& had, std::string_view key) const;
  [[noreturn]] void fail(std::string const& why) const { file_.fail("cannot be read as .npy: " + why); }

  DataFile const& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool has_type_ = false, has_shape_ = false, has_order_ = false, by_columns_ = false;
};

/// Returns the .npy array that begins at byte `begin` of a file and has `room` bytes.
FileArray npy_at(std::shared_ptr<DataFile const> file, std::uint64_t begin, std::uint64_t room,
                 std::string const& name);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/npy_header.ipp>
#endif
