// Ctrl-C in the middle of a computation. The kernel asks now and then; the Python module answers
// (python.cpp).
#pragma once

namespace elmokit {

/// Thrown by `check_interrupts`. The Python exception is set in the calling thread.
struct Interrupted {};

/// Runs Python's signal handlers if the last time is a while ago; throws `Interrupted` if one of
/// them raised an exception. Does nothing in threads that did not come from Python's main thread.
/// Costs a few nanoseconds, so that it can be called at every step.
void check_interrupts();

}  // namespace elmokit
