#include "egress/host_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::egress {
namespace {

std::string text(const NameServer& server) {
  return to_string(server.address) + " " + std::to_string(server.port);
}

TEST(NameServers, AreAddresses) {
  EXPECT_EQ(text(*parse_name_server("1.1.1.1")), "1.1.1.1 53");
  EXPECT_EQ(text(*parse_name_server(" 1.1.1.1:5353 ")), "1.1.1.1 5353");
  EXPECT_EQ(text(*parse_name_server("2001:db8::1")), "2001:db8::1 53");
  EXPECT_EQ(text(*parse_name_server("[2001:db8::1]")), "2001:db8::1 53");
  EXPECT_EQ(text(*parse_name_server("[2001:db8::1]:54")), "2001:db8::1 54");
  for (const char* wrong : {"", "dns.example", "1.1.1.1:", "1.1.1.1:0", "1.1.1.1:70000", "1.1.1.1:x",
                            "[2001:db8::1", "[2001:db8::1]x", "[]", "[", ":53", "1.1.1"}) {
    EXPECT_FALSE(parse_name_server(wrong)) << wrong;
  }
}

TEST(NameServers, OfTheHostAndNothingElse) {
  std::vector<std::string> found;
  for (const NameServer& server : name_servers_of(
           "# comment\nsearch corp.example\nnameserver 127.0.0.53\n nameserver\t10.0.0.2 \n"
           "nameserver\nnameservers 1.2.3.4\nnameserver dns.example\noptions ndots:5\nnameserver fd00::1"))
    found.push_back(text(server));
  EXPECT_THAT(found, testing::ElementsAre("10.0.0.2 53", "fd00::1 53", "127.0.0.53 53"));
  std::string many;
  for (int i = 0; i < 50; ++i) many += "nameserver 10.0.0." + std::to_string(i) + "\n";
  EXPECT_EQ(name_servers_of(many).size(), 10u);
}

}  // namespace
}  // namespace osb::egress
