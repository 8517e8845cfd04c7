#include "team.h"

#include <pthread.h>

#include <thread>
#include <vector>

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

void Event::wait(unsigned seen, int spins) {
    for (int spin = 0; spin < spins; ++spin) {
        if (count() != seen) return;
        cpu_pause();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [&] { return count() != seen; });
}

void Barrier::wait() {
    const unsigned seen = event_.count();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
        arrived_.store(0, std::memory_order_relaxed);
        event_.signal();
    } else {
        event_.wait(seen, spins_);
    }
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
    explicit Threads(const Team& team) : barrier(team.members(), team.spins()) {}

    std::mutex caller_mutex;
    Event start;
    Barrier barrier;  // outlives every task, since a member may still be leaving it when the task
                      // is done
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

std::unique_lock<std::mutex> Team::lock() { return std::unique_lock(threads_->caller_mutex); }

void Team::run(const std::function<void(const Member&)>& task) {
    Threads& threads = *threads_;
    while (static_cast<int>(threads.workers.size()) + 1 < members_) {
        const int index = static_cast<int>(threads.workers.size()) + 1;
        threads.workers.emplace_back([this, &threads, index] { work(threads, index); });
    }
    threads.task = &task;
    if (members_ > 1) threads.start.signal();
    const Member caller{0, members_, &threads.barrier};
    task(caller);
    caller.synchronize();
}

void Team::work(Threads& threads, int index) {
    for (unsigned seen = 0; true; ++seen) {
        threads.start.wait(seen, spins_);
        if (threads.stop) return;
        const Member member{index, members_, &threads.barrier};
        (*threads.task)(member);
        member.synchronize();
    }
}

}  // namespace elmokit
