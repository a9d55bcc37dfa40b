// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/core/widen.hpp>
#include <lockstep/data/column.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/file_mapping.hpp>
#include <lockstep/data/source/mapped_reads.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// The element type of numbers in a file.
struct NumberType {
  char kind = 'f';  ///< 'b' bool, 'i' signed, 'u' unsigned, 'f' floating point, 'B' bfloat16
  int bytes = 4;    ///< of a number

  /// Returns the type of Value; an enum has its underlying type.
  template <Number Value>
  [[nodiscard]] static constexpr NumberType of() noexcept {
    if constexpr (std::is_enum_v<Value>) {
      return of<std::underlying_type_t<Value>>();
    } else {
      constexpr char kind = std::is_same_v<Value, bool>       ? 'b'
                            : std::is_floating_point_v<Value> ? 'f'
                            : std::is_signed_v<Value>         ? 'i'
                                                              : 'u';
      return {kind, static_cast<int>(sizeof(Value))};
    }
  }
  /// Returns the name of the type for messages, such as "float32".
  [[nodiscard]] std::string name() const;
  /// Whether the type is Value, or converts to Value without loss: float16 and bfloat16 to float or double, integers to
  /// wider ones (a signed one to signed ones only), bool to an unsigned byte and to all wider integers.
  template <Number Value>
  [[nodiscard]] constexpr bool reads_as() const noexcept {
    constexpr auto size = static_cast<int>(sizeof(Value));
    if (*this == of<Value>() || (kind == 'b' && std::is_same_v<Value, std::uint8_t>)) return true;
    if constexpr (std::is_floating_point_v<Value>) return bytes == 2 && (kind == 'f' || kind == 'B');
    if constexpr (std::is_integral_v<Value>)
      return bytes < size && (kind == 'u' || kind == 'b' || (kind == 'i' && std::is_signed_v<Value>));
    return false;
  }
  /// Compares kind and size.
  friend bool operator==(NumberType const&, NumberType const&) = default;
};

namespace detail {

/// Converts numbers of a type that `reads_as` Value, which fill the last bytes of `out`, to Value in place.
template <Number Value>
void widen_in_place(NumberType type, std::span<Value> out) noexcept {
  if (type.bytes == static_cast<int>(sizeof(Value))) return;
  auto const from = std::as_bytes(out).last(out.size() * static_cast<std::size_t>(type.bytes));
  auto const widen_if = [&]<class Narrow>(Narrow) {
    if constexpr (Widens<Narrow, Value>) widen<Narrow>(from, out);
  };
  switch (type.kind) {
    case 'B':
      return widen_if(bfloat16());
    case 'f':
      return widen_if(float16());
    case 'i':
      return type.bytes == 1   ? widen_if(std::int8_t{})
             : type.bytes == 2 ? widen_if(std::int16_t{})
                               : widen_if(std::int32_t{});
    default:
      return type.bytes == 1   ? widen_if(std::uint8_t{})
             : type.bytes == 2 ? widen_if(std::uint16_t{})
                               : widen_if(std::uint32_t{});
  }
}

}  // namespace detail

/// A dense row-major array in a file; its first extent counts rows. The common type of the array formats (open_npy,
/// open_npz, open_safetensors, open_idx, open_raw). A copy shares the open file. Thread-safe.
class FileArray {
 public:
  /// Byte order of the numbers in the file.
  enum class Order {
    native,   ///< the machine's
    swapped,  ///< the other one
  };

  /// @throws DataError if the array does not fit the file, or its size overflows
  FileArray(std::shared_ptr<detail::DataFile const> file, NumberType type, std::vector<Index> shape,
            std::uint64_t offset, Order order = Order::native, std::string name = "the array");

  /// Returns the type of the numbers in the file.
  [[nodiscard]] NumberType type() const noexcept { return type_; }
  /// Returns all extents, rows first.
  [[nodiscard]] std::vector<Index> const& shape() const noexcept { return shape_; }
  /// Returns the first extent.
  [[nodiscard]] Index rows() const noexcept { return shape_[0]; }
  /// Returns the count of numbers in a row.
  [[nodiscard]] Index width() const noexcept { return row_bytes_ / type_.bytes; }
  /// Returns the path of the file or archive.
  [[nodiscard]] std::string const& path() const noexcept { return file_->path(); }

  /// Checks that members of type Value can hold the numbers. `who` names the member in the message.
  /// @throws DataError unless the numbers are of type Value or convert to Value without loss
  template <Number Value>
  void expect_type(std::string const& who) const {
    if (!type_.reads_as<Value>()) {
      file_->fail("holds " + type_.name() + ", but " + who + " is of " + NumberType::of<Value>().name() +
                  "; change the member's type or convert the file");
    }
  }
  /// Returns this array with memory-mapped reads: faster for rows of some hundred kilobytes or more, if the file stays
  /// in the page cache. Do not write to the file while it is mapped.
  /// @throws DataError if the file cannot be mapped
  [[nodiscard]] FileArray mapped(MappedReads const&) const;
  /// Returns this array with other extents, as numpy's reshape: `series.reshape({days * hours, 1})` makes each number
  /// of an array [days, hours] a row.
  /// @throws DataError if the extents have another number of numbers, or one is negative
  [[nodiscard]] FileArray reshape(std::vector<Index> shape) const;
  /// Reads rows from row `first` until `out` is full: one row, or a sequence of rows. Converts float16 and bfloat16 to
  /// float or double, and integers to wider ones.
  /// @throws DataError if the numbers are of another type, or the file has been shortened since it was opened
  /// @throws DataError if `out` does not hold a whole number of rows, or the array has fewer
  template <Number Value>
  void read_rows(Index first, std::span<Value> out) const {
    if (!type_.reads_as<Value>()) expect_type<Value>("the requested type");
    expect_rows(first, static_cast<Index>(out.size()));
    auto const each = static_cast<std::size_t>(type_.bytes);
    auto const bytes = std::as_writable_bytes(out).last(out.size() * each);
    auto const at = offset_ + static_cast<std::uint64_t>(first) * static_cast<std::uint64_t>(row_bytes_);
    mapping_ ? mapping_->read(at, bytes) : file_->read(at, bytes);
    if (order_ == Order::swapped && each > 1)
      for (std::size_t i = 0; i < bytes.size(); i += each)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                     bytes.begin() + static_cast<std::ptrdiff_t>(i + each));
    if constexpr (std::is_same_v<Value, bool>)
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] > std::byte{1})
          file_->fail("has " + std::to_string(std::to_integer<int>(bytes[i])) + " for a bool at byte " +
                      std::to_string(at + i) + "; it must be 0 or 1: the file was damaged");
    detail::widen_in_place(type_, out);
  }
  /// Reads rows as `read_rows` does and converts the numbers to Value from any type that a file may have. Rounds
  /// floating-point numbers.
  /// @throws DataError as `read_rows`, if a file of floating-point numbers is read as integers, or if Value cannot hold
  /// an integer
  template <Number Value>
  void convert_rows(Index first, std::span<Value> out) const {
    static_assert(!std::is_same_v<Value, bool> && !std::is_enum_v<Value>,
                  "Lockstep: convert_rows gives integers and floats");
    if (type_.reads_as<Value>()) return read_rows(first, out);
    switch (type_.kind) {
      case 'b':
        return convert_from<std::uint8_t>(first, out);
      case 'u':
        return type_.bytes == 1   ? convert_from<std::uint8_t>(first, out)
               : type_.bytes == 2 ? convert_from<std::uint16_t>(first, out)
               : type_.bytes == 4 ? convert_from<std::uint32_t>(first, out)
                                  : convert_from<std::uint64_t>(first, out);
      case 'i':
        return type_.bytes == 1   ? convert_from<std::int8_t>(first, out)
               : type_.bytes == 2 ? convert_from<std::int16_t>(first, out)
               : type_.bytes == 4 ? convert_from<std::int32_t>(first, out)
                                  : convert_from<std::int64_t>(first, out);
      default:
        return type_.bytes == 8 ? convert_from<double>(first, out) : convert_from<float>(first, out);
    }
  }
  /// Returns all numbers, rows concatenated: labels, or the lengths that a sampler needs.
  /// @throws DataError as `read_rows`
  template <Number Value>
  [[nodiscard]] std::vector<Value> numbers() const {
    static_assert(!std::is_same_v<Value, bool>,
                  "Lockstep: a std::vector<bool> holds bits; read bools as numbers<std::uint8_t>()");
    if (!type_.reads_as<Value>()) expect_type<Value>("the requested type");
    auto const count = static_cast<std::size_t>(rows() * width());
    auto out = with_memory_for(path() + " (all of its rows)", count * sizeof(Value),
                               [&] { return std::vector<Value>(count); });
    read_rows(0, std::span(out));
    return out;
  }
  /// Returns a hash that changes with the file's length, its beginning or its end, and the array's place in it.
  [[nodiscard]] std::uint64_t fingerprint() const;
  /// Returns the shape for messages, such as "[60000, 28, 28]".
  [[nodiscard]] std::string extents() const;

 private:
  template <Number From, Number Value>
  void convert_from(Index first, std::span<Value> out) const {
    std::vector<From> numbers(out.size());
    read_rows(first, std::span(numbers));
    if constexpr (std::is_integral_v<Value>) {
      if constexpr (!std::is_integral_v<From>) {
        file_->fail("holds " + type_.name() + ", but integers were requested; convert the file");
      } else {
        for (std::size_t i = 0; i < out.size(); ++i) {
          if (!std::in_range<Value>(numbers[i]))
            file_->fail("has the number " + std::to_string(numbers[i]) + ", which " + NumberType::of<Value>().name() +
                        " cannot hold; convert the file");
          out[i] = static_cast<Value>(numbers[i]);  // NOLINT(bugprone-signed-char-misuse): it is in range
        }
      }
    } else {
      std::transform(numbers.begin(), numbers.end(), out.begin(),
                     [](From number) { return static_cast<Value>(number); });
    }
  }
  void expect_rows(Index first, Index numbers) const;

  std::shared_ptr<detail::DataFile const> file_;
  std::shared_ptr<detail::FileMapping const> mapping_;  // null: rows are read without a mapping
  NumberType type_;
  std::vector<Index> shape_;
  std::uint64_t offset_;
  Order order_;
  Index row_bytes_ = 0;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/file_array.ipp>
#endif
