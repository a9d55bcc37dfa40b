// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/json_writer.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>
#include <lockstep/core/json.hpp>

using namespace lockstep::json;
using lockstep::DataError;
using lockstep::Error;

namespace {

std::string written(Value const& value, Layout layout = Layout::compact) {
  Writer writer(layout);
  writer.value(value);
  return writer.text();
}

rc::Gen<std::string> any_text() {
  return rc::gen::map(rc::gen::container<std::vector<std::uint32_t>>(rc::gen::oneOf(
                          rc::gen::inRange<std::uint32_t>(0, 0x80), rc::gen::inRange<std::uint32_t>(0x80, 0xD800),
                          rc::gen::inRange<std::uint32_t>(0xE000, 0x110000))),
                      [](std::vector<std::uint32_t> const& codes) {
                        std::string out;
                        for (auto code : codes) lockstep::append_utf8(out, code);
                        return out;
                      });
}

rc::Gen<Value> any_value(int depth) {
  auto const to_value = [](auto x) { return Value(std::move(x)); };
  auto const plain = rc::gen::oneOf(
      rc::gen::just(Value()), rc::gen::map(rc::gen::arbitrary<bool>(), to_value),
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), to_value), rc::gen::map(any_text(), to_value),
      rc::gen::map(rc::gen::map(rc::gen::suchThat(rc::gen::arbitrary<std::uint64_t>(),
                                                  [](auto bits) { return std::isfinite(std::bit_cast<double>(bits)); }),
                                [](auto bits) { return std::bit_cast<double>(bits); }),
                   to_value));
  if (depth == 0) return plain;
  auto const array = rc::gen::map(rc::gen::resize(5, rc::gen::container<Array>(any_value(depth - 1))), to_value);
  auto const object = rc::gen::map(
      rc::gen::resize(5, rc::gen::container<std::map<std::string, Value>>(any_text(), any_value(depth - 1))),
      [](std::map<std::string, Value> const& members) { return Value(Object(members.begin(), members.end())); });
  return rc::gen::oneOf(plain, array, object);
}

/// A value that RapidCheck prints as its text, if a case fails.
struct Any {
  Value value;
};
void showValue(Any const& any, std::ostream& out) { out << written(any.value); }

}  // namespace

TEST_CASE("written values are read back equal, in both layouts") {
  auto const any = rc::gen::map(any_value(3), [](Value value) { return Any{std::move(value)}; });
  CHECK(rc::check("parse(write(v)) == v", [&any] {
    Any const drawn = *any;
    RC_ASSERT(parse(written(drawn.value)) == drawn.value);
    RC_ASSERT(parse(written(drawn.value, Layout::indented)) == drawn.value);
    RC_ASSERT(written(parse(written(drawn.value))) == written(drawn.value));
  }));
}

TEST_CASE("parts make a text") {
  Writer writer;
  writer.begin_object().member("a", 1).member("flag", true).key("list").begin_array();
  for (int i = 0; i < 2; ++i) writer.begin_object().member("i", i).end_object();
  writer.end_array().member("none", nullptr).member("name", std::string("x")).member("e", std::vector<int>{});
  writer.member("numbers", std::vector<double>{1, 0.5}).member("names", std::vector<std::string>{"p", "q"});
  writer.member("object", Object{{"k", Array{1, 2}}}).end_object();
  CHECK(writer.text() ==
        R"({"a":1,"flag":true,"list":[{"i":0},{"i":1}],"none":null,"name":"x","e":[],"numbers":[1.0,0.5],)"
        R"("names":["p","q"],"object":{"k":[1,2]}})");
  writer.clear();
  writer.value("again");
  CHECK(writer.text() == "\"again\"");
  writer.clear();
  writer.begin_object().key("left open");
  writer.clear();
  writer.begin_object().member("a", 1).end_object();
  CHECK(writer.text() == R"({"a":1})");
}

TEST_CASE("indented layout") {
  Writer writer(Layout::indented);
  writer.value(parse(R"({"a":1,"list":[1,2],"objects":[{"x":1},{"x":2}],"none":{},"empty":[]})"));
  CHECK(writer.text() == R"({
  "a": 1,
  "list": [1, 2],
  "objects": [
    {
      "x": 1
    },
    {
      "x": 2
    }
  ],
  "none": {},
  "empty": []
}
)");
}

TEST_CASE("numbers have the fewest digits that read back to equal bits") {
  auto const text = [](auto value) {
    Writer writer;
    writer.value(value);
    return writer.text();
  };
  CHECK(text(0.1) == "0.1");
  CHECK(text(0.1f) == "0.1");
  CHECK(text(1.0) == "1.0");
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(1e22) == "1e+22");
  CHECK(text(5e-324) == "5e-324");
  CHECK(text(1.0 / 3) == "0.3333333333333333");
  CHECK(text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(text(std::uint8_t{200}) == "200");
}

TEST_CASE("text is escaped where necessary, and made valid UTF-8") {
  CHECK(written("\"\\\b\f\n\r\t\x01/\x7F") == "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001/\x7F\"");
  CHECK(written(std::string(1, '\0')) == "\"\\u0000\"");
  CHECK(written("\xC3\xA9") == "\"\xC3\xA9\"");
  CHECK(written("a\xFF\xE2\x82z") == "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

TEST_CASE("nan and infinity are refused by name") {
  Writer writer;
  writer.begin_object().key("final").begin_object();
  CHECK_THROWS_WITH_AS(writer.member("loss", std::nan("")), doctest::Contains("\"final\".\"loss\" is nan"), DataError);
  CHECK_THROWS_WITH_AS(Writer().value(-INFINITY), doctest::Contains("the value is infinite"), DataError);
  Writer list;
  list.begin_array().value_or_null(std::nan("")).value_or_null(-INFINITY).value_or_null(0.5).end_array();
  CHECK(list.text() == "[null,null,0.5]");
}

TEST_CASE("a duplicate among many members is refused") {
  Writer writer;
  writer.begin_object();
  for (int i = 0; i < 100000; ++i) writer.member("name" + std::to_string(i), i);
  CHECK_THROWS_WITH_AS(writer.key("name7"), doctest::Contains("\"name7\" is written twice"), Error);
}

TEST_CASE("calls in the wrong order are refused") {
  auto const fails = [](auto&& call, char const* printed) {
    Writer writer;
    CHECK_THROWS_WITH_AS(call(writer), doctest::Contains(printed), Error);
  };
  fails([](Writer& w) { w.begin_object().value(1); }, "needs a name");
  fails([](Writer& w) { w.key("a"); }, "out of place");
  fails([](Writer& w) { w.begin_array().key("a"); }, "out of place");
  fails([](Writer& w) { w.begin_object().key("a").key("b"); }, "out of place");
  fails([](Writer& w) { w.begin_object().member("a", 1).member("a", 2); }, "written twice");
  fails([](Writer& w) { w.begin_object().end_array(); }, "closes nothing");
  fails([](Writer& w) { w.begin_object().key("a").end_object(); }, "closes nothing");
  fails([](Writer& w) { w.end_object(); }, "closes nothing");
  fails([](Writer& w) { w.value(1).value(2); }, "only one value fits");
  fails([](Writer& w) { (void)w.text(); }, "nothing was written");
  fails([](Writer& w) { (void)w.begin_object().text(); }, "is open");
}
