// Looks for a short schedule of jobs that hold known memory, with everything known beforehand.
//
// Reads cores, memory, rounds and seed, then of each job its number of slots and what it holds in each. Writes the
// start of each job, in slots. The same input gives the same output. Knows nothing of builds or of seconds.
//
// A schedule is made from an order: each job starts in the first slot from which it fits for all of its life. It is
// improved by making it anew from its own end, and then again from its beginning, each time in the order in which jobs
// came last, as long as that shortens it (forward-backward improvement). The search moves a few jobs of the order at
// random, and keeps what is no longer than before.
#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

namespace {

using Order = std::vector<int>;

struct Job {
    std::vector<double> held;
    double most = 0, area = 0;
};

struct Schedule {
    std::vector<int> starts;
    int end = 0;
    Order order;
};

struct Machine {
    int cores = 0;
    double memory = 0;
    std::vector<Job> jobs;

    // Starts each job as early as it fits; `mirrored`, on a time that runs backwards.
    Schedule placed(const Order& order, bool mirrored) const {
        std::vector<double> held;
        std::vector<int> running;
        Schedule made{std::vector<int>(jobs.size()), 0, order};
        size_t full = 0;  // in all slots before this no core is free
        for (int number : order) {
            const std::vector<double>& life = jobs[number].held;
            const size_t length = life.size();
            size_t start = full, slot = 0;
            while (slot < length) {
                if (held.size() < start + length) {
                    held.resize(start + length, 0.0);
                    running.resize(start + length, 0);
                }
                const double size = mirrored ? life[length - 1 - slot] : life[slot];
                if (running[start + slot] < cores && held[start + slot] + size <= memory) {
                    ++slot;
                } else {
                    ++start;
                    slot = 0;
                }
            }
            for (slot = 0; slot < length; ++slot) {
                held[start + slot] += mirrored ? life[length - 1 - slot] : life[slot];
                ++running[start + slot];
            }
            while (full < running.size() && running[full] == cores) ++full;
            made.starts[number] = static_cast<int>(start);
            made.end = std::max(made.end, static_cast<int>(start + length));
        }
        return made;
    }

    // The order in which jobs end, the last first: on a time that runs backwards they begin so.
    Order by_end(const Schedule& made) const {
        Order order = made.order;
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return made.starts[a] + jobs[a].held.size() > made.starts[b] + jobs[b].held.size();
        });
        return order;
    }

    Schedule improved(const Order& order) const {
        Schedule best = placed(order, false);
        while (true) {
            Schedule next = placed(by_end(placed(by_end(best), true)), false);
            if (next.end >= best.end) return best;
            best = std::move(next);
        }
    }
};

}  // namespace

int main() {
    Machine machine;
    size_t count = 0, rounds = 0;
    unsigned seed = 1;
    std::cin >> machine.cores >> machine.memory >> rounds >> seed >> count;
    machine.jobs.resize(count);
    for (Job& job : machine.jobs) {
        size_t slots = 0;
        std::cin >> slots;
        job.held.resize(slots);
        for (double& size : job.held) std::cin >> size;
        job.most = *std::max_element(job.held.begin(), job.held.end());
        job.area = std::accumulate(job.held.begin(), job.held.end(), 0.0);
        if (job.most > machine.memory) return 1;
    }
    if (!std::cin) return 1;

    Order order(count);
    std::iota(order.begin(), order.end(), 0);
    Schedule best = machine.improved(order);
    const auto tried = [&](auto key) {
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
        Schedule made = machine.improved(order);
        if (made.end < best.end) best = std::move(made);
    };
    tried([&](int n) { return static_cast<double>(machine.jobs[n].held.size()); });
    tried([&](int n) { return machine.jobs[n].most; });
    tried([&](int n) { return machine.jobs[n].area; });

    std::mt19937 random(seed);
    const auto below = [&](size_t most) { return random() % most; };
    const size_t patience = 400;
    Schedule current = best;
    for (size_t round = 0, idle = 0; round < rounds; ++round) {
        order = current.order;
        for (size_t moves = size_t{1} << below(5); moves > 0; --moves) {
            const size_t from = below(count), to = below(count);
            const int number = order[from];
            order.erase(order.begin() + from);
            order.insert(order.begin() + to, number);
        }
        Schedule made = machine.improved(order);
        if (made.end <= current.end + (below(20) == 0 ? 1 : 0)) current = std::move(made);
        if (current.end < best.end) {
            best = current;
            idle = 0;
        } else if (++idle > patience) {
            current = best;
            idle = 0;
        }
    }
    for (int start : best.starts) std::cout << start << '\n';
}
