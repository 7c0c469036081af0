// The egress process's executable: static and small, started by the launcher.

#include "egress/main.h"

int main(int argc, char** argv) { return osb::egress::egress_main({argv + 1, argv + argc}); }
