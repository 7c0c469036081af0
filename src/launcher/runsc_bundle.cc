#include "launcher/runsc_bundle.h"

#include <cstdio>

#include "launcher/checks.h"
#include "launcher/settings.h"
#include "launcher/system_trees.h"

namespace osb::launcher {
namespace {

// What sys::drop_capabilities() leaves to a sandbox's root.
constexpr const char* kCapabilities[] = {"CHOWN",   "DAC_OVERRIDE",     "FOWNER",    "FSETID",
                                         "KILL",    "SETGID",           "SETUID",    "SETPCAP",
                                         "SETFCAP", "NET_BIND_SERVICE", "SYS_CHROOT"};

// Paths are bytes; those that JSON has no letter for cannot be said, and no name of ours has them.
void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_mount(std::string& out, std::string_view target, std::string_view type, std::string_view source,
                  std::initializer_list<std::string_view> options) {
  if (out.back() == '}') out += ',';
  append_text(out += "{\"destination\":", target);
  append_text(out += ",\"type\":", type);
  append_text(out += ",\"source\":", source);
  out += ",\"options\":[";
  for (std::string_view option : options) {
    if (out.back() == '"') out += ',';
    append_text(out, option);
  }
  out += "]}";
}

// What can change from outside is a mount of its own: runsc keeps nothing of it in memory.
void append_step(std::string& out, const Step& step, int& volumes) {
  if (step.kind == Step::Kind::scratch)
    return append_mount(out, step.target, "tmpfs", "tmpfs",
                        {"nosuid", "nodev", "mode=1777", "size=67108864"});
  if (!is_volume(step)) return;
  bool writable = step.access == Step::Access::read_write;
  append_mount(out, step.target, "bind", std::string(kStageVolumes) + "/" + std::to_string(volumes++),
               {"rbind", writable ? "rw" : "ro", "nosuid", "nodev"});
}

std::string mounts_of(const Plan& plan) {
  std::string shm = "size=" + std::to_string(plan.shm_bytes.value_or(kStandardShm));
  std::string out = "[";
  append_mount(out, "/proc", "proc", "proc", {"nosuid", "nodev", "noexec"});
  append_mount(out, "/sys", "sysfs", "sysfs", {"nosuid", "nodev", "noexec", "ro"});
  append_mount(out, "/dev", "tmpfs", "tmpfs", {"nosuid", "mode=755"});
  append_mount(out, "/dev/pts", "devpts", "devpts", {"nosuid", "noexec", "newinstance", "mode=0620"});
  append_mount(out, "/dev/shm", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=1777", shm});
  int volumes = 0;
  for (const Step& step : plan.steps) append_step(out, step, volumes);
  append_mount(out, kGuestBoot, "bind", kStageBoot, {"bind", "ro", "nosuid", "nodev"});
  return out + "]";
}

std::string capability_sets() {
  std::string list = "[";
  for (const char* name : kCapabilities) {
    if (list.size() > 1) list += ',';
    append_text(list, std::string("CAP_") + name);
  }
  list += "]";
  return "{\"bounding\":" + list + ",\"effective\":" + list + ",\"permitted\":" + list + "}";
}

std::string arguments_of(const Plan& plan) {
  std::string out = "[";
  append_text(out, std::string(kGuestBoot) + "/execd");
  out += ",\"--connections=0\",\"--log-level=4\"";
  if (plan.open_files) out += ",\"--work-open-files=" + std::to_string(*plan.open_files) + "\"";
  return out + "]";
}

// What programs are shown; what holds are the control groups around runsc.
std::string resources_of(const Plan& plan) {
  std::string out = "{";
  if (plan.limits.memory_bytes)
    out += "\"memory\":{\"limit\":" + std::to_string(*plan.limits.memory_bytes) + "}";
  if (plan.limits.cpu_millis) {
    if (out.size() > 1) out += ',';
    out += "\"cpu\":{\"period\":100000,\"quota\":" + std::to_string(*plan.limits.cpu_millis * 100) + "}";
  }
  return out + "}";
}

}  // namespace

bool is_for_runsc(Step::Kind kind) {
  using Kind = Step::Kind;
  return kind == Kind::overlay || kind == Kind::bind || kind == Kind::volume || kind == Kind::hostname;
}

std::string runsc_config(const Plan& plan, uint32_t first_id) {
  bool sealed = false;
  for (const Step& step : plan.steps) sealed = sealed || step.kind == Step::Kind::seal;
  std::string ids = "[{\"containerID\":0,\"hostID\":" + std::to_string(first_id) +
                    ",\"size\":" + std::to_string(kIdsPerSandbox) + "}]";
  std::string out = "{\"ociVersion\":\"1.0.2\",\"hostname\":\"sandbox\",\"root\":{\"path\":";
  append_text(out, kStageRoot);
  out += sealed ? ",\"readonly\":true}" : ",\"readonly\":false}";
  out +=
      ",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/"
      "\",\"env\":[],\"noNewPrivileges\":true,\"args\":" +
      arguments_of(plan) + ",\"capabilities\":" + capability_sets() + "}";
  out += ",\"mounts\":" + mounts_of(plan);
  // No network namespace: it stays in the one that its process has entered.
  out +=
      ",\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":"
      "\"uts\"},"
      "{\"type\":\"user\"}],\"uidMappings\":" +
      ids + ",\"gidMappings\":" + ids + ",\"resources\":" + resources_of(plan) + "}}";
  return out;
}

std::vector<std::string> runsc_arguments(const std::string& platform) {
  return {"runsc", "--root=/state", "--platform=" + platform,
          // Of a network namespace that has a loopback device and the way to the egress process.
          "--network=host",
          // It is in its groups already.
          "--ignore-cgroups",
          // What is written belongs into our overlay: a second one over it would keep it in memory.
          "--overlay2=none", "run", "--bundle=/bundle", "sandbox"};
}

}  // namespace osb::launcher
