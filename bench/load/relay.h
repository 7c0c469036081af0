#pragma once

// Both ends of a relay: a server that speaks first, and clients that time it.

#include <cstdint>
#include <string>

namespace load {

// Sends one byte to whoever connects to the first port, and so many bytes to whoever connects to the second.
// Prints `ready` and serves until it is killed.
int relay_server(int greeting_port, int stream_port, uint64_t bytes);

// `count` connections, one after the other, each timed from connect to the first byte. Prints one JSON line.
int relay_greetings(const std::string& address, int port, int count);

// One connection, timed from connect to the last of so many bytes. Prints one JSON line.
int relay_stream(const std::string& address, int port, uint64_t bytes);

}  // namespace load
