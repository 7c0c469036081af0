#include "base/knock.h"

#include <gtest/gtest.h>

namespace osb::knock {
namespace {

const std::string kMine(kSecret, 'a'), kOther(kSecret, 'b');

TEST(Knock, WhoSharesTheSecretIsUnderstood) {
  std::string challenge = new_challenge();
  ASSERT_EQ(challenge.size(), kChallenge);
  for (Wish wish :
       {Wish{Kind::api, 0}, Wish{Kind::control, 0}, Wish{Kind::port, 1}, Wish{Kind::port, 65535}}) {
    std::string request = ask(kMine, challenge, wish);
    ASSERT_EQ(request.size(), kRequest);
    EXPECT_EQ(request.find(kMine), request.npos) << "the secret is not on the wire";
    EXPECT_EQ(read_request(kMine, challenge, request), wish);
    for (bool open : {true, false}) {
      std::string said = answer(kMine, challenge, request, open);
      ASSERT_EQ(said.size(), kAnswer);
      EXPECT_EQ(read_answer(kMine, challenge, request, said), open);
    }
  }
}

TEST(Knock, OthersAreNot) {
  std::string challenge = new_challenge(), later = new_challenge();
  std::string request = ask(kMine, challenge, {Kind::port, 8080});
  EXPECT_FALSE(read_request(kOther, challenge, request)) << "another secret";
  EXPECT_FALSE(read_request(kMine, later, request)) << "heard on another connection";
  EXPECT_FALSE(read_request("", challenge, ask("", challenge, {Kind::api, 0}))) << "no secret is no way in";
  EXPECT_FALSE(read_request(kMine, challenge, request.substr(1)));
  EXPECT_FALSE(read_request(kMine, challenge, request + "0"));
  EXPECT_FALSE(read_request(kMine, challenge, ""));
  for (size_t at = 0; at < request.size(); ++at) {
    std::string changed = request;
    changed[at] = changed[at] == '1' ? '2' : '1';
    EXPECT_FALSE(read_request(kMine, challenge, changed)) << at;
  }
}

TEST(Knock, WishesThatMakeNoSenseAreRefused) {
  std::string challenge = new_challenge();
  for (Wish wish : {Wish{Kind::api, 80}, Wish{Kind::control, 1}, Wish{Kind::port, 0}, Wish{Kind('x'), 0}})
    EXPECT_FALSE(read_request(kMine, challenge, ask(kMine, challenge, wish)));
}

TEST(Knock, AnAnswerIsForOneRequest) {
  std::string challenge = new_challenge();
  std::string request = ask(kMine, challenge, {Kind::api, 0}), other = ask(kMine, challenge, {Kind::api, 0});
  std::string said = answer(kMine, challenge, request, true);
  EXPECT_FALSE(read_answer(kMine, challenge, other, said));
  EXPECT_FALSE(read_answer(kOther, challenge, request, said));
  EXPECT_FALSE(read_answer(kMine, challenge, request, "n" + said.substr(1)));
  EXPECT_FALSE(read_answer(kMine, challenge, request, request.substr(0, kAnswer))) << "sent back";
  EXPECT_FALSE(read_answer(kMine, challenge, request, "HTTP/1.1 400 Bad Request"));
}

TEST(Knock, SecretsAreOfOneForm) {
  EXPECT_TRUE(is_secret(new_secret()));
  EXPECT_NE(new_secret(), new_secret());
  for (const char* wrong : {"", "abc", "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    EXPECT_FALSE(is_secret(wrong));
}

}  // namespace
}  // namespace osb::knock
