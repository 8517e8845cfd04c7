#include "team.h"

#include <pthread.h>

#include <thread>
#include <vector>

namespace elmokit {

namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// A few dozen microseconds: longer than a barrier among running threads takes, shorter than it
/// takes to wake a sleeping one.
constexpr int kLooks = 2000;

int looks_for(int members) {
    // With more members than processors, whoever spins keeps another from working.
    const unsigned processors = std::thread::hardware_concurrency();
    return processors && members > static_cast<int>(processors) ? 1 : kLooks;
}

}  // namespace

void Gate::open() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        opened_.fetch_add(1, std::memory_order_release);
    }
    condition_.notify_all();
}

void Gate::wait(unsigned seen, int looks) {
    for (int look = 0; look < looks; ++look) {
        if (opened() != seen) return;
        relax();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [&] { return opened() != seen; });
}

void Barrier::wait() {
    const unsigned seen = gate_.opened();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
        arrived_.store(0, std::memory_order_relaxed);
        gate_.open();
    } else {
        gate_.wait(seen, looks_);
    }
}

Span Member::share(std::ptrdiff_t things) const {
    return {static_cast<int>(things * index / count), static_cast<int>(things * (index + 1) / count)};
}

Member::Block Member::block(int panels, int rows, int tile_rows) const {
    const int tiles = (rows + tile_rows - 1) / tile_rows;
    // Of all ways to lay the members out as `down` groups of rows by `across` groups of panels,
    // the one whose largest block is smallest; the fewest groups of rows if there are several.
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
    return {Member{index % across, across, nullptr}.share(panels), {row(some.begin), row(some.end)}};
}

/// Everything that threads share. A forked child abandons it whole: its locks may be held, and its
/// threads do not exist there.
struct Team::Threads {
    explicit Threads(const Team& team) : barrier(team.members(), team.looks()) {}

    std::mutex turn;
    Gate start;
    Barrier barrier;  // outlives every task: the last to leave may not find it gone
    const std::function<void(const Member&)>* task = nullptr;
    bool stop = false;
    std::vector<std::thread> workers;
};

/// All teams of the process, so that fork can reach them.
struct Teams {
    static Teams& all() {
        static Teams* teams = new Teams;  // never destroyed: a fork may come during exit
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
    : members_(members), looks_(looks_for(members)), threads_(new Threads(*this)) {
    Teams::all().add(this);
}

Team::~Team() {
    Teams::all().remove(this);
    threads_->stop = true;
    threads_->start.open();
    for (std::thread& worker : threads_->workers) worker.join();
    delete threads_;
}

std::unique_lock<std::mutex> Team::turn() { return std::unique_lock(threads_->turn); }

void Team::run(const std::function<void(const Member&)>& task) {
    Threads& threads = *threads_;
    while (static_cast<int>(threads.workers.size()) + 1 < members_) {
        const int index = static_cast<int>(threads.workers.size()) + 1;
        threads.workers.emplace_back([this, &threads, index] { work(threads, index); });
    }
    threads.task = &task;
    if (members_ > 1) threads.start.open();
    const Member caller{0, members_, &threads.barrier};
    task(caller);
    caller.meet();
}

void Team::work(Threads& threads, int index) {
    for (unsigned seen = 0; true; ++seen) {
        threads.start.wait(seen, looks_);
        if (threads.stop) return;
        const Member member{index, members_, &threads.barrier};
        (*threads.task)(member);
        member.meet();
    }
}

}  // namespace elmokit
