#pragma once

// The command line of `osb pools`.

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/arguments.h"
#include "cli/raw_connection.h"

namespace osb::cli {

struct RawPools {
  RawConnection to_create, to_ls, to_inspect, to_rm;
  PoolOptions read_;
  std::string name;
  std::optional<int64_t> buffer_max, pool_max;
  CLI::App *pools = nullptr, *create = nullptr, *ls = nullptr, *inspect = nullptr, *rm = nullptr;

  void options(CLI::App& app) {
    pools = app.add_subcommand("pools", "keep sandboxes ready: make, list and remove pools of them");
    pools->require_subcommand(1, 1);
    create_options();
    ls = pools->add_subcommand("ls", "list the pools");
    to_ls.options(*ls);
    ls->add_flag("--json", read_.json, "print the server's records as JSON");
    inspect = pools->add_subcommand("inspect", "print what the server knows about a pool, as JSON");
    to_inspect.options(*inspect);
    inspect->add_option("NAME", name, "as `osb pools ls` prints it")->required();
    rm = pools->add_subcommand("rm", "remove pools and what waits in them; what was taken stays");
    to_rm.options(*rm);
    rm->add_option("NAME", read_.names, "names as `osb pools ls` prints them")->required();
    pools->footer("A create takes a sandbox of a pool with \"extensions\": {\"poolRef\": \"NAME\"}.");
  }

  Result<PoolOptions> read() {
    using What = PoolOptions::What;
    const RawConnection& to = create->parsed()    ? to_create
                              : ls->parsed()      ? to_ls
                              : inspect->parsed() ? to_inspect
                                                  : to_rm;
    read_.connection = TRY(to.read());
    if (!name.empty()) read_.names = {name};
    read_.what = create->parsed()    ? What::create
                 : ls->parsed()      ? What::list
                 : inspect->parsed() ? What::inspect
                                     : What::remove;
    bool shaped = !read_.image.empty() || !read_.cpu.empty() || !read_.memory.empty();
    if (create->parsed() && read_.file.empty() == !shaped)
      return fail(Code::invalid_argument,
                  "name an image with --image, or a file with a template, and not both");
    if (create->parsed() && read_.file.empty() && read_.image.empty())
      return fail(Code::invalid_argument, "--image is missing");
    // What is not said follows what is, so that one number is enough.
    read_.buffer_max = buffer_max.value_or(std::max<int64_t>(2, read_.buffer_min));
    read_.pool_max = pool_max.value_or(std::max({int64_t{50}, read_.buffer_max, read_.pool_min}));
    return read_;
  }

 private:
  void create_options() {
    create = pools->add_subcommand("create", "make a pool");
    to_create.options(*create);
    create->add_option("NAME", name, "a-z, 0-9 and -")->required();
    create->add_option("FILE", read_.file, "the template: the body of a create as JSON; - is standard input");
    create->add_option("--image", read_.image, "image of the sandboxes, when there is no FILE");
    create->add_option("--cpu", read_.cpu, "CPU limit: cores (1.5) or thousandths of one (500m)");
    create->add_option("--memory", read_.memory, "memory limit: 256Mi, 1Gi");
    create->add_option("--buffer-min", read_.buffer_min, "with fewer that wait, more are made")
        ->capture_default_str();
    create->add_option("--buffer-max", buffer_max, "until so many wait; default: 2, or --buffer-min");
    create->add_option("--pool-min", read_.pool_min, "so many there are in all, taken ones included")
        ->capture_default_str();
    create->add_option("--pool-max", pool_max, "and never more; default: 50, or what the others need");
  }
};

}  // namespace osb::cli
