#include "server/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace osb::server {
namespace {

constexpr size_t kMaxShown = 60;
constexpr size_t kMaxCompared = 64;

std::vector<std::string_view> words(std::string_view names) {
  if (names.empty()) return {};
  return split(names, ' ');
}

bool has_word(std::string_view names, std::string_view name) {
  auto all = words(names);
  return std::ranges::find(all, name) != all.end();
}

// How many letters to insert, leave out, change or swap to get from one to the other, whatever the case.
size_t distance(std::string_view a, std::string_view b) {
  std::string left = to_lower(a), right = to_lower(b);
  std::array<std::array<size_t, kMaxCompared + 1>, kMaxCompared + 1> d{};
  for (size_t i = 0; i <= left.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= right.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    for (size_t j = 1; j <= right.size(); ++j) {
      size_t change = left[i - 1] == right[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[left.size()][right.size()];
}

// The closest name, if one is close: a third of it may be wrong, or its end be missing. "" otherwise.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known) {
  constexpr size_t kLeastBeginning = 4;
  if (name.size() > kMaxCompared) return {};
  std::string_view best;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (std::string_view candidate : known) {
    if (candidate.size() > kMaxCompared) continue;
    size_t changes = distance(name, candidate);
    if (changes < least) least = changes, best = candidate;
  }
  if (!best.empty() || name.size() < kLeastBeginning) return best;
  auto longer = std::ranges::find_if(known, [&](std::string_view k) { return k.starts_with(name); });
  return longer == known.end() ? std::string_view() : *longer;
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::string_view name : names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

}  // namespace

const std::vector<KnownSection>& known_sections() {
  static const std::vector<KnownSection> kSections = {
      {"server",
       "host port api_key eip max_sandbox_timeout_seconds timeout_keep_alive timeout_graceful_shutdown "
       "limit_concurrency backlog max_connections cors_origins trusted_proxies",
       "thread_pool_size loop http"},
      {"log", "level file_enabled file_path file_max_bytes file_backup_count", "access_file_path"},
      {"runtime", "type fallback also rules", "execd_image execd_run_as_init"},
      {"native", "state_dir user pids_limit host_paths", ""},
      {"native.images", "*", ""},
      {"native.image_aliases", "*", ""},
      {"registry", "default pull_policy plain_hosts ca_files auth_file disk_budget_gb", ""},
      {"registry.mirrors", "*", ""},
      {"proxy", "open max_in_flight_per_sandbox preview_domain", "resolve_internal"},
      {"sandbox",
       "allow_network timeout_seconds max_lifetime shm_size cpu_quota memory_limit disk_limit "
       "pool_size pool_image",
       ""},
      {"sandbox.pool_limits", "*", ""},
      {"store", "type path", ""},
      {"store.postgresql", "",
       "dsn min_pool_size max_pool_size connect_timeout_seconds pool_timeout_seconds "
       "snapshot_recovery_interval_seconds"},
      {"docker",
       "socket host tls_ca tls_cert tls_key remote network_mode api_timeout drop_capabilities "
       "apparmor_profile no_new_privileges pids_limit direct publish_host port_range_min port_range_max "
       "host_ip foreign_volumes adopt adopt_metadata seccomp_profile sandbox_binds",
       ""},
      {"docker.sandbox_env", "*", ""},
      // The last line has keys that other servers had once and now ignore themselves.
      {"kubernetes", "",
       "kubeconfig_path namespace workload_provider batchsandbox_template_file image_pull_policy "
       "sandbox_create_timeout_seconds sandbox_create_poll_interval_seconds informer_resync_seconds "
       "informer_watch_timeout_seconds read_qps write_qps read_burst write_burst insecure_skip_tls_verify "
       "pool_acquisition_timeout_seconds fastpath_endpoint fastpath_timeout_seconds "
       "fastpath_wait_ready_seconds fastpath_resource_pool template_s3_publish_secret "
       "informer_enabled service_account snapshot_create_timeout_seconds"},
      {"kubernetes.execd_init_resources", "", "*"},
      {"agent_sandbox", "", "template_file shutdown_policy ingress_enabled"},
      {"ingress", "", "mode"},
      {"ingress.gateway", "", "address"},
      {"ingress.gateway.route", "", "mode"},
      {"ingress.secure_access", "", "active_key keys"},
      {"egress", "enabled image name_servers deny_always allow_always deny_webhook",
       "mode disable_ipv6 otlp_endpoint readiness_timeout_seconds"},
      {"egress.requests", "", "*"},
      {"egress.limits", "", "*"},
      {"egress.upstream_proxy", "", "url authorization ca_cert_path ca_secret_name"},
      {"storage", "allowed_host_paths", "volume_default_size ossfs_mount_root"},
      {"secure_runtime", "type docker_runtime k8s_runtime_class runsc platform", ""},
      {"renew_intent", "enabled min_interval_seconds", ""},
      {"renew_intent.redis", "enabled dsn queue_key consumer_concurrency", ""},
      {"tenants", "", "provider endpoint max_stale_seconds timeout_seconds auth_header auth_token"},
      {"otel", "", "enabled endpoint service_name export_interval_millis"},
  };
  return kSections;
}

const KnownSection* find_section(std::string_view name) {
  auto found = std::ranges::find(known_sections(), name, &KnownSection::name);
  return found == known_sections().end() ? nullptr : &*found;
}

bool has_sections_below(std::string_view name) {
  return std::ranges::any_of(known_sections(), [&](const KnownSection& section) {
    return section.name.size() > name.size() && section.name.starts_with(name) &&
           section.name[name.size()] == '.';
  });
}

KeyFound find_key(const KnownSection& section, std::string_view name) {
  if (section.read == "*" || has_word(section.read, name)) return KeyFound::read;
  if (section.foreign == "*" || has_word(section.foreign, name)) return KeyFound::foreign;
  return KeyFound::no;
}

std::string suggest_key(std::string_view section, std::string_view name) {
  std::vector<std::string_view> here, here_read;
  if (const KnownSection* known = find_section(section)) {
    here_read = words(known->read);
    here = here_read;
    std::ranges::copy(words(known->foreign), std::back_inserter(here));
  }
  if (std::string_view near = nearest(name, here); !near.empty())
    return fmt::format("did you mean `{}`?", near);
  for (const KnownSection& other : known_sections()) {
    if (has_word(other.read, name)) return fmt::format("it belongs below [{}]", other.name);
  }
  // A key without a section, perhaps misspelt besides.
  for (const KnownSection& other : known_sections()) {
    if (std::string_view near = nearest(name, words(other.read)); section.empty() && !near.empty())
      return fmt::format("did you mean `{}` below [{}]?", near, other.name);
  }
  if (!here_read.empty()) return fmt::format("the keys there are {}", listed(here_read));
  return "remove it; `opensandbox-server init-config` writes a file with every key";
}

std::string suggest_section(std::string_view name) {
  std::vector<std::string_view> all, read;
  for (const KnownSection& section : known_sections()) {
    all.push_back(section.name);
    if (!section.read.empty()) read.push_back(section.name);
  }
  if (std::string_view near = nearest(name, all); !near.empty())
    return fmt::format("did you mean [{}]?", near);
  return fmt::format("the sections are {}", listed(read));
}

std::string shown_name(std::string_view name) {
  std::string out(name.substr(0, kMaxShown));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f || c == '`') c = '?';
  }
  return name.size() > kMaxShown ? out + "..." : out;
}

}  // namespace osb::server
