#pragma once

// A system call that leaves no trace in this process but its result, a negative errno when it failed.
//
// The library's wrappers note errors in a variable of the calling thread. A process that shares our memory
// has that variable in common with the thread that made it, which may be reading its own errors there.

namespace osb::execd {

#if defined(__x86_64__)

inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}

#else
#error "how does this machine ask its kernel?"
#endif

template <class T>
long raw_pointer(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace osb::execd
