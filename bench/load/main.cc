// bench-load: times the service and its peers from outside, with raw sockets and plain processes.
//
//   bench-load serve                  a co-process for bench/bench, see below
//   bench-load sustained PORT PREFIX SUFFIX --clients N --seconds S
//   bench-load requests PORT [PATCH:]PATH... --clients N --seconds S
//   bench-load relay-server PORT STREAM_PORT BYTES, relay ADDRESS PORT COUNT, relay-stream ADDRESS PORT BYTES
//   bench-load spawn-rate --workers N --seconds S -- PROGRAM [ARGUMENT...]
//
// serve reads lines of words separated by tabs and answers each with one line: microseconds and further
// words, or `error` and a sentence.
//   service PORT PREFIX SUFFIX   where the service is and how an endpoint path is built around an id
//   create                       -> us id
//   delete ID                    -> us
//   run ID COMMAND               -> us until the whole answer is there
//   code ID LANGUAGE CODE        -> us until the whole answer of a cell in the default context is there
//   context ID LANGUAGE CODE     -> us id: a new context and its first cell
//   ping ID                      -> us
//   pause ID, resume ID          -> us
//   health                       -> us
//   first                        -> us_total us_create us_delete: create, `echo x`, until its output; then
//                                delete
//   claim POOL                   -> the same, of a sandbox that is claimed from a pool
//   program first|exit ARGV...   -> us
//   start PORT PATH LOG ARGV...  -> us pid, when GET PATH answers 200
//   stop PID                     -> us
//   stream ID COMMAND            -> us lines bytes: until a command's whole output is there
//   download PORT PATH BYTES     -> us
//   upload ID PATH BYTES         -> us
//   receive FILE BYTES           -> us: the bare loop that an upload is compared with
//   stock BYTES                  -> us: sees to so much free memory that the machine has at hand
//   (MemoryStock);
//                                0 gives it up

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "relay.h"
#include "requests.h"
#include "spawn.h"
#include "sustained.h"
#include "transfer.h"

namespace {

using namespace load;

class CoProcess {
 public:
  std::string answer(const Words& words) {
    problem_.clear();
    std::string line = dispatch(words);
    return line.empty() ? "error\t" + (problem_.empty() ? std::string("failed") : problem_) : line;
  }

 private:
  std::string dispatch(const Words& words) {
    const std::string& verb = words[0];
    if (verb == "service" && words.size() == 4) return connect(words);
    if (verb == "create") return create();
    if (verb == "delete" && words.size() == 2) return timed(service_.remove(words[1]), 204);
    if (verb == "ping" && words.size() == 2) return timed(service_.ping(words[1]), 200);
    if (verb == "pause" && words.size() == 2) return timed(service_.pause(words[1]), 202);
    if (verb == "resume" && words.size() == 2) return timed(service_.resume(words[1]), 202);
    if (verb == "health") return timed(service_.health(), 200);
    if (verb == "run" && words.size() == 3) return run(words[1], words[2]);
    if (verb == "code" && words.size() == 4) return code(words[1], words[2], words[3]);
    if (verb == "context" && words.size() == 4) return new_context(words[1], words[2], words[3]);
    if (verb == "first") return first(service_.create());
    if (verb == "claim" && words.size() == 2) return first(service_.claim(words[1]));
    if (verb == "program" && words.size() > 2) {
      auto took = time_program({words.begin() + 2, words.end()},
                               words[1] == "first" ? Until::first_byte : Until::exit, problem_);
      return took ? number(*took) : "";
    }
    if (verb == "start" && words.size() > 4) {
      auto started = start_service(atoi(words[1].c_str()), words[2], words[3],
                                   {words.begin() + 4, words.end()}, problem_);
      return started ? number(started->us) + "\t" + std::to_string(started->pid) : "";
    }
    if (verb == "stop" && words.size() == 2) {
      double start = now_us();
      if (stop_service(atoi(words[1].c_str()))) return number(now_us() - start);
      problem_ = "the service did not end in time and was killed";
      return "";
    }
    if (verb == "stream" && words.size() == 3) return stream(words[1], words[2]);
    if (verb == "download" && words.size() == 4) {
      return taken(load::download(atoi(words[1].c_str()), words[2], bytes(words[3]), problem_));
    }
    if (verb == "upload" && words.size() == 4) {
      std::string path = service_.prefix + words[1] + service_.suffix + "/files/upload";
      return taken(load::upload(service_.port, path, words[2], bytes(words[3]), problem_));
    }
    if (verb == "receive" && words.size() == 3) {
      return taken(receive_and_write(words[1], bytes(words[2]), problem_));
    }
    if (verb == "stock" && words.size() == 2) return taken(stock_.renew(bytes(words[1]), problem_));
    problem_ = "unknown command " + verb;
    return "";
  }

  static std::string number(double value) {
    char text[64];
    snprintf(text, sizeof text, "%.1f", value);
    return text;
  }

  static std::string taken(std::optional<double> us) { return us ? number(*us) : ""; }
  static uint64_t bytes(const std::string& word) { return strtoull(word.c_str(), nullptr, 10); }

  std::string stream(const std::string& id, const std::string& command) {
    Counted counted;
    auto took = load::stream(service_.port, service_.run(id, command), counted, problem_);
    if (!took) return "";
    return number(*took) + "\t" + std::to_string(counted.lines) + "\t" + std::to_string(counted.bytes);
  }

  std::string connect(const Words& words) {
    service_ = {atoi(words[1].c_str()), words[2], words[3]};
    return reconnect() ? "0" : "";
  }

  bool reconnect() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = connect_loopback(service_.port);
    if (fd_ < 0) {
      problem_ = std::string("connect: ") + strerror(errno);
      return false;
    }
    timeval limit = {30, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return true;
  }

  // A server ends a connection that was idle for long, and other parts of a run take minutes.
  bool ended_meanwhile() const {
    char byte = 0;
    return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  // One request and its whole answer. `mark` receives the time at which `needle` was first in the body.
  bool exchange(const std::string& request, Response& response, std::string_view needle = {},
                double* mark = nullptr) {
    response = Response();
    if (ended_meanwhile() && !reconnect()) return false;
    bool fine =
        ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
    char buffer[65536];
    while (fine && !response.complete()) {
      ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      fine = got > 0 && response.feed({buffer, static_cast<size_t>(got)});
      if (mark != nullptr && *mark == 0 && response.body().find(needle) != std::string::npos)
        *mark = now_us();
    }
    if (!fine) problem_ = "the connection ended, stalled, or the answer was not HTTP";
    if (!fine || !response.keep_alive()) reconnect();
    return fine;
  }

  bool expect(const Response& response, int status) {
    if (response.status() == status) return true;
    problem_ = std::to_string(response.status()) + " " + response.body().substr(0, 300);
    return false;
  }

  std::string timed(const std::string& request, int status) {
    Response response;
    double start = now_us();
    if (!exchange(request, response) || !expect(response, status)) return "";
    return number(now_us() - start);
  }

  // Empty on failure.
  std::string create_one(const std::string& request) {
    Response response;
    if (!exchange(request, response)) return "";
    std::string id = find_id(response.body());
    if (response.status() / 100 != 2 || id.empty()) {
      problem_ = "create: " + std::to_string(response.status()) + " " + response.body().substr(0, 300);
      return "";
    }
    return id;
  }

  std::string create() {
    double start = now_us();
    std::string id = create_one(service_.create());
    return id.empty() ? "" : number(now_us() - start) + "\t" + id;
  }

  std::string run(const std::string& id, const std::string& command) {
    Response response;
    double start = now_us();
    if (!exchange(service_.run(id, command), response) || !expect(response, 200)) return "";
    double took = now_us() - start;
    if (response.body().find(kCompleteEvent) == std::string::npos) {
      problem_ = "the command did not complete: " + response.body().substr(0, 300);
      return "";
    }
    return number(took);
  }

  bool run_cell(const std::string& request) {
    Response response;
    if (!exchange(request, response) || !expect(response, 200)) return false;
    if (response.body().find(kCompleteEvent) != std::string::npos) return true;
    problem_ = "the cell did not complete: " + response.body().substr(0, 300);
    return false;
  }

  std::string code(const std::string& id, const std::string& language, const std::string& code) {
    double start = now_us();
    if (!run_cell(service_.code(id, "", language, code))) return "";
    return number(now_us() - start);
  }

  std::string new_context(const std::string& id, const std::string& language, const std::string& code) {
    Response response;
    double start = now_us();
    if (!exchange(service_.context(id, language), response) || !expect(response, 200)) return "";
    std::string context = find_id(response.body());
    if (!run_cell(service_.code(id, context, language, code))) return "";
    return number(now_us() - start) + "\t" + context;
  }

  std::string first(const std::string& create) {
    Response response;
    double start = now_us();
    std::string id = create_one(create);
    if (id.empty()) return "";
    double created = now_us();
    double mark = 0;
    bool ran = exchange(service_.run(id, "echo x"), response, kOutputEvent, &mark) && expect(response, 200);
    std::string why = problem_;
    std::string removed = timed(service_.remove(id), 204);
    if (!ran || mark == 0) {
      problem_ = why.empty() ? "no output event: " + response.body().substr(0, 300) : why;
      return "";
    }
    if (removed.empty()) return "";
    return number(mark - start) + "\t" + number(created - start) + "\t" + removed;
  }

  MemoryStock stock_;
  Service service_;
  int fd_ = -1;
  std::string problem_;
};

int serve() {
  CoProcess process;
  char* line = nullptr;
  size_t capacity = 0;
  ssize_t length = 0;
  while ((length = ::getline(&line, &capacity, stdin)) > 0) {
    std::string_view text(line, static_cast<size_t>(length));
    if (text.ends_with('\n')) text.remove_suffix(1);
    Words words;
    for (;;) {
      size_t tab = text.find('\t');
      words.emplace_back(text.substr(0, tab));
      if (tab == std::string_view::npos) break;
      text.remove_prefix(tab + 1);
    }
    std::string answer = process.answer(words);
    for (char& c : answer) c = c == '\n' || c == '\r' ? ' ' : c;
    printf("%s\n", answer.c_str());
    fflush(stdout);
  }
  free(line);
  return 0;
}

int usage() {
  fprintf(stderr,
          "usage: bench-load serve\n"
          "       bench-load sustained PORT PREFIX SUFFIX [--clients N] [--seconds S]\n"
          "       bench-load requests PORT [PATCH:]PATH... [--clients N] [--seconds S]\n"
          "       bench-load relay-server PORT STREAM_PORT BYTES\n"
          "       bench-load relay ADDRESS PORT COUNT\n"
          "       bench-load relay-stream ADDRESS PORT BYTES\n"
          "       bench-load spawn-rate [--workers N] [--seconds S] -- PROGRAM [ARGUMENT...]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  Words words;
  Words program;
  int count = 1;
  double seconds = 3;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") {
      program.assign(argv + i + 1, argv + argc);
      break;
    }
    if ((word == "--clients" || word == "--workers") && i + 1 < argc) {
      count = atoi(argv[++i]);
    } else if (word == "--seconds" && i + 1 < argc) {
      seconds = atof(argv[++i]);
    } else {
      words.push_back(word);
    }
  }
  if (words.empty() || count < 1 || seconds <= 0) return usage();
  if (words[0] == "serve") return serve();
  if (words[0] == "sustained" && words.size() == 4) {
    return sustained({atoi(words[1].c_str()), words[2], words[3]}, count, seconds);
  }
  if (words[0] == "requests" && words.size() > 2) {
    return requests(atoi(words[1].c_str()), {words.begin() + 2, words.end()}, count, seconds);
  }
  if (words[0] == "relay-server" && words.size() == 4) {
    return relay_server(atoi(words[1].c_str()), atoi(words[2].c_str()),
                        strtoull(words[3].c_str(), nullptr, 10));
  }
  if (words[0] == "relay" && words.size() == 4) {
    return relay_greetings(words[1], atoi(words[2].c_str()), atoi(words[3].c_str()));
  }
  if (words[0] == "relay-stream" && words.size() == 4) {
    return relay_stream(words[1], atoi(words[2].c_str()), strtoull(words[3].c_str(), nullptr, 10));
  }
  if (words[0] == "spawn-rate" && !program.empty()) return spawn_rate(program, count, seconds);
  return usage();
}
