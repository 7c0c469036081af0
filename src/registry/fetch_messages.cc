#include "registry/fetch_messages.h"

#include <unistd.h>

#include <boost/json.hpp>

#include "base/hex.h"
#include "json/decode.h"

namespace osb::registry {
namespace {

namespace bj = json::bj;
using json::Field;

bj::array strings(const auto& list) {
  bj::array out;
  for (const std::string& text : list) out.emplace_back(text);
  return out;
}

std::vector<std::string> list_of(const Field& field) {
  return field.string_list().value_or(std::vector<std::string>());
}

Result<void> check(const json::Issues& issues) {
  if (issues.empty()) return {};
  const json::Issue& issue = issues.list().front();
  return fail(Code::corrupt,
              "a message that makes no sense: " + json::to_string(issue.path) + ": " + issue.message);
}

bj::value plan_json(const Resolved& plan) {
  bj::array blobs;
  image::Image image{.id = plan.manifest_digest, .layers = {}, .config = plan.config};
  for (const Resolved::Layer& layer : plan.layers) {
    image.layers.push_back(layer.diff_id);
    blobs.push_back(bj::object{{"digest", layer.digest}, {"size", layer.size}});
  }
  return bj::object{{"image", image::to_json(image)}, {"blobs", std::move(blobs)}};
}

Result<Resolved> plan_from(const Field& field) {
  if (!field["image"].present()) return fail(Code::corrupt, "a plan without an image");
  image::Image image = TRY(image::image_from_json(*field["image"].raw()));
  Resolved plan{.manifest_digest = image.id, .config = std::move(image.config), .layers = {}};
  auto blobs = field["blobs"].array().value_or(std::vector<Field>());
  if (blobs.size() != image.layers.size()) return fail(Code::corrupt, "a plan with a wrong number of blobs");
  for (size_t i = 0; i < blobs.size(); ++i) {
    std::string digest = blobs[i]["digest"].required_string();
    int64_t size = blobs[i]["size"].required_integer();
    if (!is_hex_digest(digest) || size < 0) return fail(Code::corrupt, "a plan with a blob that is none");
    plan.layers.push_back({std::move(digest), static_cast<uint64_t>(size), image.layers[i]});
  }
  return plan;
}

bj::object blob_json(const Blob& blob) { return {{"digest", blob.digest}, {"size", blob.size}}; }

Result<Blob> blob_from(const Field& field) {
  Blob blob{field["digest"].required_string(), 0};
  int64_t size = field["size"].required_integer();
  if (!is_hex_digest(blob.digest) || size < 0) return fail(Code::corrupt, "a blob that is none");
  blob.size = static_cast<uint64_t>(size);
  return blob;
}

bj::object wish_json(const PushWish& wish) {
  bj::array layers;
  for (const PushWish::Layer& layer : wish.layers) {
    bj::array forms;
    for (const Blob& form : layer.forms) forms.push_back(blob_json(form));
    layers.push_back(std::move(forms));
  }
  return {{"layers", std::move(layers)}, {"others", strings(wish.others)}};
}

Result<PushWish> wish_from(const Field& field) {
  PushWish wish;
  for (const Field& item : field["layers"].array().value_or(std::vector<Field>())) {
    PushWish::Layer layer;
    for (const Field& form : item.array().value_or(std::vector<Field>()))
      layer.forms.push_back(TRY(blob_from(form)));
    wish.layers.push_back(std::move(layer));
  }
  wish.others = list_of(field["others"]);
  return wish;
}

}  // namespace

std::string encode(const FetchOrder& order) {
  bj::array sources;
  for (const FetchSource& source : order.sources) {
    bj::object one{{"base", source.base.origin()}, {"perhaps_plain", source.perhaps_plain}};
    if (source.login) {
      one["username"] = source.login->username;
      one["password"] = source.login->password;
    }
    sources.push_back(std::move(one));
  }
  bj::object out{{"sources", std::move(sources)},
                 {"repository", order.repository},
                 {"version", order.version},
                 {"platform", order.platform},
                 {"authorities", strings(order.http.authorities)},
                 {"plain_hosts", strings(order.http.plain_hosts)},
                 {"patience", order.http.patience.count()}};
  if (order.push) out["push"] = wish_json(*order.push);
  return json::print(out);
}

Result<FetchOrder> decode_fetch_order(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "order");
  FetchOrder order;
  for (const Field& item : field["sources"].array().value_or(std::vector<Field>())) {
    FetchSource source{.base = TRY(parse_url(item["base"].required_string())),
                       .perhaps_plain = item["perhaps_plain"].boolean().value_or(false)};
    if (item["username"].present())
      source.login = Login{item["username"].required_string(), item["password"].required_string()};
    order.sources.push_back(std::move(source));
  }
  order.repository = field["repository"].required_string();
  order.version = field["version"].required_string();
  order.platform = field["platform"].required_string();
  order.http.authorities = list_of(field["authorities"]);
  for (std::string& host : list_of(field["plain_hosts"])) order.http.plain_hosts.insert(std::move(host));
  order.http.patience = std::chrono::seconds(field["patience"].required_integer());
  if (field["push"].present()) order.push = TRY(wish_from(field["push"]));
  TRY(check(issues));
  return order;
}

std::string encode(const PushContent& content) {
  bj::array layers;
  for (const PushContent::Layer& layer : content.layers) {
    bj::object one = blob_json(layer.blob);
    one["file"] = layer.file;
    layers.push_back(std::move(one));
  }
  return json::print(bj::object{{"layers", std::move(layers)},
                                {"config", content.config},
                                {"manifest", content.manifest},
                                {"type", content.manifest_type}});
}

Result<PushContent> decode_push_content(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "content");
  PushContent content;
  for (const Field& item : field["layers"].array().value_or(std::vector<Field>())) {
    int64_t file = item["file"].required_integer();
    if (file < -1 || file > static_cast<int64_t>(image::kMaxImageLayers) * 2)
      return fail(Code::corrupt, "a file that is none");
    content.layers.push_back({TRY(blob_from(item)), static_cast<int>(file)});
  }
  content.config = field["config"].required_string();
  content.manifest = field["manifest"].required_string();
  content.manifest_type = field["type"].required_string();
  TRY(check(issues));
  return content;
}

std::string encode_needs(const std::vector<std::string>& digests) { return json::print(strings(digests)); }

Result<std::vector<std::string>> decode_needs(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto digests = list_of(Field::root(value, issues, "needs"));
  TRY(check(issues));
  return digests;
}

std::string encode(const FetchEvent& event) {
  using Kind = FetchEvent::Kind;
  switch (event.kind) {
    case Kind::plan:
      return json::print(bj::object{{"plan", plan_json(event.plan)}});
    case Kind::found: {
      bj::array forms;
      for (int form : event.forms) forms.emplace_back(form);
      return json::print(bj::object{{"found", std::move(forms)}});
    }
    case Kind::progress:
      return json::print(bj::object{{"progress", event.bytes}});
    case Kind::done:
      return json::print(bj::object{{"done", true}});
    case Kind::failed:
      break;
  }
  return json::print(
      bj::object{{"failed", event.error.message}, {"code", static_cast<int>(event.error.code)}});
}

Result<FetchEvent> decode_fetch_event(std::string_view text) {
  using Kind = FetchEvent::Kind;
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "event");
  FetchEvent event;
  if (field["plan"].present()) {
    event.kind = Kind::plan;
    event.plan = TRY(plan_from(field["plan"]));
  } else if (field["found"].present()) {
    event.kind = Kind::found;
    for (const Field& item : field["found"].array().value_or(std::vector<Field>())) {
      int64_t form = item.required_integer();
      if (form < -1 || form > 8) return fail(Code::corrupt, "a form that is none");
      event.forms.push_back(static_cast<int>(form));
    }
    if (event.forms.size() > 2 * image::kMaxImageLayers)
      return fail(Code::corrupt, "more layers than there are");
  } else if (field["progress"].present()) {
    event.kind = Kind::progress;
    event.bytes = static_cast<uint64_t>(std::max<int64_t>(0, field["progress"].required_integer()));
  } else if (field["failed"].present()) {
    event.kind = Kind::failed;
    int64_t code = field["code"].required_integer();
    bool known = code >= 0 && code <= static_cast<int64_t>(Code::internal);
    constexpr size_t kMostWords = 2000;
    event.error = {known ? static_cast<Code>(code) : Code::internal, 0,
                   field["failed"].required_string().substr(0, kMostWords)};
  } else if (!field["done"].present()) {
    return fail(Code::corrupt, "an event that says nothing");
  }
  TRY(check(issues));
  return event;
}

Result<void> FrameSocket::send(std::string_view text) { return write_all(socket_, encode_frame(text)); }

Result<std::optional<std::string>> FrameSocket::receive_some() {
  if (auto frame = TRY(reader_.next())) return frame;
  char piece[64 * 1024];
  ssize_t n = ::read(socket_, piece, sizeof piece);
  if (n < 0 && errno != EINTR) return fail_errno("read");
  if (n == 0) return fail(Code::unavailable, "the other process is gone");
  if (n > 0) reader_.feed(std::string_view(piece, static_cast<size_t>(n)));
  return reader_.next();
}

Result<std::string> FrameSocket::receive() {
  while (true) {
    if (auto frame = TRY(receive_some())) return std::move(*frame);
  }
}

}  // namespace osb::registry
