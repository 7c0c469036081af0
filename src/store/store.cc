#include "store/store.h"

#include <filesystem>

#include "store/migrations.h"

namespace osb::store {

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  auto parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty() && !std::filesystem::exists(parent, error)) {
    std::filesystem::create_directories(parent, error);
    if (error) return fail_errno("create directory " + parent.string() + " for store.path", error.value());
    std::filesystem::permissions(parent, std::filesystem::perms::owner_all, error);
  }
  auto store = TRY(finish(TRY(Database::open(path))));
  store->checkpointer_ = TRY(Checkpointer::start(store->db_, path));
  return store;
}

Result<std::unique_ptr<Store>> Store::open_in_memory() { return finish(TRY(Database::open_in_memory())); }

Result<std::unique_ptr<Store>> Store::finish(Database db) {
  std::unique_ptr<Store> store(new Store(std::move(db)));
  TRY(migrate(store->db_));
  store->sandboxes_ = TRY(Sandboxes::open(store->db_));
  store->events_ = TRY(Events::open(store->db_));
  store->outputs_ = TRY(Outputs::open(store->db_));
  return store;
}

}  // namespace osb::store
