// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Word of a command line for a value of an enum.
struct OptionWord {
  std::string_view word;  ///< as users write it
  Index value;            ///< of the enum, as an integer

  /// Stores a word and the value of an enum. `text` must outlive it.
  template <class Value>
  constexpr OptionWord(std::string_view text, Value of) : word(text), value(static_cast<Index>(of)) {}
};

/// Content of an option's variable: nothing (an empty optional), a whole number, a number, or a string. Switches and
/// enums are whole numbers. Not a std::variant, which would be expensive to compile.
class OptionContent {
 public:
  OptionContent() = default;
  /// Makes a whole number.
  OptionContent(Index value) noexcept : kind_(Kind::integer), integer_(value) {}
  /// Makes a number.
  OptionContent(double value) noexcept : kind_(Kind::number), number_(value) {}
  /// Makes a string.
  OptionContent(std::string value) noexcept : kind_(Kind::text), text_(std::move(value)) {}
  /// Makes a string.
  OptionContent(char const* value) : OptionContent(std::string(value)) {}

  /// Returns whether there is no content.
  [[nodiscard]] bool empty() const noexcept { return kind_ == Kind::nothing; }
  /// Returns the whole number, or null for any other content.
  [[nodiscard]] Index const* integer() const noexcept { return kind_ == Kind::integer ? &integer_ : nullptr; }
  /// Returns the floating-point number, or null for any other content, also for a whole number.
  [[nodiscard]] double const* number() const noexcept { return kind_ == Kind::number ? &number_ : nullptr; }
  /// Returns the string, or null for any other content.
  [[nodiscard]] std::string const* text() const noexcept { return kind_ == Kind::text ? &text_ : nullptr; }

  /// Returns whether kinds and values are equal.
  [[nodiscard]] bool operator==(OptionContent const& other) const = default;

 private:
  enum class Kind { nothing, integer, number, text };
  Kind kind_ = Kind::nothing;
  Index integer_ = 0;
  double number_ = 0;
  std::string text_;
};

/// Reference to the variable of an option, which must outlive it: bool, an integer, double, std::string, an enum, or a
/// std::optional of one of them.
class OptionVariable {
 public:
  /// Kind of a variable, or of the value in its std::optional.
  enum class Kind {
    boolean,  ///< bool
    integer,  ///< an integer or an enum, except std::uint64_t
    natural,  ///< std::uint64_t
    real,     ///< a floating-point type
    text,     ///< std::string
  };

  /// Refers to a variable. A const variable can only be read.
  /// @param words words for the values of an enum, which must outlive this
  template <class Field>
  OptionVariable(Field& variable, std::span<OptionWord const> words = {}) noexcept
      : variable_(const_cast<std::remove_const_t<Field>*>(&variable)),
        words_(words),
        kind_(kind_of<std::remove_const_t<Field>>()),
        read_(&read_as<std::remove_const_t<Field>>),
        write_(std::is_const_v<Field> ? nullptr : &write_as<std::remove_const_t<Field>>) {}

  /// Returns the kind of the variable.
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// Returns the words for the values of an enum.
  [[nodiscard]] std::span<OptionWord const> words() const noexcept { return words_; }
  /// Returns this variable with other words.
  [[nodiscard]] OptionVariable with_words(std::span<OptionWord const> words) const noexcept {
    auto other = *this;
    other.words_ = words;
    return other;
  }
  /// Returns the variable's content: nothing for an empty optional.
  [[nodiscard]] OptionContent read() const { return read_(variable_); }
  /// Sets the variable, which must not be const. Nothing resets an optional, and leaves other variables as they are.
  /// @throws std::logic_error for a content of another kind
  void write(OptionContent const& content) const { write_(variable_, content); }
  /// Returns the bool itself.   @pre kind() is boolean, and the variable is no optional
  [[nodiscard]] bool& boolean() const noexcept { return *static_cast<bool*>(variable_); }
  /// Returns the string itself.   @pre kind() is text, and the variable is no optional
  [[nodiscard]] std::string& string() const noexcept { return *static_cast<std::string*>(variable_); }
  /// Returns the content as messages and run.json have it: the word of an enum, or the shortest string that reads back
  /// as an equal number. Empty for nothing.
  [[nodiscard]] std::string text() const;

 private:
  template <class Field>
  struct Plain {
    using type = Field;
    static constexpr bool optional = false;
  };
  template <class Field>
  struct Plain<std::optional<Field>> {
    using type = Field;
    static constexpr bool optional = true;
  };

  template <class Field>
  static constexpr Kind kind_of() noexcept {
    using Value = typename Plain<Field>::type;
    if constexpr (std::is_same_v<Value, bool>)
      return Kind::boolean;
    else if constexpr (std::is_floating_point_v<Value>)
      return Kind::real;
    else if constexpr (std::is_same_v<Value, std::string>)
      return Kind::text;
    else
      return std::is_same_v<Value, std::uint64_t> ? Kind::natural : Kind::integer;
  }
  template <class Field>
  static OptionContent content_of(Field const& value) {
    if constexpr (std::is_floating_point_v<Field>)
      return static_cast<double>(value);
    else if constexpr (std::is_same_v<Field, std::string>)
      return value;
    else
      return static_cast<Index>(value);
  }
  template <class Field>
  static OptionContent read_as(void const* variable) {
    auto const& value = *static_cast<Field const*>(variable);
    if constexpr (Plain<Field>::optional)
      return value ? content_of(*value) : OptionContent();
    else
      return content_of(value);
  }
  template <class Field>
  static void write_as(void* variable, OptionContent const& content) {
    using Value = typename Plain<Field>::type;
    auto& value = *static_cast<Field*>(variable);
    if (content.empty()) {
      if constexpr (Plain<Field>::optional) value.reset();
    } else if constexpr (std::is_floating_point_v<Value>) {  // NOLINT(bugprone-branch-clone): other functions
      value = present(content.number());
    } else if constexpr (std::is_same_v<Value, std::string>) {
      value = present(content.text());
    } else {
      value = static_cast<Value>(present(content.integer()));
    }
  }
  template <class Value>
  static Value const& present(Value const* value) {
    if (!value) refuse_kind();
    return *value;
  }
  [[noreturn, gnu::cold]] static void refuse_kind();

  void* variable_;
  std::span<OptionWord const> words_;
  Kind kind_;
  OptionContent (*read_)(void const*);
  void (*write_)(void*, OptionContent const&);
};

/// Values that an option may have.
struct OptionRange {
  double least = -std::numeric_limits<double>::infinity();  ///< smallest value
  double most = std::numeric_limits<double>::infinity();    ///< largest value, see `below`
  bool below = false;                                       ///< whether `most` itself is not allowed
  std::string_view rule = {};  ///< end of the error message, "it must be …"; empty: by the limits
};

/// Whether a comparison of two runs names different values.
enum class Compared {
  yes,  ///< the default
  no,   ///< for options of the place, of the speed and of files
};

/// Flag of the trainers for an option. Configuration files use its names, too, without dashes.
struct OptionFlag {
  std::string_view names = {};             ///< "--lr,--learning-rate"; empty: the option has no flag
  std::string_view heading = {};           ///< heading in --help
  std::string_view help = {};              ///< noun phrase; range and default follow it, and {} is the default
  std::optional<OptionRange> range = {};   ///< if it differs from the option's own
  std::span<OptionWord const> words = {};  ///< if the variable has none, because messages have its number
  Compared compared = Compared::yes;       ///< whether a comparison of two runs names different values
  std::string_view synonyms = {};          ///< names in other trainers, with - and without leading dashes, by spaces
};

/// Whether run.json has an option, apart from its settings, which are the flags.
enum class Recorded {
  no,          ///< never
  if_changed,  ///< by its name, if it does not have its default
};

/// Descriptor of an option of an aggregate. Flags, configuration files, checks, the comparison between ranks and
/// run.json follow from it.
struct OptionDescriptor {
  std::string_view name = {};        ///< of the member, as error messages have it: "schedule.min_factor"
  OptionVariable variable;           ///< where the option's value is
  OptionRange range = {};            ///< of the value; without limits by default
  std::string_view agreement = {};   ///< how the error calls it if ranks have different values; empty: they may differ
  Recorded recorded = Recorded::no;  ///< whether run.json has the option
  OptionFlag flag = {};              ///< of the trainers; without names by default
};

/// The options of an aggregate. A function `OptionList describe(Aggregate&)` next to the aggregate has a descriptor for
/// each, and is the only place for an option besides its member and the code that uses it.
class OptionList {
 public:
  OptionList() = default;
  /// @param owner what the options are of, as error messages have it: "fit"
  OptionList(std::string_view owner, std::vector<OptionDescriptor> options);

  /// Returns the owner that the constructor got.
  [[nodiscard]] std::string_view owner() const noexcept { return owner_; }
  /// Returns the first descriptor.
  [[nodiscard]] auto begin() const noexcept { return options_.begin(); }
  /// Returns the end of the descriptors.
  [[nodiscard]] auto end() const noexcept { return options_.end(); }

  /// Returns the option of a name, or null.
  [[nodiscard]] OptionDescriptor const* find(std::string_view name) const noexcept;
  /// Returns the option of a name.   @throws std::out_of_range with the name if there is none
  [[nodiscard]] OptionDescriptor const& at(std::string_view name) const;
  /// Checks the ranges in order.   @throws ConfigError "owner: name is value; it must be …"
  void check_ranges() const;
  /// Sets the options for which `other` has one of equal name with a content. An empty string is no content.
  void assign(OptionList const& other) const;
  /// Returns name and text of each option with Recorded::if_changed whose content differs from `initial`'s.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> changed(OptionList const& initial) const;

 private:
  std::string_view owner_;
  std::vector<OptionDescriptor> options_;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/option_descriptor.ipp>
#endif
