// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/link_flags.hpp>

#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct Link {
  scaling::Link link = scaling::Link::automatic;
  std::optional<double> alpha_us, beta_gb_s;

  explicit Link(std::vector<std::string> words) {
    app::Command command("program");
    app::add_link(command, link, alpha_us, beta_gb_s);
    words.insert(words.begin(), "program");
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    static_cast<void>(command.parse(static_cast<int>(arguments.size()), arguments.data()));
  }
};

}  // namespace

TEST_CASE("flags describe a link by name or by numbers, and are optional") {
  Link const none({});
  CHECK(none.link == scaling::Link::automatic);
  CHECK_FALSE(none.alpha_us);
  CHECK_FALSE(none.beta_gb_s);
  Link const given({"--link", "network_100", "--alpha-us", "2.5", "--beta-gb-s", "11"});
  CHECK(given.link == scaling::Link::network_100);
  CHECK(given.alpha_us == 2.5);
  CHECK(given.beta_gb_s == 11);
  CHECK_THROWS_AS(Link({"--link", "rope"}), ConfigError);
  CHECK_THROWS_AS(Link({"--beta-gb-s", "0"}), ConfigError);
}
