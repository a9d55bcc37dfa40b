// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

struct MdsColumn {
  std::string name, encoding;
  std::uint32_t bytes = 0;  // of each value; 0: it varies
};

/// Returns the number type of an encoding; its `bytes` is 0 if the encoding does not store numbers.
NumberType mds_type(std::string_view encoding);

}  // namespace detail

/// A sample of an MDS dataset: its values by column.
class MdsSample {
 public:
  using Columns = std::shared_ptr<std::vector<detail::MdsColumn> const>;  ///< columns of a shard, shared by its samples

  /// For MdsDataset. @param where name of the sample in messages
  /// @throws DataError if the data do not fit the columns
  MdsSample(Columns columns, std::vector<std::byte> data, std::string where);

  /// Returns the heap memory of the sample, without the column names that all samples share.
  [[nodiscard]] std::size_t heap_bytes() const noexcept;

  /// Returns the stored bytes of a value. @throws DataError if there is no such column
  [[nodiscard]] std::span<std::byte const> bytes(std::string_view column) const;
  /// Returns the value of a column with encoding str.
  [[nodiscard]] std::string_view text(std::string_view column) const;
  /// Returns the numbers of a column with encoding int, float32 and so on, or of an ndarray of fixed shape. Converts
  /// float16 to float or double, and integers to wider ones.
  /// @throws DataError if they are of another type
  template <Number Element>
  [[nodiscard]] std::vector<Element> numbers(std::string_view column) const {
    auto const& encoding = (*columns_)[find(column)].encoding;
    auto const type = detail::mds_type(encoding);
    auto const value = bytes(column);
    auto const each = static_cast<std::size_t>(type.bytes);
    if (!type.reads_as<Element>() || value.size() % each != 0)
      refuse(column, encoding, NumberType::of<Element>().name());
    std::vector<Element> out(value.size() / each);
    if (!out.empty())
      std::memcpy(std::as_writable_bytes(std::span(out)).last(value.size()).data(), value.data(), value.size());
    detail::widen_in_place(type, std::span(out));
    return out;
  }
  /// Returns the number of a column that has one per sample.
  /// @throws DataError if it has several, or is of another type
  template <Number Element>
  [[nodiscard]] Element number(std::string_view column) const {
    auto const all = numbers<Element>(column);
    if (all.size() != 1)
      throw DataError("MdsSample: \"" + std::string(column) + "\" holds " + std::to_string(all.size()) +
                      " numbers, but one was requested");
    return all.front();
  }

 private:
  struct Value {
    std::size_t at, size;
  };
  [[nodiscard]] std::size_t find(std::string_view column) const;
  [[noreturn]] static void fail(std::string const& where, char const* why);
  [[noreturn]] static void refuse(std::string_view column, std::string const& encoding, std::string const& wanted);

  Columns columns_;
  std::vector<std::byte> data_;
  std::vector<Value> values_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/mds_sample.ipp>
#endif
