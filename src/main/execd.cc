#include "execd/daemon.h"

int main(int argc, char** argv) { return osb::execd::daemon_main(argc, argv); }
