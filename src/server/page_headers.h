#pragma once

// What browsers are told about answers. Everything that this server answers has one origin: the API's answers
// and the pages of every sandbox. The API's answers are made useless to pages; answers of sandboxes lose what
// would change more of the origin than the sandbox's own paths.

#include <string_view>

#include "http/server.h"

namespace osb::server {

// An answer of the API that is shown as a document has an origin of its own, runs nothing, is in no frame and
// loaded by no page as a script, style or image.
void protect_api_answer(http::ResponseWriter& response);

// Fields that would count for the whole origin go, and cookies are for the sandbox's own paths only.
void confine_proxied_answer(http::Headers& headers, std::string_view visible_prefix);

// The same for a preview, which has its origin for itself: what counts for other hosts of its domain goes.
void confine_preview_answer(http::Headers& headers);

}  // namespace osb::server
