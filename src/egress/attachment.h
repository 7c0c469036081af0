#pragma once

// The egress of one sandbox: takes what arrives at the sockets inside its network, judges it by the sandbox's
// policy, and answers, relays or refuses. Lives as long as the sandbox's first process.
//
// Belongs to one loop.

#include <memory>
#include <set>
#include <string>

#include "egress/audit.h"
#include "egress/client_hello.h"
#include "egress/deny_webhook.h"
#include "egress/host_network.h"
#include "egress/learned.h"
#include "egress/lookup_budget.h"
#include "egress/relay.h"
#include "egress/verdict.h"
#include "io/socket.h"

namespace osb::egress {

// Connections of all sandboxes, and how many the process has descriptors for: beyond that, those wait who
// have most of them.
struct Load {
  size_t connections = 0;
  size_t most = 1024;
};

// What all sandboxes share.
struct Host {
  HostNetwork& network;
  const Overlay& overlay;
  Counters& counters;
  Load& load;
  DenyWebhook& webhook;
};

class Attachment {
 public:
  Attachment(io::Executor executor, Host host, std::string handle, std::string id, Policy policy);
  ~Attachment();

  const std::string& handle() const { return handle_; }
  const std::string& id() const { return id_; }
  const Policy& policy() const { return policy_; }
  Audit& audit() { return audit_; }
  const Overlay& overlay() const { return host_.overlay; }

  // Starts to serve: a pidfd and the sockets, as the launcher gives them. Without a pidfd until close().
  Result<void> open(std::vector<Fd> descriptors);
  // True when the sandbox's first process has ended; false when nobody waits for that any more.
  io::Task<bool> until_gone();
  io::Task<> close();

  // In force when it returns: connections that it does not allow are cut.
  void set_policy(Policy policy);

 private:
  struct Destination {
    IpAddress address;
    uint16_t port = 0;
  };
  struct Open;  // a connection that is relayed

  Judge judge() const { return {host_.overlay, policy_}; }
  static Result<Destination> destination_of(io::Socket& client);

  io::Task<> accept_all(Fd listener);
  io::Task<> serve(io::Socket client);
  io::Task<> serve_lookups(io::Socket client);
  io::Task<> receive_lookups(Fd socket);
  io::Task<> answer_lookup(int socket, std::string message, std::string peer);
  // The answer, or nothing when there is none to give.
  io::Task<std::string> look_up(std::string message, size_t most);
  io::Task<> refuse(io::Socket client, Destination to, Verdict verdict, std::string name);
  io::Task<> relay(io::Socket client, io::Socket server, Destination to, Verdict verdict,
                   std::vector<std::string> names);
  // Passes on what the client says, when and as long as it is as it should be.
  io::Task<> inspect(std::shared_ptr<Open> open);
  io::Task<> refuse_words(std::shared_ptr<Open> open, Spoken spoken);
  // Every request of a plain HTTP connection, of which the client has said so much already.
  io::Task<> carry_requests(std::shared_ptr<Open> open, std::string said);
  io::Task<> refuse_request(std::shared_ptr<Open> open, Verdict verdict, std::string host);
  void note_connection(const Destination& to, AuditEvent::Outcome outcome, std::string name, std::string rule,
                       Ground ground);

  io::Executor executor_;
  Host host_;
  std::string handle_, id_;
  Policy policy_;
  Learned learned_;
  LookupBudget budget_;
  Audit audit_;
  io::asio::posix::stream_descriptor pidfd_;
  std::set<Open*> open_;
  size_t serving_ = 0, looking_up_ = 0;
  io::TaskGroup tasks_;
};

}  // namespace osb::egress
