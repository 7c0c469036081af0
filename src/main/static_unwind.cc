// The start files of a static executable register its unwind table as one that is sorted before it is
// searched: 0.8 ms at the first exception, in every sandbox. The linker has sorted a copy already
// (.eh_frame_hdr), and the unwinder uses that when nothing is registered. The build binds the two names to
// these with --wrap.

extern "C" {

void __wrap___register_frame_info(const void*, void*) {}
void* __wrap___deregister_frame_info(const void*) { return nullptr; }
}
