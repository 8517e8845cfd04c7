// A team of threads that run a task together, as in OpenMP, and sleep between tasks.
//
// A task is a function that every member of the team runs. Members divide rows and panels by their
// index, and synchronize where one needs the results of another. Knows nothing about the network.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "kernels.h"

namespace elmokit {

/// A counter to wait for: waiters spin for a short time, then sleep.
class Event {
  public:
    /// Number of signals so far.
    unsigned count() const { return count_.load(std::memory_order_acquire); }
    void signal();
    /// Waits until there were more than `seen` signals: checks `spins` times, then sleeps.
    void wait(unsigned seen, int spins);

  private:
    std::atomic<unsigned> count_{0};
    std::mutex mutex_;
    std::condition_variable condition_;
};

/// A reusable barrier, where members wait for each other.
class Barrier {
  public:
    Barrier(int members, int spins) : members_(members), spins_(spins) {}
    void wait();

  private:
    const int members_;
    const int spins_;
    std::atomic<int> arrived_{0};
    Event event_;
};

/// One of `count` threads that run a task together.
struct Member {
    int index;
    int count;
    Barrier* barrier;

    /// Waits until all members have called this.
    void synchronize() const {
        if (count > 1) barrier->wait();
    }

    /// Returns this member's share of `n` items.
    Span share(std::ptrdiff_t n) const;

    /// Returns this member's part of a matrix product. Panels are divided first, so that each
    /// weight is read by one core only; rows as well if there are too few panels.
    struct Block {
        Span panels;
        Span rows;
    };
    Block block(int panels, int rows, int tile_rows) const;
};

/// A fixed number of threads, one of which is the caller. Safe after fork: a child process has none
/// of the threads, and starts its own when it needs them.
class Team {
  public:
    explicit Team(int members);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int members() const { return members_; }
    /// Number of times that a waiting member checks before it sleeps.
    int spins() const { return spins_; }

    /// Locks the team for one caller; must be held during `run`.
    std::unique_lock<std::mutex> lock();

    /// Runs the task on every member, the caller being the first; returns when all are done.
    void run(const std::function<void(const Member&)>& task);

  private:
    struct Threads;  // everything that a forked child abandons
    void work(Threads& threads, int index);

    const int members_;
    const int spins_;
    Threads* threads_;

    friend struct Teams;
    Team* next_ = nullptr;  // linked list of all teams, for fork
};

}  // namespace elmokit
