// Computing without Python's lock (the GIL): other Python threads run meanwhile, Ctrl-C is answered,
// and a process may exit while its daemon threads compute.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "interrupts.h"

namespace elmokit {

/// Releases the GIL while it exists. Unlike nanobind's class of this kind, it survives the end of
/// the interpreter: CPython up to 3.13 ends a thread that asks for the GIL then by unwinding its
/// stack, and a C++ program that is unwound through a destructor aborts. The thread sleeps instead,
/// until the process is gone; from 3.14 on, CPython does that itself.
class WithoutGIL {
  public:
    WithoutGIL();
    ~WithoutGIL();
    WithoutGIL(const WithoutGIL&) = delete;
    WithoutGIL& operator=(const WithoutGIL&) = delete;

  private:
    friend void check_interrupts();
    void run_signal_handlers();

    PyThreadState* state_;
    WithoutGIL* const outer_;  // the call that a signal handler interrupted
    const bool main_thread_;
    bool interrupted_ = false;
    std::int64_t next_check_;  // in milliseconds
};

/// Calls a function without the GIL. Ctrl-C in the function becomes Python's exception.
template <class Function>
auto without_gil(const Function& function) {
    try {
        const WithoutGIL released;
        return function();
    } catch (const Interrupted&) {
        throw nanobind::python_error();  // takes the exception that the signal handler raised
    }
}

/// Finds out which thread gets signals; called once, when the module is imported.
void find_main_thread();

}  // namespace elmokit
