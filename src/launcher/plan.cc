#include "launcher/plan.h"

namespace osb::launcher {
namespace {

constexpr size_t kMaxSteps = 256;
constexpr size_t kMaxLowers = 256;

void put(ByteWriter& out, const std::optional<int64_t>& value) { out.number(value.value_or(-1)); }
std::optional<int64_t> optional_number(ByteReader& in) {
  auto value = in.number<int64_t>();
  if (value < 0) return std::nullopt;
  return value;
}

// A value of an enumeration that ends with `last`.
template <class Enum>
Enum one_of(ByteReader& in, Enum last) {
  auto value = in.number<uint8_t>();
  if (value > static_cast<uint8_t>(last)) in.fail();
  return in.failed() ? Enum{} : static_cast<Enum>(value);
}

}  // namespace

void write_step(const Step& step, ByteWriter& out) {
  out.number(static_cast<uint8_t>(step.kind));
  out.string(step.target);
  out.string(step.source);
  out.string(step.name);
  out.number(static_cast<uint32_t>(step.lowers.size()));
  for (const std::string& lower : step.lowers) out.string(lower);
  out.number(static_cast<uint8_t>(step.access));
  out.number(static_cast<uint8_t>(step.ids));
}

Step read_step(ByteReader& in) {
  Step step;
  step.kind = one_of(in, Step::Kind::volume);
  step.target = in.string();
  step.source = in.string();
  step.name = in.string();
  auto lowers = in.number<uint32_t>();
  if (lowers > kMaxLowers) in.fail();
  for (uint32_t i = 0; i < lowers && !in.failed(); ++i) step.lowers.push_back(in.string());
  step.access = one_of(in, Step::Access::read_write);
  step.ids = one_of(in, Step::Ids::owner);
  return step;
}

std::string_view to_string(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::overlay:
      return "overlay";
    case Step::Kind::bind:
      return "bind";
    case Step::Kind::proc:
      return "proc";
    case Step::Kind::sysfs:
      return "sysfs";
    case Step::Kind::devices:
      return "devices";
    case Step::Kind::mask:
      return "mask";
    case Step::Kind::read_only:
      return "read-only";
    case Step::Kind::hostname:
      return "hostname";
    case Step::Kind::scratch:
      return "scratch";
    case Step::Kind::seal:
      return "seal";
    case Step::Kind::show_limits:
      return "show-limits";
    case Step::Kind::volume:
      return "volume";
  }
  return "unknown";
}

std::string to_text(const Step& step) {
  std::string out(to_string(step.kind));
  if (!step.target.empty()) out += " " + step.target;
  if (!step.name.empty()) out += " " + step.name;
  if (!step.source.empty()) out += " <- " + step.source;
  for (size_t i = 0; i < step.lowers.size(); ++i) out += (i == 0 ? " <- " : " : ") + step.lowers[i];
  if (step.access == Step::Access::read_write) out += " read-write";
  if (step.ids == Step::Ids::owner) out += " ids=owner";
  return out;
}

std::string to_text(const Plan& plan) {
  auto limit = [](const char* name, const std::optional<int64_t>& value) {
    return value ? std::string(" ") + name + "=" + std::to_string(*value) : std::string();
  };
  std::string out = "sandbox " + plan.id + limit("cpu_millis", plan.limits.cpu_millis) +
                    limit("memory_bytes", plan.limits.memory_bytes) + limit("pids", plan.limits.pids) +
                    limit("io_read_bytes", plan.limits.io_read_bytes) +
                    limit("io_write_bytes", plan.limits.io_write_bytes) +
                    limit("disk_bytes", plan.disk_bytes) + limit("open_files", plan.open_files) +
                    limit("shm_bytes", plan.shm_bytes);
  if (plan.network.kind == PlanNetwork::Kind::policy)
    out += " network=" + (plan.network.policy.empty() ? "egress" : plan.network.policy);
  if (plan.network.kind == PlanNetwork::Kind::open) out += " network=open";
  if (plan.kernel == Plan::Kernel::runsc) out += " kernel=runsc";
  out += "\n";
  for (const Step& step : plan.steps) out += to_text(step) + "\n";
  return out;
}

void write_plan(const Plan& plan, ByteWriter& out) {
  out.string(plan.id);
  out.string(plan.image);
  put(out, plan.limits.cpu_millis);
  put(out, plan.limits.memory_bytes);
  put(out, plan.limits.pids);
  put(out, plan.limits.io_read_bytes);
  put(out, plan.limits.io_write_bytes);
  put(out, plan.disk_bytes);
  put(out, plan.open_files);
  put(out, plan.shm_bytes);
  out.number(static_cast<uint8_t>(plan.network.kind));
  out.string(plan.network.policy);
  out.number(static_cast<uint8_t>(plan.kernel));
  out.number(static_cast<uint32_t>(plan.steps.size()));
  for (const Step& step : plan.steps) write_step(step, out);
  out.string(plan.record);
}

Plan read_plan(ByteReader& in) {
  Plan plan;
  plan.id = in.string();
  plan.image = in.string();
  plan.limits.cpu_millis = optional_number(in);
  plan.limits.memory_bytes = optional_number(in);
  plan.limits.pids = optional_number(in);
  plan.limits.io_read_bytes = optional_number(in);
  plan.limits.io_write_bytes = optional_number(in);
  plan.disk_bytes = optional_number(in);
  plan.open_files = optional_number(in);
  plan.shm_bytes = optional_number(in);
  plan.network.kind = one_of(in, PlanNetwork::Kind::open);
  plan.network.policy = in.string();
  plan.kernel = one_of(in, Plan::Kernel::runsc);
  auto steps = in.number<uint32_t>();
  if (steps > kMaxSteps) in.fail();
  for (uint32_t i = 0; i < steps && !in.failed(); ++i) plan.steps.push_back(read_step(in));
  plan.record = in.string();
  return plan;
}

}  // namespace osb::launcher
