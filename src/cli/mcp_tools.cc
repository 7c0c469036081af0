#include "cli/mcp_tools.h"

#include <cstdlib>

namespace osb::cli {
namespace {

namespace bj = json::bj;

struct ToolText {
  const char* name;
  const char* description;
  const char* schema;
};

// The first nineteen have the names, parameters and defaults of the published MCP server; the rest is ours.
constexpr ToolText kTools[] = {
    {"sandbox_create",
     "Make a sandbox from an image and wait until it runs. Keep the sandbox_id: every other tool "
     "needs it. The sandbox is removed after timeout_seconds unless it is renewed.",
     R"({"type":"object","properties":{"image":{"type":"string"},"auth_username":{"type":["string","null"])"
     R"(,"default":null},"auth_password":{"type":["string","null"],"default":null})"
     R"(,"timeout_seconds":{"type":"number","default":600},"ready_timeout_seconds":{"type":"number")"
     R"(,"default":30},"health_check_polling_interval_ms":{"type":"integer","default":200})"
     R"(,"skip_health_check":{"type":"boolean","default":false},"env":{"type":["object","null"])"
     R"(,"additionalProperties":{"type":"string"},"default":null},"metadata":{"type":["object","null"])"
     R"(,"additionalProperties":{"type":"string"},"default":null},"resource":{"type":["object","null"])"
     R"(,"additionalProperties":{"type":"string"},"default":null},"network_policy":{"type":["object")"
     R"(,"null"],"default":null,"properties":{"defaultAction":{"enum":["allow","deny"],"type":"string")"
     R"(,"default":"deny"},"egress":{"type":["array","null"],"items":{"type":"object","required":["action")"
     R"(,"target"],"properties":{"action":{"enum":["allow","deny"],"type":"string"})"
     R"(,"target":{"type":"string"}}}}}},"extensions":{"type":["object","null"])"
     R"(,"additionalProperties":{"type":"string"},"default":null},"entrypoint":{"type":["array","null"])"
     R"(,"items":{"type":"string"},"default":null}},"required":["image"]})"},
    {"sandbox_connect", "Use a sandbox that exists already.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"})"
     R"(,"connect_timeout_seconds":{"type":"number","default":30})"
     R"(,"health_check_polling_interval_ms":{"type":"integer","default":200})"
     R"(,"skip_health_check":{"type":"boolean","default":false}},"required":["sandbox_id"]})"},
    {"sandbox_kill", "Remove a sandbox with everything in it.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"}},"required":["sandbox_id"]})"},
    {"sandbox_get_info", "State, image, expiry and metadata of a sandbox.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"}},"required":["sandbox_id"]})"},
    {"sandbox_list", "Sandboxes of the server, by state and metadata, in pages.",
     R"({"type":"object","properties":{"filter":{"type":["object","null"],"default":null)"
     R"(,"properties":{"states":{"type":["array","null"],"items":{"type":"string"}})"
     R"(,"metadata":{"type":["object","null"],"additionalProperties":{"type":"string"},"default":null})"
     R"(,"page":{"type":["integer","null"]},"page_size":{"type":["integer","null"]}}}}})"},
    {"sandbox_renew", "Let a sandbox live for timeout_seconds from now.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"timeout_seconds":{"type":"number"}})"
     R"(,"required":["sandbox_id","timeout_seconds"]})"},
    {"sandbox_get_metrics", "Processor and memory that a sandbox uses now.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"})"
     R"(,"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id"]})"},
    {"sandbox_healthcheck", "Whether commands can run in a sandbox now.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"})"
     R"(,"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id"]})"},
    {"sandbox_get_endpoint", "The address under which a port of a sandbox is reached.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"port":{"type":"integer"})"
     R"(,"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id","port"]})"},
    {"command_run",
     "Run a shell command in a sandbox and return its output and exit code. With background it goes "
     "on after the answer.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"command":{"type":"string"})"
     R"(,"background":{"type":"boolean","default":false},"working_directory":{"type":["string","null"])"
     R"(,"default":null},"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id")"
     R"(,"command"]})"},
    {"command_interrupt", "Interrupt a command by the id of its execution.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"execution_id":{"type":"string"})"
     R"(,"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id")"
     R"(,"execution_id"]})"},
    {"file_read",
     "Read a text file. range_header reads a part of a large one: bytes=0-1023. encoding is utf-8, "
     "latin-1 or base64.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"path":{"type":"string"})"
     R"(,"encoding":{"type":"string","default":"utf-8"},"range_header":{"type":["string","null"])"
     R"(,"default":null},"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id")"
     R"(,"path"]})"},
    {"file_write", "Write a file; what was there is replaced. mode has octal digits: 644.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"path":{"type":"string"})"
     R"(,"content":{"type":"string"},"encoding":{"type":"string","default":"utf-8"})"
     R"(,"mode":{"type":"integer","default":755},"owner":{"type":["string","null"],"default":null})"
     R"(,"group":{"type":["string","null"],"default":null},"connect_if_missing":{"type":"boolean")"
     R"(,"default":false}},"required":["sandbox_id","path","content"]})"},
    {"file_delete", "Delete files.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"paths":{"type":"array")"
     R"(,"items":{"type":"string"}},"connect_if_missing":{"type":"boolean","default":false}})"
     R"(,"required":["sandbox_id","paths"]})"},
    {"file_search", "Find files below a path by a pattern like *.py.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"path":{"type":"string"})"
     R"(,"pattern":{"type":"string"},"connect_if_missing":{"type":"boolean","default":false}})"
     R"(,"required":["sandbox_id","path","pattern"]})"},
    {"file_create_directories", "Make directories with their parents.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"entries":{"type":"array")"
     R"(,"items":{"type":"object","required":["path"],"properties":{"path":{"type":"string"})"
     R"(,"mode":{"type":"integer","default":755},"owner":{"type":["string","null"],"default":null})"
     R"(,"group":{"type":["string","null"],"default":null}}}},"connect_if_missing":{"type":"boolean")"
     R"(,"default":false}},"required":["sandbox_id","entries"]})"},
    {"file_delete_directories", "Delete directories with everything below them.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"paths":{"type":"array")"
     R"(,"items":{"type":"string"}},"connect_if_missing":{"type":"boolean","default":false}})"
     R"(,"required":["sandbox_id","paths"]})"},
    {"file_move", "Move or rename files and directories.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"entries":{"type":"array")"
     R"(,"items":{"type":"object","required":["source", "destination"])"
     R"(,"properties":{"source":{"type":"string"},"destination":{"type":"string"}}}})"
     R"(,"connect_if_missing":{"type":"boolean","default":false}},"required":["sandbox_id","entries"]})"},
    {"file_replace_contents", "Replace text in files, and say how often it was found.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"entries":{"type":"array")"
     R"(,"items":{"type":"object","required":["path", "old_content", "new_content"])"
     R"(,"properties":{"path":{"type":"string"},"old_content":{"type":"string"})"
     R"(,"new_content":{"type":"string"}}}},"connect_if_missing":{"type":"boolean","default":false}})"
     R"(,"required":["sandbox_id","entries"]})"},
    {"code_run",
     "Run code in a stateful interpreter of the sandbox: variables stay from one call to the next. "
     "language is python, javascript, typescript, java, go or bash, as far as the image has it.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"code":{"type":"string"})"
     R"(,"language":{"type":"string","default":"python"},"connect_if_missing":{"type":"boolean")"
     R"(,"default":false}},"required":["sandbox_id","code"]})"},
    {"sandbox_pause", "Stop a sandbox for now; it keeps its memory and takes no processor.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"}},"required":["sandbox_id"]})"},
    {"sandbox_resume", "Let a paused sandbox go on.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"}},"required":["sandbox_id"]})"},
    {"sandbox_fork", "Make sandboxes with the files that this one has now. Processes are not copied.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"count":{"type":"integer")"
     R"(,"default":1}},"required":["sandbox_id"]})"},
    {"sandbox_rollback", "Put the files of a sandbox back to a snapshot; its entry process starts again.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"snapshot_id":{"type":"string"}})"
     R"(,"required":["sandbox_id","snapshot_id"]})"},
    {"sandbox_diff", "What a sandbox has changed of the files of its image.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"}},"required":["sandbox_id"]})"},
    {"snapshot_create",
     "Keep the files of a sandbox as they are now. sandbox_create starts from it with the image "
     "opensandbox-snapshots:ID.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"name":{"type":["string","null"])"
     R"(,"default":null}},"required":["sandbox_id"]})"},
    {"snapshot_list", "Snapshots of the server.", R"({"type":"object","properties":{}})"},
    {"snapshot_delete", "Delete a snapshot.",
     R"({"type":"object","properties":{"snapshot_id":{"type":"string"}},"required":["snapshot_id"]})"},
    {"network_policy_get", "What a sandbox may reach.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"}},"required":["sandbox_id"]})"},
    {"network_policy_set",
     "Replace what a sandbox may reach: rules with names, *.names and addresses, and what holds for "
     "all others.",
     R"({"type":"object","properties":{"sandbox_id":{"type":"string"},"network_policy":{"type":"object")"
     R"(,"properties":{"defaultAction":{"enum":["allow","deny"],"type":"string","default":"deny"})"
     R"(,"egress":{"type":["array","null"],"items":{"type":"object","required":["action","target"])"
     R"(,"properties":{"action":{"enum":["allow","deny"],"type":"string"},"target":{"type":"string"}}}}}}})"
     R"(,"required":["sandbox_id","network_policy"]})"},
};

}  // namespace

bj::array mcp_tools() {
  bj::array out;
  for (const ToolText& tool : kTools) {
    auto schema = json::parse(tool.schema);
    if (!schema) std::abort();  // a mistake above
    out.push_back(bj::object{
        {"name", tool.name}, {"description", tool.description}, {"inputSchema", std::move(*schema)}});
  }
  return out;
}

bool is_mcp_tool(std::string_view name) {
  for (const ToolText& tool : kTools)
    if (name == tool.name) return true;
  return false;
}

}  // namespace osb::cli
