// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/parse_real.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/source/detail/csv_table.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Whether the first row of a CSV file names the columns.
enum class CsvHeader {
  automatic,   ///< a header if its number columns hold at least one word and no number, or if three or more columns
               ///< are numbered 0, 1, 2, …, as pandas names columns without names; a row type of only strings has no
               ///< header
  none,        ///< the first row is a sample
  first_line,  ///< the first row is not a sample
};

/// Options of CsvDataset: form of the lines, columns, encoding, memory.
struct CsvOptions {
  CsvHeader header = CsvHeader::automatic;  ///< whether the first line names columns
  /// Field separator. A blank means any number of blanks and tabs, also at the ends of a line, as in aligned columns.
  char separator = ',';
  /// Names of the columns that a row's members take, in the members' order. They are looked up in the first line, in
  /// any order and among other columns, for any value of `header`. Empty: the members take all columns in the file's
  /// order.
  std::vector<std::string> columns = {};
  bool may_be_empty = false;  ///< whether a header without rows is an empty dataset, such as one of many parts
  std::uint64_t max_held_bytes = detail::max_held_text;  ///< rows of a larger file are read on demand
  std::string encoding = "utf-8";  ///< as TextLinesOptions::encoding; separators and quotes are looked for in UTF-8
  /// Strings, such as "NA", that mean no number in the field of a std::optional. Empty fields always do, and "nan" for
  /// floating-point numbers.
  std::vector<std::string> missing = {};
  /// First character of lines to skip, such as '#'; '\0': none. One thread indexes a file with comments.
  char comment = '\0';
  char list_separator = ' ';  ///< between the elements of a std::vector in one field; consecutive blanks count as one
  int threads = 1;            ///< that index the rows; the index is equal for any number
  Progress* progress = nullptr;  ///< shows the progress of indexing; null: no display
};

namespace detail {

/// Replaces a row type that is no aggregate, so that its message is the only error.
struct NoRow {
  std::string text;
};

template <class Value>
concept CsvNumber = std::is_arithmetic_v<Value>;
template <class Value>
inline constexpr bool is_optional_number = false;
template <CsvNumber Value>
inline constexpr bool is_optional_number<std::optional<Value>> = true;
template <class Value>
inline constexpr bool is_csv_list = false;
template <class Value>
requires(CsvNumber<Value> ||
         std::same_as<Value, std::string>) inline constexpr bool is_csv_list<std::vector<Value>> = true;
template <class Value>
concept CsvCell =
    CsvNumber<Value> || is_optional_number<Value> || is_csv_list<Value> || std::same_as<Value, std::string>;
/// Whether the cell holds numbers, which distinguish a sample from a header.
template <class Value>
inline constexpr bool is_csv_number =
    !std::same_as<Value, std::string> && !std::same_as<Value, std::vector<std::string>>;

/// Returns the cells of a member: one, or one for each element. Each takes a column.
template <CsvCell Value>
std::span<Value, 1> csv_cells(Value& member) noexcept {
  return std::span<Value, 1>(&member, 1);
}
template <CsvCell Value, std::size_t Count>
std::span<Value, Count> csv_cells(std::array<Value, Count>& member) noexcept {
  return member;
}
/// Returns no cells for any other member type; CsvDataset rejects it.
template <class Value>
std::span<std::string, 0> csv_cells(Value&) noexcept {
  return {};
}

/// The columns that a member takes from the file.
template <class Value>
struct CsvKind {
  using Cells = decltype(csv_cells(std::declval<Value&>()));
  static constexpr std::size_t columns = Cells::extent;
  using Cell = typename Cells::element_type;
  static constexpr bool is_number = is_csv_number<Cell>;
  static std::string name() {
    return (columns == 1 ? "" : std::to_string(columns) + " x ") + (is_csv_list<Cell> ? "list of " : "") +
           (is_number ? "number" : "text") + (is_csv_list<Cell> ? "s" : "");
  }
};

template <class Value>
constexpr char const* csv_kind() {
  if constexpr (is_optional_number<Value> || is_csv_list<Value>) return csv_kind<typename Value::value_type>();
  if constexpr (std::same_as<Value, bool>) return "0, 1, true or false";
  if constexpr (std::floating_point<Value>) return "a number";
  return "a whole number";
}

/// Reads a number that fills the whole field, except for spaces around it.
template <CsvNumber Value>
std::errc parse_number(std::string_view text, Value& out) noexcept {
  auto const first = text.find_first_not_of(' ');
  text =
      first == std::string_view::npos ? std::string_view{} : text.substr(first, text.find_last_not_of(' ') + 1 - first);
  if constexpr (std::same_as<Value, bool>) {
    auto const is = [text](auto... words) { return ((text == words) || ...); };
    out = is("1", "true", "True", "TRUE");
    return out || is("0", "false", "False", "FALSE") ? std::errc{} : std::errc::invalid_argument;
  } else {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    auto const *const begin = text.data(), *const end = begin + text.size();
    auto const [stop, error] = [&] {
      if constexpr (std::floating_point<Value>)
        return parse_real(begin, end, out);
      else
        return std::from_chars(begin, end, out);
    }();
    return error == std::errc{} && stop != end ? std::errc::invalid_argument : error;
  }
}
/// Reads an optional number; absent for an empty field, for NaN, and for a field that is one of `missing`.
template <CsvNumber Value>
std::errc parse_number(std::string_view text, std::optional<Value>& out,
                       std::span<std::string const> missing) noexcept {
  out.reset();
  if (text.find_first_not_of(' ') == std::string_view::npos) return {};
  for (auto const& word : missing)
    if (text == word) return {};
  auto const error = parse_number(text, out.emplace());
  if constexpr (std::floating_point<Value>)
    if (error == std::errc{} && std::isnan(*out)) out.reset();
  return error;
}
template <CsvNumber Value>
std::errc parse_number(std::string_view text, Value& out, std::span<std::string const>) noexcept {
  return parse_number(text, out);
}
/// Reads the elements of a list's field between separators; no elements for an empty field.
template <class Value>
std::errc parse_list(std::string_view text, char separator, std::vector<Value>& out) {
  auto const blank = separator == ' ';
  out.clear();
  if (text.find_first_not_of(' ') == std::string_view::npos) return {};
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find(separator, begin), text.size());
    auto const part = text.substr(begin, end - begin);
    begin = end + 1;
    if (blank && part.empty()) continue;
    Value value{};
    if constexpr (std::same_as<Value, std::string>)
      value = part;
    else if (auto const error = parse_number(part, value); error != std::errc{})
      return error;
    out.push_back(std::move(value));
  }
  return {};
}
template <class Value>
bool holds_number(Value const& cell) noexcept {
  if constexpr (is_optional_number<Value>)
    return cell.has_value();
  else if constexpr (is_csv_list<Value>)
    return !cell.empty();
  else
    return true;
}

}  // namespace detail

/// Reads the rows of a CSV file as samples of type `Row`, an aggregate with one member per column. The members have the
/// file's order, or the order of `CsvOptions::columns`. Types of members:
/// - std::string or a number
/// - std::optional of a number, if a field may be empty or one of `CsvOptions::missing`
/// - std::vector of numbers or strings, if one field holds several, separated by `CsvOptions::list_separator`
/// - std::array of N of these, for N columns
///
/// The constructor reads and indexes the file, with eight bytes for each row; `get` converts a row. Copies share index
/// and text. Thread-safe. Each error names file, line and column.
/// @throws DataError from the constructor if the file cannot be read, is not text in its encoding, or has no rows
/// @throws DataError from the constructor if a row has another number of columns, or a quote does not close
/// @throws DataError from the constructor unless each name of `CsvOptions::columns` occurs exactly once
/// @throws DataError from `get` if a number cannot be read, or the file has changed
/// @throws ConfigError if the number of names differs from the number of columns of the row type, for an unknown
/// encoding, or if `CsvOptions::comment` is the separator or a quote
/// @source RFC 4180
template <class Row>
class CsvDataset {
  static_assert(Aggregate<Row>,
                "Lockstep: the row type of CsvDataset is not an aggregate (a struct without constructors)");
  using Members = MembersOf<std::conditional_t<Aggregate<Row>, Row, detail::NoRow>>;

  template <class>
  struct Check;
  template <class... Member>
  struct Check<std::tuple<Member&...>> {
    static_assert(
        ((detail::CsvKind<Member>::columns > 0) && ...),
        "Lockstep: the members of a row of CsvDataset are std::string, bool, integers or floating-point numbers, "
        "std::optional of a number, std::vector of numbers or strings, or std::array of one of these; convert to other "
        "types with data::Transform");
    static constexpr std::size_t columns = (detail::CsvKind<Member>::columns + ...);
    static constexpr bool has_numbers = (detail::CsvKind<Member>::is_number || ...);
    static std::string kinds() {
      std::string out;
      ((out += (out.empty() ? "" : ", ") + detail::CsvKind<Member>::name()), ...);
      return out;
    }
  };

 public:
  /// Opens the file and indexes its rows.
  explicit CsvDataset(std::string path, CsvOptions const& options = {})
      : missing_(options.missing), list_separator_(options.list_separator) {
    auto table = open(std::move(path), options);
    if (options.columns.empty() &&
        (options.header == CsvHeader::first_line || (options.header == CsvHeader::automatic && names_columns(*table))))
      table->drop_first_row();
    if (table->rows() == 0 && !options.may_be_empty)
      throw DataError(table->path() +
                      ": holds a header and no rows; it must hold at least one sample; if it may be empty, set "
                      "CsvOptions::may_be_empty");
    table_ = std::move(table);
  }

  /// Returns the number of rows, without the header.
  [[nodiscard]] Index size() const noexcept { return table_->rows(); }

  /// Parses row i of [0, size()).
  [[nodiscard]] Row get(Index i) const {
    Row out{};
    auto row = table_->row(i);
    auto const named = table_->named(row);
    std::size_t place = 0;
    auto const read_all = [&](auto& member) {
      for (auto& cell : detail::csv_cells(member)) {
        read(cell, table_->number(place), named.empty() ? row.next() : named[place], row);
        ++place;
      }
    };
    std::apply([&](auto&... member) { (read_all(member), ...); }, members(out));
    row.expect_end();
    return out;
  }

  /// Returns a hash of the file's content.
  [[nodiscard]] std::uint64_t fingerprint() const { return table_->fingerprint(); }

  /// Rejects row i for a reason that its types cannot express, such as a range. @throws DataError "file:line: why"
  [[noreturn]] void refuse(Index i, std::string const& why) const { table_->fail(i, why); }

 private:
  static std::shared_ptr<detail::CsvTable> open(std::string path, CsvOptions const& options) {
    using Checked = Check<Members>;
    if (options.comment != '\0' && (options.comment == options.separator || options.comment == '"'))
      throw ConfigError(std::string("CsvDataset: CsvOptions::comment is '") + options.comment +
                        "', as the separator or a quote; use another, such as '#'");
    auto const make = [&](auto const&... columns) {
      return std::make_shared<detail::CsvTable>(
          detail::CsvSource{std::move(path), options.separator, options.encoding, options.comment},
          options.max_held_bytes, detail::CsvThreads{options.threads, options.progress}, columns...);
    };
    if (options.columns.empty()) return make(Checked::columns, Checked::kinds());
    if (options.columns.size() != Checked::columns)
      throw ConfigError("CsvDataset: CsvOptions::columns has " + std::to_string(options.columns.size()) +
                        " names, and the row type " + std::to_string(Checked::columns) + " columns (" +
                        Checked::kinds() + "); give one name for each");
    return make(options.columns);
  }

  /// Whether the first line has words but no numbers in columns of numbers.
  [[nodiscard]] bool names_columns(detail::CsvTable const& table) const {
    if (!Check<Members>::has_numbers) return false;
    Row names{};
    auto row = table.row(0);
    bool any_number = false, any_word = false;
    auto const look = [&](auto& member) {
      for (auto& cell : detail::csv_cells(member)) {
        auto const field = row.next();
        if constexpr (detail::is_csv_number<std::remove_reference_t<decltype(cell)>>) {
          bool const reads = parse(field, cell) != std::errc::invalid_argument;
          any_word |= !reads;
          any_number |= reads && detail::holds_number(cell);
        }
      }
    };
    std::apply([&](auto&... member) { (look(member), ...); }, members(names));
    return (any_word && !any_number) || numbers_columns(table);
  }

  /// Whether the first of several lines numbers the columns from 0, possibly after an empty field for pandas' index.
  /// Two such numbers may as well be a sample.
  [[nodiscard]] static bool numbers_columns(detail::CsvTable const& table) {
    constexpr auto columns = Check<Members>::columns;
    auto row = table.row(0);
    std::size_t expected = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      auto const text = row.next().text;
      if (column == 0 && text.empty()) continue;
      if (text != std::to_string(expected++)) return false;
    }
    return expected >= 3 && table.rows() >= 2;
  }

  template <class Value>
  std::errc parse(detail::CsvField const& field, Value& cell) const {
    if constexpr (detail::is_csv_list<Value>) {
      if (!field.doubled) return detail::parse_list(field.text, list_separator_, cell);
      std::string text;
      field.copy_to(text);
      return detail::parse_list(text, list_separator_, cell);
    } else {
      return detail::parse_number(field.text, cell, missing_);
    }
  }
  template <class Value>
  void read(Value& cell, std::size_t number, detail::CsvField const& field, detail::CsvRow const& row) const {
    if constexpr (!std::same_as<Value, std::string>) {
      auto const error = parse(field, cell);
      if (error != std::errc{}) {
        row.fail(field.begin,
                 "column " + std::to_string(number) + ": expected " +
                     (detail::is_csv_list<Value> ? "a list, each " : "") + detail::csv_kind<Value>() + ", found " +
                     detail::excerpt(field.text) +
                     (error == std::errc::result_out_of_range ? ", which is out of range for its type" : "") +
                     (field.text.empty() && !detail::is_csv_list<Value>
                          ? "; fill the field, or make the member a std::optional number, which may be absent"
                          : "; correct the field, or change the member's type or the header option") +
                     (detail::is_optional_number<Value> ? ", or name the word in CsvOptions::missing" : "") +
                     (detail::is_csv_list<Value> ? ", or set CsvOptions::list_separator" : "") + row.comment_remedy());
      }
    } else {
      field.copy_to(cell);
    }
  }

  std::shared_ptr<detail::CsvTable const> table_;
  std::vector<std::string> missing_;
  char list_separator_;
};

}}}  // namespace lockstep::data
