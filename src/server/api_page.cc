#include "server/api_page.h"

#include <fmt/format.h>

#include "json/decode.h"

extern "C" const char osb_openapi[], osb_openapi_end[];

namespace osb::server {
namespace {

namespace bj = boost::json;

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "code,pre{font-family:ui-monospace,monospace;font-size:.9em;background:#f3f3f3;padding:0 .2em}"
    "h2{margin-top:2.5rem;border-bottom:1px solid #ddd}h3 code{background:none}p{white-space:pre-line}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .6rem "
    ".2rem 0;border-top:1px solid #eee}.m{display:inline-block;min-width:4rem;font-weight:bold}";

// Text of the description; what stands between backticks is code.
void append_text(std::string& out, std::string_view text) {
  bool code = false;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '`':
        out += code ? "</code>" : "<code>";
        code = !code;
        break;
      default:
        out += c;
    }
  }
  if (code) out += "</code>";
}

std::string shown(std::string_view text) {
  std::string out;
  append_text(out, text);
  return out;
}

class Page {
 public:
  explicit Page(const bj::value& root) : root_(root) {}

  std::string render() {
    std::string title = shown(text(root_, {"info", "title"}));
    out_ = fmt::format(
        "<!doctype html><html lang=\"en\"><head><meta "
        "charset=\"utf-8\"><title>{}</title><style>{}</style></head>"
        "<body><h1>{}</h1><p>{}</p><p>As OpenAPI: <code>/openapi.json</code>.</p>",
        title, kStyle, title, shown(text(root_, {"info", "description"})));
    for (const bj::value& tag : array(root_, "tags")) render_tag(tag);
    render_schemas();
    return out_ + "</body></html>\n";
  }

 private:
  static const bj::value* find(const bj::value& in, std::string_view name) {
    return in.is_object() ? in.get_object().if_contains(name) : nullptr;
  }
  static std::string_view text(const bj::value& in, std::initializer_list<std::string_view> path) {
    const bj::value* at = &in;
    for (std::string_view name : path) {
      at = find(*at, name);
      if (at == nullptr) return "";
    }
    return at->is_string() ? std::string_view(at->get_string()) : "";
  }
  static bj::array array(const bj::value& in, std::string_view name) {
    const bj::value* found = find(in, name);
    return found != nullptr && found->is_array() ? found->get_array() : bj::array();
  }
  static bj::object object(const bj::value& in, std::string_view name) {
    const bj::value* found = find(in, name);
    return found != nullptr && found->is_object() ? found->get_object() : bj::object();
  }
  // What "#/components/..." stands for; the value itself otherwise.
  const bj::value* resolve(const bj::value* value) const {
    std::string_view reference = text(*value, {"$ref"});
    if (!reference.starts_with("#/")) return value;
    boost::system::error_code none;
    const bj::value* found = root_.find_pointer(reference.substr(1), none);
    return found != nullptr ? found : value;
  }

  void render_tag(const bj::value& tag) {
    std::string_view name = text(tag, {"name"});
    out_ += fmt::format("<h2>{}</h2><p>{}</p>", shown(name), shown(text(tag, {"description"})));
    for (const auto& [path, item] : object(root_, "paths")) {
      for (const char* method : {"get", "post", "put", "patch", "delete"}) {
        const bj::value* operation = find(item, method);
        if (operation == nullptr) continue;
        bj::array tags = array(*operation, "tags");
        if (!tags.empty() && tags[0].is_string() && std::string_view(tags[0].get_string()) == name)
          render_operation(path, method, item, *operation);
      }
    }
  }

  void render_operation(std::string_view path, std::string method, const bj::value& item,
                        const bj::value& operation) {
    for (char& c : method) c = static_cast<char>(c - 'a' + 'A');
    out_ += fmt::format("<h3 id=\"{}\"><span class=\"m\">{}</span> <code>{}</code></h3><p><b>{}</b></p>",
                        shown(text(operation, {"operationId"})), method, shown(path),
                        shown(text(operation, {"summary"})));
    for (std::string_view description : {text(item, {"description"}), text(operation, {"description"})}) {
      if (!description.empty()) out_ += fmt::format("<p>{}</p>", shown(description));
    }
    out_ += "<table>";
    for (const bj::value* place : {&item, &operation}) {
      for (const bj::value& parameter : array(*place, "parameters")) render_parameter(*resolve(&parameter));
    }
    if (const bj::value* body = find(operation, "requestBody")) {
      for (const auto& [type, content] : object(*body, "content"))
        row("body", fmt::format("<code>{}</code>: {}", shown(type), schema_of(content)));
    }
    for (const auto& [status, response] : object(operation, "responses")) {
      const bj::value& what = *resolve(&response);
      std::string line = shown(text(what, {"description"}));
      for (const auto& [type, content] : object(what, "content"))
        line += fmt::format(" <code>{}</code>: {}", shown(type), schema_of(content));
      row(shown(status), line);
    }
    out_ += "</table>";
  }

  void render_parameter(const bj::value& parameter) {
    row(fmt::format("<code>{}</code>, {}", shown(text(parameter, {"name"})), shown(text(parameter, {"in"}))),
        schema_of(parameter) + " " + shown(text(parameter, {"description"})));
  }

  void row(std::string_view name, std::string_view value) {
    out_ += fmt::format("<tr><td>{}</td><td>{}</td></tr>", name, value);
  }

  // A name that links to the schema, or the schema itself.
  static std::string schema_of(const bj::value& holder) {
    const bj::value* schema = find(holder, "schema");
    if (schema == nullptr) return "";
    std::string_view reference = text(*schema, {"$ref"});
    if (reference.empty()) return fmt::format("<code>{}</code>", shown(json::print(*schema)));
    std::string name = shown(reference.substr(reference.rfind('/') + 1));
    return fmt::format("<a href=\"#schema-{}\">{}</a>", name, name);
  }

  void render_schemas() {
    out_ += "<h2>Schemas</h2>";
    const bj::value* components = find(root_, "components");
    if (components == nullptr) return;
    for (const auto& [name, schema] : object(*components, "schemas")) {
      out_ += fmt::format("<h3 id=\"schema-{}\"><code>{}</code></h3><table>", shown(name), shown(name));
      for (const auto& [member, value] : object(schema, "properties"))
        row(fmt::format("<code>{}</code>", shown(member)),
            fmt::format("<code>{}</code>", shown(json::print(value))));
      if (object(schema, "properties").empty())
        row("", fmt::format("<code>{}</code>", shown(json::print(schema))));
      out_ += "</table>";
    }
  }

  const bj::value& root_;
  std::string out_;
};

}  // namespace

std::string_view openapi_text() { return {osb_openapi, static_cast<size_t>(osb_openapi_end - osb_openapi)}; }

Result<std::string> api_page(std::string_view openapi) {
  bj::value root = TRY(json::parse(openapi));
  return Page(root).render();
}

}  // namespace osb::server
