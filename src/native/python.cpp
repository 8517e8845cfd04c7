#include "python.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace elmokit {

namespace {

constexpr std::int64_t kMillisecondsBetweenChecks = 200;

std::atomic<unsigned long> main_thread{0};
std::atomic<unsigned> forks{0};
thread_local WithoutGIL* current = nullptr;

std::int64_t milliseconds() {
#ifdef CLOCK_MONOTONIC_COARSE
    constexpr clockid_t clock = CLOCK_MONOTONIC_COARSE;  // a few nanoseconds
#else
    constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

void take_gil(PyThreadState* state) {
    try {
        PyEval_RestoreThread(state);
    } catch (...) {  // a C function: only the end of the thread unwinds it
        while (true) pause();
    }
}

}  // namespace

WithoutGIL::WithoutGIL()
    : outer_(current),
      main_thread_(PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed)),
      next_check_(milliseconds() + kMillisecondsBetweenChecks) {
    current = this;
    state_ = PyEval_SaveThread();
}

WithoutGIL::~WithoutGIL() {
    current = outer_;
    take_gil(state_);
}

void WithoutGIL::run_signal_handlers() {
    const unsigned forks_before = forks.load();
    take_gil(state_);
    interrupted_ = PyErr_CheckSignals() != 0;
    if (!interrupted_ && forks.load() != forks_before) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a signal handler forked this process in the middle of a call; the call "
                        "cannot be finished here, where its threads do not exist");
        interrupted_ = true;
    }
    state_ = PyEval_SaveThread();
    if (interrupted_) throw Interrupted{};
}

void check_interrupts() {
    WithoutGIL* const call = current;
    if (!call || !call->main_thread_ || call->interrupted_) return;
    const std::int64_t now = milliseconds();
    if (now < call->next_check_) return;
    call->next_check_ = now + kMillisecondsBetweenChecks;
    call->run_signal_handlers();
}

void find_main_thread() {
    const nanobind::object thread = nanobind::module_::import_("threading").attr("main_thread")();
    main_thread.store(nanobind::cast<unsigned long>(thread.attr("ident")));
    pthread_atfork(nullptr, nullptr, [] {
        main_thread.store(PyThread_get_thread_ident());  // it is the only thread
        forks.fetch_add(1);
    });
}

}  // namespace elmokit
