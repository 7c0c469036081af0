#include "api/error_table.h"

#include <fmt/format.h>

namespace osb::api {
namespace {

constexpr ErrorRow kRequests[] = {
    {"SANDBOX::INVALID_REQUEST", "422",
     "The body, a parameter or the path does not have the right shape. `detail` has one entry per mistake, "
     "with its place.",
     "Correct what `message` names. The input itself is never repeated in the answer."},
    {"SANDBOX::INVALID_PARAMETER", "400",
     "The shape is right, the value is not: a limit that cannot be read or enforced, a timeout above the "
     "server's maximum, a "
     "runtime that this server does not have.",
     "Correct the member that `message` names."},
    {"SANDBOX::UNSUPPORTED", "400, 501",
     "Something that this server, its runtime or its host does not have. It is refused instead of being left "
     "out silently.",
     "Leave it out of the request, or ask for another runtime; `osb doctor` says what this machine can do."},
    {"SANDBOX::API_NOT_SUPPORTED", "400",
     "A form of a request that this server does not serve, such as a preview where it has no domain for "
     "them.",
     "Leave out the parameter that `message` names."},
    {"SANDBOX::REQUEST_TOO_LARGE", "413", "The body is larger than 1 MiB.",
     "Send files through the sandbox's own file API, not in the request."},
    {"SANDBOX::INVALID_METADATA_LABEL", "400", "A key or a value of `metadata` breaks the rules of labels.",
     "Use letters, digits, `-`, `_` and `.`, at most 63 of them; keys may have a prefix: "
     "`example.com/name`."},
    {"INVALID_METADATA_LABEL", "400",
     "A patch of the metadata touches a key below `opensandbox.io/`, which is reserved.", "Use another key."},
    {"INVALID_METADATA_FORMAT", "400",
     "The `metadata` filter of a list is not of the form `key=value&key2=value2`.",
     "Encode the whole filter as one parameter: `metadata=key%3Dvalue`."},
    {"SANDBOX::INVALID_PORT", "400", "A port outside 1 to 65535.",
     "Name the port on which the program in the sandbox listens."},
    {"DIAGNOSTICS_SCOPE_UNSUPPORTED", "400", "A `scope` of diagnostics that is not known.",
     "Use `container` or `all` for logs, `runtime` or `all` for events."},
    {"GENERAL::BAD_REQUEST", "400",
     "The body of the request is broken HTTP, or the connection was closed before the sandbox was made.",
     "Correct the client's framing; keep the connection open until the answer has come."},
    {"GENERAL::REQUEST_TIMEOUT", "408", "The body of the request did not arrive in time.",
     "Send it again, faster or in parts."},
    {"GENERAL::NOT_FOUND", "404", "No such path.",
     "`/docs` lists those there are. Every path exists below `/` and `/v1`."},
    {"GENERAL::METHOD_NOT_ALLOWED", "405", "The path exists, the method does not.",
     "Use one that the field `Allow` names."},
    {"GENERAL::UNKNOWN_ERROR", "400", "A request to a port asks for a WebSocket but is no handshake.",
     "Use a WebSocket client, or leave out the field `Upgrade`."},
    {"HTTP::BAD_REQUEST", "400, 408, 413, 414, 417, 426, 431, 501, 505",
     "The head of the request is no HTTP/1.1, is too long or came too slowly. `message` says what is wrong.",
     "Correct the client, or what stands between it and the server."},
    {"HTTP::NO_ANSWER", "500", "A mistake in the server: a request was not answered.",
     "Report it with the lines of the server's log around that time."},
};

constexpr ErrorRow kAccess[] = {
    {"MISSING_API_KEY", "401",
     "The server has an API key, and the request has none; for a port, neither key nor token.",
     "Send the key in `OPEN-SANDBOX-API-KEY`; use endpoints as `GET /sandboxes/{id}/endpoints/{port}` "
     "answers them."},
    {"MISSING_OR_INVALID_SECURE_ACCESS", "401",
     "The sandbox was made with `secureAccess`, and a request for one of its ports, or for its network "
     "policy, "
     "does not have its access token.",
     "Send the headers of the endpoint's answer with every request, or use a signed endpoint."},
    {"INVALID_ENDPOINT_SIGNATURE", "401",
     "A path with a signature (`/s/...`) that this server did not make for this sandbox and port.",
     "Use signed endpoints as they were answered, unchanged."},
    {"ENDPOINT_SIGNATURE_EXPIRED", "401", "The time that a signed endpoint was asked for is over.",
     "Ask for another one: `GET /sandboxes/{id}/endpoints/{port}?expires=...`."},
    {"PREVIEW_NOT_FOUND", "404",
     "A host name like that of a preview, with a handle that is none of this server's.",
     "Ask for its name: `GET /sandboxes/{id}/endpoints/{port}?preview=true`."},
    {"INVALID_API_KEY", "401", "The key is not one of this server's.",
     "Compare it with `server.api_key` or `OPENSANDBOX_SERVER_API_KEY` of the server."},
    {"SANDBOX::HOST_NOT_ALLOWED", "403",
     "A server without a key answers only to loopback names, so that no web page can drive it.",
     "Use `localhost` or `127.0.0.1`, set `server.eip` to the name, or set `server.api_key`."},
    {"SANDBOX::ORIGIN_NOT_ALLOWED", "403",
     "The request comes from a web page of an origin that is not allowed.",
     "Set `server.api_key`, or list the origin in `server.cors_origins`."},
    {"SANDBOX::SERVICE_WORKER_REFUSED", "403", "A browser asked for the script of a service worker.",
     "Do without: all sandboxes share the server's origin, and a worker outlives its page."},
};

constexpr ErrorRow kCreating[] = {
    {"IMAGE::NOT_FOUND", "400, 404",
     "There is no such image, neither on this server nor in the registry of its name.",
     "`osb images ls` lists those that are here; `host` is always there."},
    {"IMAGE::UNREACHABLE", "500", "The registry of the image does not answer, or fails.",
     "Try again; bring the image here by file with `osb images import` (`docker load`, where sandboxes are "
     "containers)."},
    {"IMAGE::UNAUTHORIZED", "400", "The registry does not give the image to this caller.",
     "Check its name, and the username and password in `image.auth` or in the file of `registry.auth_file`."},
    {"IMAGE::INVALID", "500",
     "What the registry gave is not what it promised, or has nothing for this machine. Nothing of it is "
     "kept.",
     "Push it again, or ask for another tag or digest."},
    {"IMAGE::NO_ROOM", "500",
     "The layers that are to come are larger than what the disk or `registry.disk_budget_gb` has left, or "
     "the "
     "disk became full while they came. Nothing of them is kept.",
     "`osb images prune`; delete sandboxes, or make room on the disk of the state directory; raise the "
     "budget."},
    {"IMAGE::IN_USE", "409", "Sandboxes or snapshots use the image whose last name is to go.",
     "Remove them first, or give `force=true`."},
    {"IMAGE::NAME_TAKEN", "409",
     "A commit wants a name that an image has which was not made of a sandbox of the caller's.",
     "Choose another name; only names of images that were committed by the same owner move."},
    {"SANDBOX::INVALID_ENTRYPOINT", "400",
     "The program of the entrypoint is missing, not executable or for another architecture.",
     "Name a program that is in the image, by its path or by a name in `PATH`."},
    {"SANDBOX::ENTRYPOINT_EXITED", "400",
     "The entry process failed before the create was answered. `message` has its code and its last output.",
     "Correct the command; the sandbox lives as long as its entry process: `[\"tail\", \"-f\", "
     "\"/dev/null\"]` waits for ever."},
    {"SANDBOX::START_FAILED", "500",
     "A step of making the sandbox failed; `cause` says which, and what the kernel said.",
     "See `cause` and the log of the service; `osb doctor` tries what a host has to be able to do."},
    {"SANDBOX::IDEMPOTENCY_KEY_REUSED", "409",
     "The `Idempotency-Key` came with another request within a day, or the sandbox that it made is gone.",
     "Send a new key with every create that is meant to make another sandbox."},
    {"SANDBOX::TOO_MANY_REQUESTS", "429", "More sandboxes are being asked for than can be made.",
     "Try again after the seconds in `Retry-After`."},
};

constexpr ErrorRow kLiving[] = {
    {"SANDBOX::NOT_FOUND", "404",
     "There is no such sandbox: it was deleted, has expired, never existed, or is somebody else's.",
     "Create a new one; `diagnostics/events` says for a day how one that is gone has ended."},
    {"SANDBOX::NOT_RUNNING", "403, 409",
     "The sandbox is in a state that does not allow this; `message` has the state and why. 403 is for "
     "`/ping` of one that has ended, so "
     "that clients do not go on waiting.",
     "See `message`; one that has ended is deleted and made anew."},
    {"SANDBOX::NOT_PAUSED", "409", "A resume of a sandbox that is not paused.",
     "Nothing has to be done: it runs."},
    {"SANDBOX::PAUSED", "409", "The sandbox is paused: nothing in it runs, so nothing can answer.",
     "Resume it: `POST /sandboxes/{id}/resume`."},
    {"SANDBOX::PAUSE_FAILED", "500", "The processes could not be stopped; the sandbox goes on.",
     "Try again; a process in an uninterruptible wait of the kernel cannot be stopped."},
    {"SANDBOX::RESUME_FAILED", "500", "The processes could not be let go on; the sandbox stays paused.",
     "Try again, or delete the sandbox."},
    {"SANDBOX::DELETE_FAILED", "500",
     "The sandbox could not be removed. The server goes on trying by itself.",
     "Repeating is safe; see `cause` and the log of the service."},
    {"SANDBOX::INVALID_EXPIRATION", "400, 409",
     "A renewal to the past or beyond `sandbox.max_lifetime` (400), or of a sandbox without a timeout (409).",
     "Give a time in the future and within the longest life; a sandbox without a timeout never expires and "
     "is deleted instead."},
};

constexpr ErrorRow kPorts[] = {
    {"SANDBOX::CONTEXT_NOT_FOUND", "404", "No running sandbox has a code context of this id.",
     "Make one with `POST /sandboxes/{id}/contexts`, or name its sandbox in `sandboxId`."},
    {"BACKEND_CONNECTION_FAILED", "502", "Nothing answers on this port of the sandbox.",
     "Start a server in the sandbox that listens on it, on 127.0.0.1 or on all addresses."},
    {"BACKEND_RESPONSE_FAILED", "502", "The program on the port broke off, or sent no valid HTTP.",
     "See its output in the sandbox."},
    {"BACKEND_TIMEOUT", "504", "The program on the port did not answer in time.",
     "See what it does; a stream may be silent longer once its head was sent."},
};

constexpr ErrorRow kService[] = {
    {"SANDBOX::OVERLOADED", "503",
     "Not now: too many requests are in progress, a runtime is away, or nobody can say at the moment what "
     "the sandbox does.",
     "Try again after the seconds in `Retry-After`; `GET /health` says what is wrong."},
    {"SANDBOX::INTERNAL_ERROR", "500",
     "The server could not do it: most often its disk is full or takes no writes, which `cause` says.",
     "Make room or repair the disk of the state directory; otherwise the server's log has the request id."},
};

constexpr ErrorRow kSnapshots[] = {
    {"SNAPSHOT::NOT_FOUND", "404", "There is no such snapshot: it was deleted, or never existed.",
     "`GET /snapshots` lists those there are."},
    {"SNAPSHOT::NOT_READY", "409", "A sandbox is to be made from a snapshot that is not `Ready`.",
     "Wait until `GET /snapshots/{id}` says `Ready`, or make another one."},
    {"SNAPSHOT::INVALID_SOURCE_STATE", "409",
     "A snapshot of a sandbox that is neither `Running` nor `Paused`, or the changes of one that has no "
     "files "
     "(any more).",
     "Make it while the sandbox lives."},
    {"SNAPSHOT::INVALID_STATE", "409", "A snapshot is to be deleted while it is being made.",
     "Delete it when it is `Ready` or `Failed`."},
    {"SNAPSHOT::DELETE_CONFLICT", "409", "A sandbox that was made from the snapshot lives.",
     "Delete the sandbox that `message` names first."},
    {"SNAPSHOT::INVALID_RESTORE_CONFIG", "409", "A rollback to a snapshot that lies over another image.",
     "Make a new sandbox from the snapshot instead."},
    {"SNAPSHOT::RUNTIME_CREATE_FAILED", "500", "The snapshot could not be made; `cause` says why.",
     "If the disk is full make room; otherwise try again."},
    {"SNAPSHOT::NOT_IMPLEMENTED", "400",
     "The runtime makes no snapshots: the service was started without root.",
     "Start the service as root, or do without."},
};

constexpr ErrorRow kPools[] = {
    {"POOL::NOT_FOUND", "400, 404", "There is no pool of this name: 404 on `/pools/{name}`, 400 on create.",
     "`GET /pools` lists those there are."},
    {"POOL::ALREADY_EXISTS", "409", "A pool is to be made under a name that another one has.",
     "Choose another name, or delete that pool; `PUT` changes its capacity."},
    {"POOL::EXHAUSTED", "429",
     "No sandbox of the pool is free: `poolMax` are in use, or none could be made, which `message` says.",
     "Try again after the seconds in `Retry-After`; delete claimed sandboxes, or raise `poolMax`."},
};

constexpr ErrorRow kVolumes[] = {
    {"VOLUME::DUPLICATE_NAME", "400", "Two volumes of a request have the same `name`.",
     "Give each a name of its own."},
    {"VOLUME::INVALID_MOUNT_PATH", "400",
     "A `mountPath` that is no plain path, lies in `/proc`, `/sys` or `/dev`, or is that of another volume.",
     "Use a directory of its own, such as `/data`."},
    {"VOLUME::INVALID_SUB_PATH", "400",
     "A `subPath` that is no plain relative path, or with a file on the way, or a symbolic link that leads "
     "out.",
     "Name directories below the volume, without `..`; links that are relative and stay inside are "
     "followed."},
    {"VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER", "400",
     "A `subPath` of an engine's volume that is not a directory of its host, with an engine before Docker "
     "26.",
     "Mount the whole volume, or use one of the driver `local`."},
    {"VOLUME::INVALID_HOST_PATH", "400", "A `host.path` that is no plain absolute path of Linux.",
     "Write it without `..`, `//` and a slash at its end."},
    {"VOLUME::HOST_PATH_NOT_ALLOWED", "400",
     "A directory of the host that sandboxes are not given, or not to be written to; `message` says which.",
     "The operator lists directories in `storage.allowed_host_paths`; one of root's in which programs act as "
     "root "
     "is mounted with `readOnly`, or given to others."},
    {"VOLUME::HOST_PATH_CREATE_FAILED", "500", "A directory of the host is not there and could not be made.",
     "Make it on the host."},
    {"VOLUME::PVC_NOT_FOUND", "400", "There is no such named volume, and `createIfNotExists` is false.",
     "Leave `createIfNotExists` out; `GET /volumes` lists those there are."},
    {"VOLUME::PVC_INSPECT_FAILED", "500", "A named volume could not be made or opened; `cause` says why.",
     "If the disk is full make room; otherwise see the log of the service."},
    {"VOLUME::NOT_FOUND", "404", "There is no named volume of this name.",
     "`GET /volumes` lists those there are."},
    {"VOLUME::IN_USE", "409", "The named volume is to be removed, and sandboxes have it.",
     "Delete these sandboxes first."},
};

constexpr ErrorGroup kTable[] = {
    {"The request", kRequests},      {"Who may ask", kAccess},
    {"Making a sandbox", kCreating}, {"A sandbox", kLiving},
    {"Ports of a sandbox", kPorts},  {"The service", kService},
    {"Snapshots", kSnapshots},       {"Pools", kPools},
    {"Volumes", kVolumes},
};

}  // namespace

std::span<const ErrorGroup> error_table() { return kTable; }

std::string errors_document() {
  std::string out =
      "<!-- Made from src/api/error_table.cc: OSB_WRITE_DOCS=1 build/release/bin/api_test "
      "--gtest_filter=ErrorTable.* -->\n"
      "# Errors\n\n"
      "Every answer of the server that is not 2xx is JSON with `code` for programs and `message` for people. "
      "`message` alone says what is\n"
      "wrong and what to do: clients show nothing else. Where they help there are `cause`, `remedy` and "
      "`requestId`, never null; 422 has\n"
      "`detail`, one entry per mistake. 429 and 503 carry `Retry-After`. What runs inside a sandbox answers "
      "for itself ([execution](execution.md)).\n";
  for (const ErrorGroup& group : error_table()) {
    fmt::format_to(std::back_inserter(out),
                   "\n## {}\n\n| code | status | when | what to do |\n|---|---|---|---|\n", group.title);
    for (const ErrorRow& row : group.rows)
      fmt::format_to(std::back_inserter(out), "| `{}` | {} | {} | {} |\n", row.code, row.statuses, row.when,
                     row.remedy);
  }
  return out;
}

}  // namespace osb::api
