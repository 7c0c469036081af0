// What peers ask about volumes.

#include <memory>

#include "launcher/checks.h"
#include "launcher/requests.h"
#include "launcher/volume_path.h"

namespace osb::launcher {
namespace {

Result<VolumePath> path_of(const DropVolumeRequest& request) {
  auto path = parse_volume_path(request.owner + "/" + request.name);
  if (path && path->below.empty()) return *path;
  return fail(Code::permission_denied, "refused: not the name of a volume");
}

}  // namespace

void Requests::on(From from, const VolumeRequest& request) {
  if (auto allowed = check_volume(request.step); !allowed) return answer_error(from, allowed.error());
  auto ensured = sandboxes_.ensure_volume(request);
  if (!ensured) return answer_error(from, ensured.error());
  if (!ensured->under_way) return answer(from, VolumeAnswer{});
  auto held = std::make_shared<Forked>(std::move(*ensured->under_way));
  auto watched = reactor_.watch_once(
      held->ended.get(), [this, from, request, held] { finish_volume(from, request, outcome_of(*held)); });
  if (!watched) answer_error(from, watched.error());
}

// It is there now, whoever made it; what is left of the request takes no time.
void Requests::finish_volume(From from, const VolumeRequest& request, const Result<void>& outcome) {
  if (!outcome && outcome.error().code != Code::already_exists) return answer_error(from, outcome.error());
  auto ensured = sandboxes_.ensure_volume(request);
  if (!ensured) return answer_error(from, ensured.error());
  answer(from, VolumeAnswer{outcome.has_value()});
}

void Requests::on(From from, const VolumesRequest& request) {
  if (!is_volume_name(request.owner))
    return answer_error(from, {Code::permission_denied, 0, "refused: not the name of an owner"});
  auto page = sandboxes_.list_volumes(request.owner, request.after, kVolumesPage);
  page ? answer(from, VolumesAnswer{std::move(*page)}) : answer_error(from, page.error());
}

void Requests::on(From from, const DropVolumeRequest& request) {
  auto path = path_of(request);
  if (!path) return answer_error(from, path.error());
  auto dropped = sandboxes_.drop_volume(*path);
  answer_done(from, dropped);
  if (dropped) events_.trashed();
}

}  // namespace osb::launcher
