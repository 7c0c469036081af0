#include "registry/push.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/ids.h"
#include "image/digest.h"
#include "registry/fetcher_process.h"

namespace osb::registry {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = FetchEvent::Kind;
using image::FormKind;

// A registry that says within this time neither yes nor no is away.
constexpr auto kFoundLimit = std::chrono::seconds(90);

// The order in which the registry is asked for them: as it came a layer is the same everywhere.
std::vector<image::PackedForm> forms_of(const std::string& layer) {
  std::vector<image::PackedForm> out;
  for (FormKind kind : {FormKind::came, FormKind::packed}) {
    auto form = image::known_form(layer, kind);
    // Registries know no xz.
    if (form && form->compression != image::Compression::xz) out.push_back(std::move(*form));
  }
  return out;
}

}  // namespace

void Push::tell() {
  if (watch_.progress) watch_.progress(news_);
}

// A file that nobody can find: when we end, however that is, it is gone.
Result<Push::Room> Push::make_room() const {
  std::string place = settings_.state_dir + "/images/store";
  Room room;
  auto made = open_at(AT_FDCWD, place, O_TMPFILE | O_WRONLY, 0600);
  if (!made) {  // some file systems have none without a name
    std::string path = place + "/staging/" + new_hex_id();
    made = open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!made) return own_fault(std::move(made.error()));
    auto read = open_at(AT_FDCWD, path, O_RDONLY);
    (void)::unlink(path.c_str());
    if (!read) return own_fault(std::move(read.error()));
    return Room{std::move(*made), std::move(*read)};
  }
  auto read = open_at(AT_FDCWD, "/proc/self/fd/" + std::to_string(made->get()), O_RDONLY);
  if (!read) return own_fault(std::move(read.error()));
  return Room{std::move(*made), std::move(*read)};
}

Result<PushWish> Push::wish(const image::PullReference& target) const {
  PushWish wish;
  for (const std::string& layer : source_.layers) {
    PushWish::Layer one;
    for (const auto& form : forms_of(layer)) one.forms.push_back({form.digest, form.size});
    wish.layers.push_back(std::move(one));
  }
  constexpr size_t kMostOthers = 4;
  for (const std::string& name : source_.names) {
    auto reference = image::parse_pull_reference(name, settings_.default_registry);
    if (!reference || reference->registry != target.registry || reference->repository == target.repository)
      continue;
    if (std::ranges::find(wish.others, reference->repository) != wish.others.end()) continue;
    if (wish.others.size() < kMostOthers) wish.others.push_back(reference->repository);
  }
  return wish;
}

Result<std::vector<int>> Push::hear_found(FetchTalk& fetcher) const {
  auto until = Clock::now() + kFoundLimit;
  while (true) {
    auto event = TRY(fetcher.hear(until));
    if (!event || event->kind != Kind::found) continue;
    if (event->forms.size() != source_.layers.size())
      return fail(Code::internal, "the process that speaks to the registry spoke nonsense");
    return std::move(event->forms);
  }
}

// Without a limit of its own: a fetcher gives up by itself when nothing goes any more.
Result<void> Push::hear_end(FetchTalk& fetcher) {
  while (true) {
    auto event = TRY(fetcher.hear(Clock::now() + std::chrono::hours(1)));
    if (!event) continue;
    if (event->kind == Kind::done) return {};
    news_.downloaded = std::min(event->bytes, news_.total);
    tell();
  }
}

Result<image::PackedForm> Push::form_of(size_t index, int found, const Room& room, bool& is_here) {
  const std::string& layer = source_.layers[index];
  auto forms = forms_of(layer);
  is_here = found >= 0 && static_cast<size_t>(found) < forms.size();
  if (is_here) return forms[static_cast<size_t>(found)];
  auto form = TRY(in_context(
      "layer " + std::to_string(index + 1) + " of " + std::to_string(source_.layers.size()),
      image::pack_layer(layer, room.write.get(), {.progress = {}, .cancel_fd = watch_.cancel_fd})));
  // The next push need not pack it to know that the registry has it. Only a note: it may be missing.
  (void)image::note_form(layer, FormKind::packed, form);
  ++news_.unpacked;
  news_.total += form.size;
  tell();
  return form;
}

Result<std::string> Push::run() {
  auto target = TRY(image::parse_pull_reference(order_.target, settings_.default_registry));
  if (!target.digest.empty())
    return fail(Code::invalid_argument, "an image is pushed under a tag; its digest is what it has");
  source_ = TRY(order_.snapshot.empty() ? image::find_image_to_push(settings_.state_dir, order_.name)
                                        : image::find_snapshot_to_push(settings_.state_dir, order_.snapshot));
  auto order = TRY(fetch_order(settings_, target,
                               {.login = order_.login, .own_logins = order_.own_logins, .mirrors = false}));
  order.push = TRY(wish(target));

  std::vector<Room> rooms;
  std::vector<int> files;
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    rooms.push_back(TRY(make_room()));
    files.push_back(rooms.back().read.get());
  }
  auto executable = open_at(AT_FDCWD, "/proc/self/exe", O_RDONLY);
  if (!executable) return own_fault(std::move(executable.error()));
  // It downloads nothing: the directory that it has is one that it may not write to.
  auto nothing = open_at(AT_FDCWD, "/proc/self/fdinfo", O_RDONLY | O_DIRECTORY);
  if (!nothing) return own_fault(std::move(nothing.error()));
  auto process = FetcherProcess::start(executable->get(), nothing->get(), files);
  if (!process) return own_fault(std::move(process.error()));
  FetchTalk fetcher(process->socket(), watch_.cancel_fd);
  TRY(fetcher.send(encode(order)));
  auto found = TRY(hear_found(fetcher));
  news_.layers = static_cast<uint64_t>(std::ranges::count(found, -1));
  tell();

  PushContent content;
  std::vector<image::PackedForm> forms;
  for (size_t i = 0; i < found.size(); ++i) {
    bool is_here = false;
    forms.push_back(TRY(form_of(i, found[i], rooms[i], is_here)));
    content.layers.push_back({{forms.back().digest, forms.back().size}, is_here ? -1 : static_cast<int>(i)});
  }
  content.config = image::config_document(source_, forms);
  content.manifest = image::manifest_document(content.config, forms);
  content.manifest_type = image::kManifestType;
  TRY(fetcher.send(encode(content)));
  TRY(hear_end(fetcher));
  return image::sha256(content.manifest);
}

}  // namespace osb::registry
