// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/source/detail/csv_table.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Whether the first row of a CSV file names the columns.
enum class CsvHeader {
  automatic,   ///< it does when no number stands where the row type wants one; a row type of texts only has no header
  none,        ///< it is a sample
  first_line,  ///< it is not a sample
};

struct CsvOptions {
  CsvHeader header = CsvHeader::automatic;
  char separator = ',';
};

namespace detail {

template <class T>
concept CsvNumber = std::is_arithmetic_v<T>;
template <class T>
concept CsvCell = CsvNumber<T> || std::same_as<T, std::string>;

/// The columns that a member takes: one, or one for each element.
template <CsvCell T>
std::span<T, 1> csv_cells(T& member) noexcept {
  return std::span<T, 1>(&member, 1);
}
template <CsvCell T, std::size_t N>
std::span<T, N> csv_cells(std::array<T, N>& member) noexcept {
  return member;
}
template <class T>
concept CsvMember = requires(T& member) {
  csv_cells(member);
};

/// What a member wants of the file.
template <class T>
struct CsvKind {
  using Cells = decltype(csv_cells(std::declval<T&>()));
  static constexpr std::size_t columns = Cells::extent;
  static constexpr bool is_number = CsvNumber<typename Cells::element_type>;
  static std::string name() {
    return (columns == 1 ? "" : std::to_string(columns) + " x ") + (is_number ? "number" : "text");
  }
};

template <CsvNumber T>
constexpr char const* csv_kind() {
  if constexpr (std::same_as<T, bool>) return "0 or 1";
  if constexpr (std::floating_point<T>) return "a number";
  return "a whole number";
}

/// Reads a number that fills the whole field, spaces around it aside.
template <CsvNumber T>
std::errc parse_number(std::string_view text, T& out) noexcept {
  auto const first = text.find_first_not_of(' ');
  text =
      first == std::string_view::npos ? std::string_view{} : text.substr(first, text.find_last_not_of(' ') + 1 - first);
  if constexpr (std::same_as<T, bool>) {
    out = text == "1" || text == "true";
    return out || text == "0" || text == "false" ? std::errc{} : std::errc::invalid_argument;
  } else {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end != text.data() + text.size() ? std::errc::invalid_argument : error;
  }
}

}  // namespace detail

/// The rows of a CSV file as samples of type `Row`: an aggregate with one member per column, std::string or a number,
/// in the file's order; a std::array of N of these takes N columns. The file is read and indexed at construction; a row
/// is converted when it is asked for. Copies share the file's text. Thread-safe.
/// @throws DataError at construction when the file cannot be read, is not text, has no rows, a row with another number
/// of columns, or a quote that does not close; from `get` when a number cannot be read. Each names file, line and
/// column.
/// @source RFC 4180
template <class Row>
class CsvDataset {
  static_assert(Aggregate<Row>,
                "Lockstep: the row type of CsvDataset is not an aggregate (a struct without constructors)");
  using Members = MembersOf<Row>;

  template <class>
  struct Check;
  template <class... Member>
  struct Check<std::tuple<Member&...>> {
    static_assert(
        (detail::CsvMember<Member> && ...),
        "Lockstep: the members of a row of CsvDataset are std::string, bool, integers or floating-point numbers, or "
        "std::array of one of these; convert to other types with data::Transform");
    static constexpr std::size_t columns = (detail::CsvKind<Member>::columns + ...);
    static constexpr bool has_numbers = (detail::CsvKind<Member>::is_number || ...);
    static std::string kinds() {
      std::string out;
      ((out += (out.empty() ? "" : ", ") + detail::CsvKind<Member>::name()), ...);
      return out;
    }
  };

 public:
  explicit CsvDataset(std::string path, CsvOptions options = {}) {
    detail::CsvTable table(std::move(path), options.separator, Check<Members>::columns, Check<Members>::kinds());
    if (options.header == CsvHeader::first_line || (options.header == CsvHeader::automatic && names_columns(table))) {
      table.drop_first_row();
      if (table.rows() == 0)
        throw DataError(table.path() + ": holds a header and no rows; it must hold at least one sample");
    }
    table_ = std::make_shared<detail::CsvTable const>(std::move(table));
  }

  [[nodiscard]] Index size() const noexcept { return table_->rows(); }

  [[nodiscard]] Row get(Index i) const {
    Row row{};
    auto at = table_->begin(i);
    int column = 0;
    auto const read_all = [&](auto& member) {
      for (auto& cell : detail::csv_cells(member)) read(cell, ++column, at);
    };
    std::apply([&](auto&... member) { (read_all(member), ...); }, members(row));
    return row;
  }

  /// Of the file's content.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return table_->fingerprint(); }

  /// For what a row's types cannot say, such as a range. @throws DataError "file:line: why"
  [[noreturn]] void refuse(Index i, std::string const& why) const { table_->fail(table_->begin(i), why); }

 private:
  static bool names_columns(detail::CsvTable const& table) {
    if (!Check<Members>::has_numbers) return false;
    Row row{};
    auto at = table.begin(0);
    bool any_number = false;
    auto const look = [&](auto& member) {
      for (auto& cell : detail::csv_cells(member)) {
        auto const field = table.field(at);
        at = field.next;
        if constexpr (detail::CsvNumber<std::remove_reference_t<decltype(cell)>>)
          any_number |= detail::parse_number(field.text, cell) != std::errc::invalid_argument;
      }
    };
    std::apply([&](auto&... member) { (look(member), ...); }, members(row));
    return !any_number;
  }

  template <class T>
  void read(T& cell, int column, std::size_t& at) const {
    auto const field = table_->field(at);
    if constexpr (detail::CsvNumber<T>) {
      auto const error = detail::parse_number(field.text, cell);
      if (error != std::errc{}) {
        table_->fail(at, "column " + std::to_string(column) + ": expected " + detail::csv_kind<T>() + ", found " +
                             detail::excerpt(field.text) +
                             (error == std::errc::result_out_of_range ? ", which is out of range for its type" : "") +
                             "; mend the field, or change the member's type or the header option");
      }
    } else {
      field.copy_to(cell);
    }
    at = field.next;
  }

  std::shared_ptr<detail::CsvTable const> table_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
