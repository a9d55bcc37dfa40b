// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/json.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using lockstep::DataError;
using namespace lockstep::json;

namespace {
std::string message(std::string_view text) {
  try {
    (void)parse(text, "file.json");
  } catch (DataError const& error) {
    return error.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("every kind of value is parsed") {
  CHECK(parse("null").is_null());
  CHECK(parse("true") == Value(true));
  CHECK(parse(" false\n") == Value(false));
  CHECK(parse("0") == Value(0));
  CHECK(parse("-12") == Value(-12));
  CHECK(parse("1.5e3") == Value(1500.0));
  CHECK(parse("1E-2") == Value(0.01));
  CHECK(parse("\"\"") == Value(""));
  CHECK(parse("[]") == Value(Array{}));
  CHECK(parse("{}") == Value(Object{}));
  CHECK(parse("\t[1, [ ] ,\r\n{\"a\":null}]") == Value(Array{1, Array{}, Object{{"a", nullptr}}}));
  CHECK(parse("{\"b\": 1, \"a\": [2.0]}") == Value(Object{{"b", 1}, {"a", Array{2.0}}}));
}

TEST_CASE("integers and doubles stay distinct, and keep all their bits") {
  CHECK(parse("1") != parse("1.0"));
  CHECK(parse("1.0").is<double>());
  CHECK(parse("1").is<std::int64_t>());
  CHECK(parse("9223372036854775807").integer() == std::numeric_limits<std::int64_t>::max());
  CHECK(parse("-9223372036854775808").integer() == std::numeric_limits<std::int64_t>::min());
  CHECK(parse("9007199254740993").integer() == 9007199254740993);  // no double has this value
  CHECK(parse("1.7976931348623157e308").number() == std::numeric_limits<double>::max());
  CHECK(parse("5e-324").number() == std::numeric_limits<double>::denorm_min());
  CHECK(std::signbit(parse("-0.0").number()));
  CHECK(parse("3").number() == 3.0);
}

TEST_CASE("a duplicate among many names is found") {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i) text += "\"name" + std::to_string(i) + "\":" + std::to_string(i) + ",\n";
  CHECK(parse(text + "\"end\": 1}").object().size() == 100001);
  try {
    static_cast<void>(parse(text + "\"name7\": 1, \"name3\": 2}"));
    FAIL("nothing was refused");
  } catch (DataError const& error) {
    CHECK(std::string(error.what()).ends_with("line 100001, column 1: the member \"name7\" appears twice"));
  }
}

TEST_CASE("strings are parsed") {
  CHECK(parse(R"("\"\\\/\b\f\n\r\t")").string() == "\"\\/\b\f\n\r\t");
  CHECK(parse(R"("\u0041\u00e9\u20AC\ud83d\ude00")").string() == "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(parse(R"("\u0000")").string() == std::string(1, '\0'));
  CHECK(parse(R"("\u007f\u0080\u07ff\u0800\uffff")").string() == "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF");
  CHECK(parse(R"("\ud7ff\ue000\ud800\udc00\udbff\udfff")").string() ==
        "\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  CHECK(parse("\"\xC3\xA9\xF4\x8F\xBF\xBF\"").string() == "\xC3\xA9\xF4\x8F\xBF\xBF");
}

TEST_CASE("invalid texts are refused with their messages") {
  std::vector<std::pair<std::string, std::string>> const cases{
      {"", "line 1, column 1: a value is needed, not the end of the text"},
      {"  \n ", "line 2, column 2: a value is needed, not the end of the text"},
      {"{\"a\": 1,\n  \"b\" 2}", "line 2, column 7: a ':' is needed after a member's name, not '2'"},
      {"{\"a\": 1,}", "line 1, column 9: a member's name in quotes is needed, not '}'"},
      {"{a: 1}", "line 1, column 2: a member's name in quotes is needed, not 'a'"},
      {"{\"a\": 1", "line 1, column 8: a ',' or '}' is needed after a member, not the end of the text"},
      {"{\"a\": 1, \"b\": 2, \"a\": 3}", "line 1, column 18: the member \"a\" appears twice"},
      {"[1 2]", "line 1, column 4: a ',' or ']' is needed after an element, not '2'"},
      {"[1,]", "line 1, column 4: a value is needed, not ']'"},
      {"1 2", "line 1, column 3: the value has ended, and there is '2' after it"},
      {"truth", "line 1, column 1: a value is needed, not 't'"},
      {"nan", "line 1, column 1: a value is needed, not 'n'"},
      {"Infinity", "a value is needed, and JSON has no Infinity"},
      {"-", "a value is needed, not '-'"},
      {"+1", "a value is needed, not '+'"},
      {".5", "a value is needed, not '.'"},
      {"01", "a number begins with a needless 0"},
      {"1.", "a digit is needed after the '.', not the end of the text"},
      {"1.x", "a digit is needed after the '.', not 'x'"},
      {"1e", "a digit is needed in the exponent, not the end of the text"},
      {"1e+", "a digit is needed in the exponent"},
      {" 9223372036854775808", "column 2: 9223372036854775808 is beyond the range of a signed 64-bit integer"},
      {"1e999", "1e999 is beyond the range of a double"},
      {"'a'", "a value is needed, not '''"},
      {"// c\n1", "a value is needed, not '/'"},
      {"\"abc", "column 5: the text ends inside a string"},
      {"\"a\nb\"", "a string holds the control character byte 10; escape it"},
      {"\"a\x1f\"", "a string holds the control character byte 31; escape it"},
      {"\"\\x\"", "a '\\' is followed by 'x'"},
      {"\"\\u12g4\"", "four hexadecimal digits"},
      {"\"\\u-123\"", "four hexadecimal digits"},
      {"\"\\u12", "four hexadecimal digits"},
      {"\"\\udc00\"", "second half of a surrogate pair comes without the first"},
      {"\"\\ud800x\"", "first half of a surrogate pair comes without the second"},
      {"\"\\ud800\\n\"", "first half of a surrogate pair comes without the second"},
      {"\"\\ud800\\ue000\"", "first half of a surrogate pair comes without the second"},
      {"\"\\ud800\\u0041\"", "first half of a surrogate pair comes without the second"},
      {"\"\xFF\"", "bytes that are not UTF-8"},
      {"\"\xC0\x80\"", "bytes that are not UTF-8"},
      {"\"\xE0\x9F\xBF\"", "bytes that are not UTF-8"},
      {"\"\xED\xA0\x80\"", "bytes that are not UTF-8"},
      {"\"\xF0\x8F\xBF\xBF\"", "bytes that are not UTF-8"},
      {"\"\xF5\x80\x80\x80\"", "bytes that are not UTF-8"},
      {"\"\xF4\x90\x80\x80\"", "bytes that are not UTF-8"},
      {"\"\xE2\x82\"", "bytes that are not UTF-8"},
      {"\xEF\xBB\xBF{}", "a value is needed, not '\xEF\xBB\xBF'"},
      {std::string("1\0", 2), "the value has ended, and there is byte 0 after it"},
      {"[\"\xC3\xA9\", x]", "column 7: a value is needed, not 'x'"},  // columns count characters
  };
  for (auto const& refused : cases) {
    auto const& text = refused.first;
    auto const& printed = refused.second;
    CAPTURE(text);
    CHECK_MESSAGE(message(text).find(printed) != std::string::npos, message(text));
    CHECK(message(text).starts_with("file.json: line "));
  }
}

TEST_CASE("text after the value is not read") {
  std::string_view const digits = "\"\\u0041", euro = "\"\xE2\x82\xAC";
  CHECK(message(digits.substr(0, 5)).find("four hexadecimal digits") != std::string::npos);
  CHECK(message(euro.substr(0, 3)).find("bytes that are not UTF-8") != std::string::npos);
}

TEST_CASE("depth is bounded, and counts open arrays and objects") {
  std::string wide = "[[]";
  for (int i = 0; i < 300; ++i) wide += ",[{}]";
  CHECK(message(wide + "]") == "accepted");
  CHECK(message(std::string(256, '[') + std::string(256, ']')) == "accepted");
  CHECK(message(std::string(257, '[') + std::string(257, ']')).find("nested more than 256 deep") != std::string::npos);
  CHECK(message(std::string(1'000'000, '[')).find("nested more than 256 deep") != std::string::npos);
}

TEST_CASE("no prefix of a text is accepted, and no byte of it may be dropped unnoticed") {
  std::string const text = R"({"a":[1.5e-3,"\u00e9\ud83d\ude00\n",true],"b":{"c":null}})";
  CHECK(message(text) == "accepted");
  for (std::size_t length = 0; length < text.size(); ++length) CHECK(message(text.substr(0, length)) != "accepted");
  auto const whole = parse(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto cut = text;
    cut.erase(i, 1);
    CAPTURE(cut);
    CHECK((message(cut) != "accepted" || parse(cut) != whole));
  }
}

TEST_CASE("a number too small for a double is 0, one too large is refused") {
  CHECK(parse("1e-400").number() == 0);
  CHECK(parse("0.0000001e-320").number() == 0);
  CHECK(std::signbit(parse("-1e-400").number()));
  CHECK(parse("1000000e-310").number() == 1e-304);
  CHECK(message("0.1e400") != "accepted");
  CHECK(message("1e99999999999999999999") != "accepted");
  CHECK(parse("1e-99999999999999999999").number() == 0);
}

TEST_CASE("errors of values get the name of their file, and other errors stay") {
  auto const value = parse("{}", "a.json");
  CHECK_THROWS_WITH_AS(with_file_name("a.json", [&] { static_cast<void>(value.array()); }),
                       "a.json: json: an array is needed, not object", DataError);
  CHECK_THROWS_WITH_AS(with_file_name("a.json", [] { throw DataError("b: damaged"); }), "b: damaged", DataError);
  CHECK(&with_file_name("a.json", [&]() -> Value const& { return value; }) == &value);
}
