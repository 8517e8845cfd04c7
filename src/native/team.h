// A team of threads that work on one task together and sleep between tasks.
//
// A task is a function that every member runs; members divide rows and panels by their numbers and
// meet where one needs what another has computed. Knows nothing about the network.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "kernels.h"

namespace elmokit {

/// Waiting that is quick if the wait is short, and costs nothing if it is long.
class Gate {
  public:
    /// How often it has been opened.
    unsigned opened() const { return opened_.load(std::memory_order_acquire); }
    void open();
    /// Waits until it has been opened more than `seen` times: looks often, then sleeps.
    void wait(unsigned seen, int looks);

  private:
    std::atomic<unsigned> opened_{0};
    std::mutex mutex_;
    std::condition_variable condition_;
};

/// Where members wait for each other.
class Barrier {
  public:
    Barrier(int members, int looks) : members_(members), looks_(looks) {}
    void wait();

  private:
    const int members_;
    const int looks_;
    std::atomic<int> arrived_{0};
    Gate gate_;
};

/// One of `count` threads that work together.
struct Member {
    int index;
    int count;
    Barrier* barrier;

    /// Waits until all are here.
    void meet() const {
        if (count > 1) barrier->wait();
    }

    /// This member's part of `things`.
    Span share(std::ptrdiff_t things) const;

    /// This member's part of a product. Panels are divided first, because then weights are read by
    /// one core only; rows as well where there are too few panels.
    struct Block {
        Span panels;
        Span rows;
    };
    Block block(int panels, int rows, int tile_rows) const;
};

/// Safe after fork: the child has none of the threads, and starts its own when it needs them.
class Team {
  public:
    explicit Team(int members);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int members() const { return members_; }
    /// How often a waiting member looks before it sleeps.
    int looks() const { return looks_; }

    /// To be held around `run` and whatever else one caller at a time may do; others wait.
    std::unique_lock<std::mutex> turn();

    /// Runs the task for every member, the caller being the first; returns when all are done.
    void run(const std::function<void(const Member&)>& task);

  private:
    struct Threads;  // what a fork leaves behind, in one piece
    void work(Threads& threads, int index);

    const int members_;
    const int looks_;
    Threads* threads_;

    friend struct Teams;
    Team* next_ = nullptr;  // in the list of all teams, for fork
};

}  // namespace elmokit
