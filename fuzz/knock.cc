// What a stranger says to execd's port, and what one who answers in execd's place says to the server: without
// the secret nothing is understood, and with it a wish comes out as it went in, or not at all.
#include "base/knock.h"

#include "check.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  const std::string secret(knock::kSecret, 'a'), challenge(knock::kChallenge, 'c');
  CHECK(!knock::read_request(secret, challenge, text));
  CHECK(!knock::read_answer(secret, challenge, text, text));
  (void)knock::is_secret(text);
  if (size < 3) return 0;
  knock::Wish wish{static_cast<knock::Kind>(text[0]), static_cast<uint16_t>(data[1] << 8 | data[2])};
  std::string request = knock::ask(secret, challenge, wish);
  CHECK(request.size() == knock::kRequest);
  auto read = knock::read_request(secret, challenge, request);
  CHECK(!read || *read == wish);
  CHECK(text == challenge || !knock::read_request(secret, text, request));
  CHECK(knock::read_answer(secret, challenge, request, knock::answer(secret, challenge, request, true)) ==
        true);
  return 0;
}
