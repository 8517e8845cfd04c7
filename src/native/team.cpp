#include "team.h"

#include <pthread.h>

#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "interrupts.h"

namespace elmokit {

namespace {

void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Checks before a waiting thread sleeps, a few dozen microseconds: longer than a barrier of
/// running threads takes, shorter than it takes to wake a sleeping one.
constexpr int kSpins = 2000;

/// How long a caller sleeps before it looks whether the user wants to stop.
constexpr std::chrono::milliseconds kBriefly{100};

/// Thrown in members whose task failed in another member.
struct Abandoned {};

// Set by `inject_failure`, for tests.
std::atomic<int> failing_after{-1};
std::atomic<bool> failing_worker{false};
thread_local bool is_worker = false;

void fail_if_injected() {
    if (is_worker != failing_worker.load()) return;
    int left = failing_after.load();
    while (left >= 0 && !failing_after.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 0) throw std::bad_alloc();
}

int spins_for(int members) {
    // With more members than processors, a spinning thread keeps another from working.
    const unsigned processors = std::thread::hardware_concurrency();
    return processors && members > static_cast<int>(processors) ? 1 : kSpins;
}

}  // namespace

void Event::signal() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        count_.fetch_add(1, std::memory_order_release);
    }
    condition_.notify_all();
}

bool Event::spin(unsigned seen, int spins) const {
    for (int spin = 0; spin < spins; ++spin) {
        if (count() != seen) return true;
        cpu_pause();
    }
    return false;
}

void Event::wait(unsigned seen, int spins) {
    if (spin(seen, spins)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [&] { return count() != seen; });
}

bool Event::wait_briefly(unsigned seen, int spins) {
    if (spin(seen, spins)) return true;
    std::unique_lock<std::mutex> lock(mutex_);
    return condition_.wait_for(lock, kBriefly, [&] { return count() != seen; });
}

void Failure::record(std::exception_ptr error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::move(error);
    happened_.store(true, std::memory_order_relaxed);
}

void Failure::rethrow() {
    if (!happened()) return;
    const std::exception_ptr error = std::exchange(error_, nullptr);
    happened_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(error);
}

bool Barrier::arrive(unsigned& seen) {
    seen = event_.count();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < members_) return false;
    arrived_.store(0, std::memory_order_relaxed);
    event_.signal();
    return true;
}

void Barrier::wait() {
    if (failing_after.load(std::memory_order_relaxed) >= 0) fail_if_injected();
    if (failure_.happened()) throw Abandoned{};
    if (members_ == 1) return;
    unsigned seen;
    if (!arrive(seen)) {
        // A member that fails sets `abandoned_` before it signals: whoever does not see it here is
        // woken by the signal.
        if (abandoned_.load(std::memory_order_acquire)) throw Abandoned{};
        while (!event_.wait_briefly(seen, spins_)) check_interrupts();
    }
    if (abandoned_.load(std::memory_order_acquire)) throw Abandoned{};
}

void Barrier::meet() {
    unsigned seen;
    if (members_ == 1 || arrive(seen)) return;
    while (!event_.wait_briefly(seen, spins_)) {
        try {
            check_interrupts();
        } catch (...) {
            failure_.record(std::current_exception());  // the others stop when they synchronize
        }
    }
}

void Barrier::fail(std::exception_ptr error) {
    failure_.record(std::move(error));
    abandoned_.store(true, std::memory_order_release);
    event_.signal();
}

void Barrier::reset() {
    arrived_.store(0, std::memory_order_relaxed);
    abandoned_.store(false, std::memory_order_relaxed);
}

void inject_failure(bool worker, int after) {
    failing_worker.store(worker);
    failing_after.store(after);
}

Span Member::share(std::ptrdiff_t n) const {
    return {static_cast<int>(n * index / count), static_cast<int>(n * (index + 1) / count)};
}

Member::Block Member::block(int panels, int rows, int tile_rows) const {
    const int tiles = (rows + tile_rows - 1) / tile_rows;
    // Arrange the members as a grid of `down` groups of rows by `across` groups of panels: choose
    // the grid whose largest block is smallest and, among equals, the one with the fewest groups of
    // rows.
    int down = 1;
    long smallest = 0;
    for (int d = 1; d <= count && d <= tiles; ++d) {
        const int a = count / d;
        const long largest = static_cast<long>((panels + a - 1) / a) * ((tiles + d - 1) / d);
        if (d == 1 || largest < smallest) {
            smallest = largest;
            down = d;
        }
    }
    const int across = count / down;
    if (index >= down * across) return {{0, 0}, {0, 0}};
    const Span some = Member{index / across, down, nullptr}.share(tiles);
    const auto row = [&](int tile) { return tile * tile_rows < rows ? tile * tile_rows : rows; };
    return {Member{index % across, across, nullptr}.share(panels),
            {row(some.begin), row(some.end)}};
}

/// Everything that the threads share. A forked child abandons all of it: the locks may be held, and
/// the threads do not exist in the child.
struct Team::Threads {
    explicit Threads(const Team& team)
        : barrier(team.members_, team.spins_, failure), end(team.members_, team.spins_, failure) {}

    std::mutex turn_mutex;
    std::condition_variable turn_ends;
    bool taken = false;
    std::thread::id taken_by;

    Failure failure;
    Event start;
    Barrier barrier;  // outlives every task, since a member may still be leaving it when the task
                      // is done
    Barrier end;      // where all members meet, whatever happened to them
    const std::function<void(const Member&)>* task = nullptr;
    bool stop = false;
    std::vector<std::thread> workers;
};

/// All teams of the process, for the fork handlers.
struct Teams {
    static Teams& all() {
        static Teams* teams = new Teams;  // never destroyed: the process may fork during exit
        return *teams;
    }
    Teams() {
        pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                       [] {
                           for (Team* team = all().first; team; team = team->next_)
                               team->threads_ = new Team::Threads(*team);
                           all().mutex.unlock();
                       });
    }
    void add(Team* team) {
        const std::lock_guard<std::mutex> lock(mutex);
        team->next_ = first;
        first = team;
    }
    void remove(Team* team) {
        const std::lock_guard<std::mutex> lock(mutex);
        Team** link = &first;
        while (*link != team) link = &(*link)->next_;
        *link = team->next_;
    }

    std::mutex mutex;
    Team* first = nullptr;
};

Team::Team(int members)
    : members_(members), spins_(spins_for(members)), threads_(new Threads(*this)) {
    Teams::all().add(this);
}

Team::~Team() {
    Teams::all().remove(this);
    threads_->stop = true;
    threads_->start.signal();
    for (std::thread& worker : threads_->workers) worker.join();
    delete threads_;
}

Failure& Team::failure() { return threads_->failure; }

Team::Turn::Turn(Team& team) : team_(team), threads_(*team.threads_) {
    std::unique_lock<std::mutex> lock(threads_.turn_mutex);
    if (threads_.taken && threads_.taken_by == std::this_thread::get_id())
        throw std::runtime_error(
            "this model was called by a signal handler that interrupted a call of the same model");
    while (threads_.taken) {
        if (threads_.turn_ends.wait_for(lock, kBriefly) == std::cv_status::no_timeout) continue;
        lock.unlock();
        check_interrupts();
        lock.lock();
    }
    threads_.taken = true;
    threads_.taken_by = std::this_thread::get_id();
}

Team::Turn::~Turn() {
    if (team_.threads_ != &threads_) return;  // a child, forked by a signal handler
    {
        const std::lock_guard<std::mutex> lock(threads_.turn_mutex);
        threads_.taken = false;
    }
    threads_.turn_ends.notify_one();
}

void Team::run(const std::function<void(const Member&)>& task) {
    Threads& threads = *threads_;
    start_workers(threads);
    threads.task = &task;
    if (members_ > 1) threads.start.signal();
    perform(threads, 0);
    if (threads.failure.happened()) threads.barrier.reset();
    threads.failure.rethrow();
}

/// All workers exist before the first task starts: a worker counts the tasks from the first one.
void Team::start_workers(Threads& threads) {
    threads.workers.reserve(members_);
    while (static_cast<int>(threads.workers.size()) + 1 < members_) {
        const int index = static_cast<int>(threads.workers.size()) + 1;
        try {
            threads.workers.emplace_back([this, &threads, index] { work(threads, index); });
        } catch (const std::system_error& error) {
            throw std::runtime_error("cannot start thread " + std::to_string(index + 1) + " of " +
                                     std::to_string(members_) + ": " + error.code().message() +
                                     "; use fewer threads");
        }
    }
}

void Team::work(Threads& threads, int index) {
    is_worker = true;
    for (unsigned seen = 0; true; ++seen) {
        threads.start.wait(seen, spins_);
        if (threads.stop) return;
        perform(threads, index);
    }
}

void Team::perform(Threads& threads, int index) {
    const Member member{index, members_, &threads.barrier};
    member.run([&] { (*threads.task)(member); });
    // Not in a child that a signal handler forked in the middle: there is nobody to meet.
    if (threads_ == &threads) threads.end.meet();
}

}  // namespace elmokit
