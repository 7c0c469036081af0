#include "execd/daemon.h"
#include "interpreter/interpreter.h"

int main(int argc, char** argv) {
  return osb::execd::daemon_main(argc, argv, osb::interpreter::add_interpreter);
}
