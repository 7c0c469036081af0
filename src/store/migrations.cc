#include "store/migrations.h"

#include <array>

namespace osb::store {
namespace {

// Times are microseconds since 1970. entrypoint, metadata, limits, env_names and extensions are JSON texts of
// lists and maps of strings; state and reason are the words of sandbox/status.cc. Values of environment
// variables are never stored with a sandbox: they are where callers put their secrets. Events outlive their
// sandbox, so there is no foreign key.
constexpr std::array<const char*, 10> kMigrations = {
    R"sql(
CREATE TABLE sandboxes (
  id          TEXT PRIMARY KEY NOT NULL,
  state       TEXT NOT NULL,
  reason      TEXT NOT NULL,
  message     TEXT NOT NULL,
  image       TEXT NOT NULL,
  entrypoint  TEXT NOT NULL,
  metadata    TEXT NOT NULL,
  limits      TEXT NOT NULL,
  env_names   TEXT NOT NULL,
  extensions  TEXT NOT NULL,
  platform    TEXT NOT NULL,
  identity    TEXT NOT NULL,
  created_us  INTEGER NOT NULL,
  changed_us  INTEGER NOT NULL,
  expires_us  INTEGER
) STRICT;
CREATE INDEX sandboxes_by_creation ON sandboxes (created_us DESC, id DESC);
CREATE INDEX sandboxes_by_expiry ON sandboxes (expires_us) WHERE expires_us IS NOT NULL;

CREATE TABLE events (
  sequence    INTEGER PRIMARY KEY,
  sandbox_id  TEXT NOT NULL,
  at_us       INTEGER NOT NULL,
  kind        TEXT NOT NULL,
  detail      TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_sandbox ON events (sandbox_id, sequence);
CREATE INDEX events_by_time ON events (at_us);
)sql",
    R"sql(
CREATE TABLE outputs (
  sandbox_id  TEXT PRIMARY KEY NOT NULL,
  text        TEXT NOT NULL,
  truncated   INTEGER NOT NULL
) STRICT;
)sql",
    // Sandboxes made before there were handles are found under their ids.
    R"sql(
ALTER TABLE sandboxes ADD COLUMN handle TEXT NOT NULL DEFAULT '';
UPDATE sandboxes SET handle = id;
)sql",
    // Before there were several, there was one.
    R"sql(
ALTER TABLE sandboxes ADD COLUMN runtime TEXT NOT NULL DEFAULT 'native';
)sql",
    // What was made before there were owners belongs to the one that every server has.
    R"sql(
ALTER TABLE sandboxes ADD COLUMN owner TEXT NOT NULL DEFAULT 'default';
ALTER TABLE events    ADD COLUMN owner TEXT NOT NULL DEFAULT 'default';
ALTER TABLE outputs   ADD COLUMN owner TEXT NOT NULL DEFAULT 'default';
DROP INDEX sandboxes_by_creation;
CREATE INDEX sandboxes_by_owner ON sandboxes (owner, created_us DESC, id DESC);
)sql",
    // See create_keys.h.
    R"sql(
CREATE TABLE create_keys (
  owner        TEXT NOT NULL,
  key          TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  sandbox_id   TEXT NOT NULL,
  at_us        INTEGER NOT NULL,
  PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX create_keys_by_time ON create_keys (at_us);
)sql",
    // Snapshots outlive their sandbox. layers is a JSON list of "overlay digest".
    R"sql(
CREATE TABLE snapshots (
  id          TEXT PRIMARY KEY NOT NULL,
  owner       TEXT NOT NULL,
  sandbox_id  TEXT NOT NULL,
  name        TEXT,
  state       TEXT NOT NULL,
  reason      TEXT NOT NULL,
  message     TEXT NOT NULL,
  changed_us  INTEGER NOT NULL,
  image       TEXT NOT NULL,
  image_id    TEXT NOT NULL,
  layers      TEXT NOT NULL,
  runtime     TEXT NOT NULL,
  bytes       INTEGER NOT NULL,
  created_us  INTEGER NOT NULL
) STRICT;
CREATE INDEX snapshots_by_owner ON snapshots (owner, created_us DESC, id DESC);
CREATE INDEX snapshots_by_sandbox ON snapshots (sandbox_id);
)sql",
    // See pools.h. The template is what its owner sent, values of variables included.
    R"sql(
CREATE TABLE pools (
  owner       TEXT NOT NULL,
  name        TEXT NOT NULL,
  id          TEXT NOT NULL,
  template    TEXT NOT NULL,
  buffer_min  INTEGER NOT NULL,
  buffer_max  INTEGER NOT NULL,
  pool_min    INTEGER NOT NULL,
  pool_max    INTEGER NOT NULL,
  created_us  INTEGER NOT NULL,
  PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE pool_members (
  handle      TEXT PRIMARY KEY NOT NULL,
  pool        TEXT NOT NULL,
  runtime     TEXT NOT NULL,
  identity    TEXT NOT NULL,
  warmth      TEXT NOT NULL,
  created_us  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
    // A snapshot has the network policy that its sandbox had; see server/kept_policy.h.
    R"sql(
ALTER TABLE snapshots ADD COLUMN network TEXT NOT NULL DEFAULT '';
)sql",
    // Those that wait already get their ids when they are claimed, as they were made for.
    R"sql(
ALTER TABLE pool_members ADD COLUMN sandbox_id TEXT NOT NULL DEFAULT '';
)sql",
};

Result<int64_t> user_version(Database& db) {
  Statement statement = TRY(db.prepare("PRAGMA user_version"));
  auto query = statement.run();
  TRY(query.next());
  return query.integer(0);
}

}  // namespace

std::span<const char* const> migrations() { return kMigrations; }

Result<void> migrate(Database& db, std::span<const char* const> steps) {
  int64_t have = TRY(user_version(db));
  int64_t want = static_cast<int64_t>(steps.size());
  if (have > want) {
    return fail(Code::unsupported, "the state database has schema " + std::to_string(have) +
                                       ", this program knows " + std::to_string(want) +
                                       "; run the newer version or use another store.path");
  }
  // A new database has nothing to lose, and waiting for the disk is most of a first start.
  if (have == 0) TRY(db.execute("PRAGMA synchronous=OFF"));
  for (int64_t version = have; version < want; ++version) {
    // Each by itself: a start that is killed between two of them goes on from there.
    Transaction transaction = TRY(Transaction::begin(db));
    std::string what = "migrate the state database to schema " + std::to_string(version + 1);
    TRY(in_context(what, db.execute(steps[static_cast<size_t>(version)])));
    TRY(in_context(what, db.execute("PRAGMA user_version=" + std::to_string(version + 1))));
    TRY(in_context(what, transaction.commit()));
  }
  return db.execute("PRAGMA synchronous=NORMAL");
}

}  // namespace osb::store
