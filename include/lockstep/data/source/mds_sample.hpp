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
inline NumberType mds_type(std::string_view encoding) {
  if (encoding.starts_with("ndarray:")) {
    encoding.remove_prefix(8);
    auto const colon = encoding.find(':');
    if (colon == std::string_view::npos) return {'?', 0};  // arrays of any shape have a header
    encoding = encoding.substr(0, colon);
  }
  if (encoding == "int") return {'i', 8};
  for (auto const bytes : {1, 2, 4, 8})
    for (char const kind : {'i', 'u', 'f'})
      if (NumberType const type{kind, bytes}; encoding == type.name() && !(kind == 'f' && bytes == 1)) return type;
  return {'?', 0};
}

}  // namespace detail

/// A sample of an MDS dataset: its values by column.
class MdsSample {
 public:
  using Columns = std::shared_ptr<std::vector<detail::MdsColumn> const>;

  MdsSample(Columns columns, std::vector<std::byte> data, std::string where)
      : columns_(std::move(columns)), data_(std::move(data)) {
    std::size_t at = 0;
    auto const number = [&] {
      std::uint32_t out = 0;
      if (data_.size() - at < sizeof out) fail(where, "has no room for its sizes");
      std::memcpy(&out, data_.data() + at, sizeof out);
      at += sizeof out;
      return out;
    };
    std::vector<std::uint32_t> sizes;
    for (auto const& column : *columns_) sizes.push_back(column.bytes > 0 ? column.bytes : number());
    for (auto const size : sizes) {
      if (data_.size() - at < size) fail(where, "has values that reach beyond its end");
      values_.push_back({at, size});
      at += size;
    }
    if (at != data_.size()) fail(where, "is longer than its values");
  }

  /// Returns the heap memory of the sample, without the column names that all samples share.
  [[nodiscard]] std::size_t heap_bytes() const noexcept {
    return data_.capacity() + values_.capacity() * sizeof(values_[0]);
  }

  /// Returns the stored bytes of a value. @throws DataError if there is no such column
  [[nodiscard]] std::span<std::byte const> bytes(std::string_view column) const {
    auto const& [at, size] = values_[find(column)];
    return {data_.data() + at, size};
  }
  /// Returns the value of a column with encoding str.
  [[nodiscard]] std::string_view text(std::string_view column) const {
    if (auto const& encoding = (*columns_)[find(column)].encoding; encoding != "str") refuse(column, encoding, "str");
    auto const value = bytes(column);
    return {reinterpret_cast<char const*>(value.data()), value.size()};
  }
  /// Returns the numbers of a column with encoding int, float32 and so on, or of an ndarray of fixed shape. Converts
  /// float16 to float or double.
  /// @throws DataError if they are of another type
  template <Number T>
  [[nodiscard]] std::vector<T> numbers(std::string_view column) const {
    auto const& encoding = (*columns_)[find(column)].encoding;
    auto const type = detail::mds_type(encoding);
    auto const value = bytes(column);
    auto const each = static_cast<std::size_t>(type.bytes);
    if (!type.reads_as<T>() || value.size() % each != 0) refuse(column, encoding, NumberType::of<T>().name());
    std::vector<T> out(value.size() / each);
    if (!out.empty())
      std::memcpy(std::as_writable_bytes(std::span(out)).last(value.size()).data(), value.data(), value.size());
    detail::widen_in_place(type, std::span(out));
    return out;
  }
  template <Number T>
  [[nodiscard]] T number(std::string_view column) const {
    auto const all = numbers<T>(column);
    if (all.size() != 1)
      throw DataError("MdsSample: \"" + std::string(column) + "\" holds " + std::to_string(all.size()) +
                      " numbers, but one was requested");
    return all.front();
  }

 private:
  struct Value {
    std::size_t at, size;
  };
  [[nodiscard]] std::size_t find(std::string_view column) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < columns_->size(); ++i) {
      if ((*columns_)[i].name == column) return i;
      names.push_back((*columns_)[i].name);
    }
    auto const near = nearest(column, names);
    throw DataError("MdsSample: there is no column \"" + std::string(column) + "\"" +
                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  [[noreturn]] static void fail(std::string const& where, char const* why) {
    throw DataError(where + ": the sample " + why + "; the shard is damaged, write it again");
  }
  [[noreturn]] static void refuse(std::string_view column, std::string const& encoding, std::string const& wanted) {
    throw DataError("MdsSample: \"" + std::string(column) + "\" has the encoding " + encoding + ", but " + wanted +
                    " was requested; request its encoding, or its bytes");
  }

  Columns columns_;
  std::vector<std::byte> data_;
  std::vector<Value> values_;
};

}}}  // namespace lockstep::data
