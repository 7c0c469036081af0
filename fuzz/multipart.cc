// A form gives the same parts and the same error in whatever pieces it arrives. The first three bytes of the
// input are the sizes of the pieces, the rest is the body; the same bytes are also read as a Content-Type.
#include "http/multipart.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "check.h"

using namespace osb;

namespace {

class Pieces : public http::BodyReader {
 public:
  Pieces(std::string_view bytes, std::string_view sizes) : left_(bytes), sizes_(sizes) {}

  io::Task<Result<size_t>> read_some(std::span<char> into) override {
    CHECK(!into.empty());
    size_t size =
        sizes_.empty() ? into.size() : 1 + static_cast<unsigned char>(sizes_[at_++ % sizes_.size()]);
    size_t n = std::min({size, into.size(), left_.size()});
    std::copy_n(left_.data(), n, into.data());
    left_.remove_prefix(n);
    co_return n;
  }
  std::optional<uint64_t> length() const override { return std::nullopt; }

 private:
  std::string_view left_, sizes_;
  size_t at_ = 0;
};

// Everything that the reader says about a form, as one text.
io::Task<> read_form(http::BodyReader& body, size_t step, std::string& log) {
  http::MultipartReader reader(body, "b");
  std::string buffer(step, '\0');
  while (true) {
    auto head = co_await reader.next();
    if (!head) log += "error " + head.error().message;
    if (!head || !*head) co_return;
    log += "part " + (*head)->name + " " + (*head)->filename.value_or("-") + "\n";
    for (const auto& field : (*head)->headers) {
      CHECK(field.name.find_first_of("\r\n: ") == field.name.npos);
      CHECK(field.value.find_first_of("\r\n") == field.value.npos);
      log += field.name + ":" + field.value + "\n";
    }
    std::string content;
    while (true) {
      auto n = co_await reader.read_some(buffer);
      if (!n) {
        log += content + " error " + n.error().message;
        CHECK(!co_await reader.next());
        co_return;
      }
      if (*n == 0) break;
      CHECK(*n <= step);
      content.append(buffer, 0, *n);
    }
    CHECK(!content.contains("\r\n--b"));
    log += content + "\n";
  }
}

std::string read_form(std::string_view bytes, std::string_view sizes, size_t step) {
  Pieces body(bytes, sizes);
  std::string log;
  bool ended = false;
  boost::asio::io_context loop(1);
  boost::asio::co_spawn(loop, read_form(body, step, log),
                        [&](const std::exception_ptr& thrown) { ended = !thrown; });
  loop.run();
  CHECK(ended);
  return log;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  if (auto boundary = http::MultipartReader::boundary_of(text)) {
    CHECK(!boundary->empty() && boundary->size() <= 70 &&
          boundary->find_first_of("\r\n\"") == boundary->npos);
  }
  if (size < 3) return 0;
  std::string_view sizes = text.substr(0, 3);
  std::string_view body = text.substr(3);
  std::string whole = read_form(body, "", 64 * 1024);
  CHECK(read_form(body, sizes, 1 + static_cast<unsigned char>(sizes[0])) == whole);
  CHECK(read_form(body, std::string_view("\0", 1), 7) == whole);
  return 0;
}
