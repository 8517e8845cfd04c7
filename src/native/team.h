// A team of threads that run a task together, as in OpenMP, and sleep between tasks.
//
// A task is a function that every member of the team runs. Members divide rows and panels by their
// index, and synchronize where one needs the results of another. If a member throws, the others stop
// at their next synchronization, and the caller gets the exception. Knows nothing about the network.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
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
    /// Like `wait`, but returns false after a tenth of a second.
    bool wait_briefly(unsigned seen, int spins);

  private:
    bool spin(unsigned seen, int spins) const;

    std::atomic<unsigned> count_{0};
    std::mutex mutex_;
    std::condition_variable condition_;
};

/// The first exception of a task, whichever member threw it.
class Failure {
  public:
    bool happened() const { return happened_.load(std::memory_order_relaxed); }
    void record(std::exception_ptr error);
    /// Throws the exception, if there is one, and forgets it. No member may run.
    void rethrow();

  private:
    std::atomic<bool> happened_{false};
    std::mutex mutex_;
    std::exception_ptr error_;
};

/// A reusable barrier, where members wait for each other.
class Barrier {
  public:
    Barrier(int members, int spins, Failure& failure)
        : members_(members), spins_(spins), failure_(failure) {}

    /// Waits until all members have called this. Throws if the task failed, in any member.
    void wait();
    /// Waits until all members have called this, also after a failure.
    void meet();
    /// Records the exception of a member that will not come, and sends the others home.
    void fail(std::exception_ptr error);
    /// Makes the barrier usable again after a failure, when all members have left it.
    void reset();

  private:
    /// Returns whether this was the last member; if not, sets `seen` for the event.
    bool arrive(unsigned& seen);

    const int members_;
    const int spins_;
    Failure& failure_;
    std::atomic<int> arrived_{0};
    std::atomic<bool> abandoned_{false};
    Event event_;
};

/// For tests: lets one synchronization fail for want of memory, the one that comes `after` so many
/// others, in a worker thread or in the calling thread.
void inject_failure(bool worker, int after);

/// One of `count` threads that run a task together.
struct Member {
    int index;
    int count;
    Barrier* barrier;

    /// Waits until all members have called this. Throws if the task failed, in any member.
    void synchronize() const { barrier->wait(); }

    /// Runs this member's part of a task; an exception ends the task for all members.
    template <class Part>
    void run(const Part& part) const {
        try {
            part();
        } catch (...) {
            barrier->fail(std::current_exception());
        }
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
    struct Threads;  // everything that a forked child abandons

  public:
    explicit Team(int members);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int members() const { return members_; }
    /// Number of times that a waiting member checks before it sleeps.
    int spins() const { return spins_; }
    /// The failure of the running task, for barriers of some of its members.
    Failure& failure();

    /// The turn of one caller; others wait. Must be held during `run`.
    class Turn {
      public:
        explicit Turn(Team& team);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

      private:
        Team& team_;
        Threads& threads_;
    };

    /// Runs the task on every member, the caller being the first; returns when all are done, and
    /// throws the first exception of any of them.
    void run(const std::function<void(const Member&)>& task);

  private:
    void start_workers(Threads& threads);
    void work(Threads& threads, int index);
    void perform(Threads& threads, int index);

    const int members_;
    const int spins_;
    Threads* threads_;

    friend struct Teams;
    Team* next_ = nullptr;  // linked list of all teams, for fork
};

}  // namespace elmokit
