//! Time running and runnable, compared with the kernel's accounts and with a workload's measure of
//! its own work.

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::truth::account::{stolen_ns, threads_of};
use systemscope_tests::truth::wake_ups::{self, Delays, WakeUps};
use systemscope_tests::{Account, Seen, Watch, Workload, accounts_at_rest};

/// Largest difference that the different times of reading explain, in percent.
const MAX_PERCENT: f64 = 2.0;
/// Lowest share of the work that a program measured itself, in percent. The program also counts the
/// part of a switch before it reads the clock as work.
const LEAST_PERCENT: f64 = 99.5;

/// Times of all threads of a program in a window, by the kernel's accounts.
pub(crate) struct Booked {
    pub(crate) running_ns: u64,
    pub(crate) runnable_ns: u64,
    /// Delays of the threads' wake-ups.
    pub(crate) wake_ups: Delays,
    /// Time that the hypervisor took from all CPUs, in ns.
    pub(crate) stolen_ns: u64,
}

/// Kernel's accounts at the start of a window.
pub(crate) struct Books {
    pid: u32,
    before: (u64, u64),
    stolen_ns: u64,
    wake_ups: WakeUps,
}

impl Books {
    /// Starts to watch wake-ups. Call this function before a tool attaches. The kernel calls the
    /// users of a tracepoint in the order in which they attached. The tool's work at a wake-up then
    /// lies between the events that measure the wake-up.
    pub(crate) fn open(pid: u32) -> Books {
        let wake_ups = WakeUps::watch(pid);
        Books {
            pid,
            before: booked(pid),
            stolen_ns: stolen_ns(),
            wake_ups,
        }
    }

    /// Starts the accounts anew.
    pub(crate) fn begin(&mut self) {
        self.wake_ups.begin();
        self.before = booked(self.pid);
        self.stolen_ns = stolen_ns();
    }

    /// Returns the kernel's accounts until now.
    pub(crate) fn close(self) -> Booked {
        let after = booked(self.pid);
        let stolen_ns = stolen_ns() - self.stolen_ns;
        Booked {
            running_ns: after.0 - self.before.0,
            runnable_ns: after.1 - self.before.1,
            wake_ups: wake_ups::total(&self.wake_ups.stop()),
            stolen_ns,
        }
    }
}

/// Returns the running and runnable time of all threads, in ns.
fn booked(pid: u32) -> (u64, u64) {
    let threads = threads_of(pid).into_iter();
    let accounts = threads.filter_map(|tid| Account::read(pid, tid));
    accounts.fold((0, 0), |sum, account| {
        (sum.0 + account.running_ns, sum.1 + account.runnable_ns)
    })
}

/// Measures a program that sleeps 200 us at a time, and two programs that repeat the same work and
/// report how long it took.
pub(crate) fn rows(table: &mut Table) {
    measure_ours(table, "sleeps 200 us at a time", "naps", &[3, 200], &[]);
    let functions = ["f", "g", "h"];
    measure_ours(table, "computes", "shares", &[3, 0], &functions);
    let name = "computes, woken every 10 ms";
    measure_ours(table, name, "shares", &[3, 10_000], &functions);
}

fn measure_ours(
    table: &mut Table,
    name: &str,
    program: &str,
    arguments: &[u64],
    functions: &[&str],
) {
    let mut workload = Workload::start(program, arguments);
    let pid = workload.pid();
    let mut books = Books::open(pid);
    let mut watch = Watch::offcputime(pid, "-U");
    accounts_at_rest(pid);
    books.begin();
    watch.open();
    workload.go();
    workload.wait_done();
    accounts_at_rest(pid);
    let booked = books.close();
    let seen = watch.close();
    compare_with_schedstat(table, name, &seen, &booked);

    let told: Vec<u64> = functions.iter().map(|name| workload.told(name)).collect();
    let told: u64 = told.iter().sum();
    if told > 0 {
        let running: u64 = seen.clocks.iter().map(|row| row.running_ns).sum();
        let share = running as f64 * 100.0 / told as f64;
        let cells = [
            "time running, from below",
            name,
            &format!("{:.1} ms in its functions", told as f64 / 1e6),
            &format!("{:.1} ms, {share:.2} % of it", running as f64 / 1e6),
            &format!("at least {LEAST_PERCENT} % of it"),
            "none tells",
        ];
        table.row(&cells, Verdict::of(share >= LEAST_PERCENT));
    }
}

/// Adds the two rows that compare the thread clock of offcputime with schedstat.
pub(crate) fn compare_with_schedstat(table: &mut Table, name: &str, seen: &Seen, booked: &Booked) {
    let running: u64 = seen.clocks.iter().map(|row| row.running_ns).sum();
    let runnable: u64 = seen.clocks.iter().map(|row| row.runnable_ns).sum();
    let percent = |ns: u64, of: u64| ns as f64 * 100.0 / of as f64;
    let stolen = percent(booked.stolen_ns, booked.running_ns);
    let hidden = seen.lost["events"];
    let allowed = MAX_PERCENT + stolen;
    let ms = |ns: u64| ns as f64 / 1e6;
    let took = booked.wake_ups;
    let mut row = |claim: &str, ours: u64, truth: u64, less: u64, more: u64| {
        let off = percent(ours, truth) - 100.0;
        let (less, more) = (percent(less, truth), percent(more, truth));
        let cells = [
            claim,
            name,
            &format!("{:.0} ms by schedstat", ms(truth)),
            &format!("{:.0} ms, {off:+.2} %; {hidden} switches hidden", ms(ours)),
            &format!(
                "within {MAX_PERCENT} % and the {stolen:.2} % that the hypervisor took; \
                 wake-ups explain -{less:.2} to +{more:.2} %"
            ),
            "",
        ];
        let holds = (-allowed - less..=allowed + more).contains(&off);
        table.row(&cells, Verdict::of_calm(stolen, holds));
    };
    let both = booked.running_ns + booked.runnable_ns;
    let claim = "time running and runnable, all threads";
    let (less, more) = (took.moved_asleep_ns, took.arriving_ns);
    row(claim, running + runnable, both, less, more);
    let claim = "time running, all threads";
    row(
        claim,
        running,
        booked.running_ns,
        took.preempting_ns,
        took.preempted_ns,
    );
}
