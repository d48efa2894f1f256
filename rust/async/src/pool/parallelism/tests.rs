//! Machines made of a few files in a temporary directory.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Parallelism, System, count_cpus};

const V2_MOUNT: &str = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1_MOUNT: &str = "\
22 1 0:21 / /sys rw - sysfs sysfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime shared:11 - cgroup cgroup rw,cpuset
";

/// A directory that plays the root of a machine; removed when the test ends.
struct Machine {
    root: PathBuf,
}

impl Machine {
    /// No files at all.
    fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("purlin-parallelism-{}-{number}", process::id()));
        fs::create_dir(&root).expect("the temporary directory can be written to");
        Self { root }
    }

    /// A machine whose affinity mask is `cpus`.
    fn with_cpus(cpus: &str) -> Self {
        let status = format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0\n");
        Self::empty().file("/proc/thread-self/status", &status)
    }

    /// `with_cpus("0-7")` in the v2 group `group`.
    fn in_v2_group(group: &str) -> Self {
        Self::with_cpus("0-7")
            .file("/proc/self/cgroup", &format!("0::{group}\n"))
            .file("/proc/self/mountinfo", V2_MOUNT)
    }

    /// `with_cpus("0-7")` in the v1 group `group` of the cpu controller.
    fn in_v1_group(group: &str) -> Self {
        Self::with_cpus("0-7")
            .file("/proc/self/cgroup", &format!("5:cpuset:/elsewhere\n4:cpu,cpuacct:{group}\n0::/ignored\n"))
            .file("/proc/self/mountinfo", V1_MOUNT)
    }

    fn file(self, path: &str, content: &str) -> Self {
        let path = self.root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("files lie below the root")).expect("the directory can be made");
        fs::write(path, content).expect("the file can be written");
        self
    }

    /// Something that exists and cannot be read, not even by root.
    fn unreadable(self, path: &str) -> Self {
        fs::create_dir_all(self.root.join(path.trim_start_matches('/'))).expect("the directory can be made");
        self
    }

    fn v1_quota(self, group: &str, quota: &str, period: &str) -> Self {
        self.file(&format!("/sys/fs/cgroup/cpu,cpuacct{group}/cpu.cfs_quota_us"), quota)
            .file(&format!("/sys/fs/cgroup/cpu,cpuacct{group}/cpu.cfs_period_us"), period)
    }

    fn ask(&self, user_cap: Option<&str>, std_answer: Option<usize>) -> Parallelism {
        Parallelism::of(System::new(self.root.clone()), user_cap.map(OsString::from), std_answer)
    }

    #[track_caller]
    fn says(&self, reason: &str) {
        // What std says must not matter while the affinity mask can be read.
        let answer = self.ask(None, Some(99));
        assert_eq!(answer.reason, reason);
        assert!(reason.starts_with(&format!("{} thread", answer.threads)));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn without_cgroups_affinity_decides() {
    Machine::with_cpus("0-3,8").says("5 threads: affinity allows 5, no cgroup quota");
    Machine::with_cpus("6").says("1 thread: affinity allows 1, no cgroup quota");
}

#[test]
fn the_main_thread_answers_where_thread_self_is_missing() {
    Machine::empty()
        .file("/proc/self/status", "Cpus_allowed_list:\t0,2\n")
        .says("2 threads: affinity allows 2, no cgroup quota");
}

#[test]
fn without_an_affinity_mask_std_answers() {
    let answer = Machine::empty().ask(None, Some(6));
    assert_eq!(answer.threads, 6);
    assert_eq!(
        answer.reason,
        "6 threads: the standard library reports 6, no cgroup quota; ignored: affinity (no /proc/self/status)"
    );
    let answer = Machine::empty().file("/proc/thread-self/status", "Name:\tx\n").ask(None, Some(6));
    assert_eq!(answer.threads, 6);
    assert!(answer.reason.ends_with("; ignored: /proc/thread-self/status (\"Cpus_allowed_list: \")"), "{answer:?}");
}

#[test]
fn one_thread_when_nothing_is_known() {
    let answer = Machine::empty().ask(None, None);
    assert_eq!(answer.threads, 1);
    assert!(answer.reason.starts_with("1 thread: the number of CPUs is unknown, no cgroup quota"), "{answer:?}");
}

#[test]
fn an_unreadable_status_is_said() {
    let answer =
        Machine::empty().unreadable("/proc/thread-self/status").unreadable("/proc/self/status").ask(None, Some(2));
    assert_eq!(answer.threads, 2);
    assert!(answer.reason.contains("; ignored: /proc/thread-self/status ("), "{answer:?}");
}

#[test]
fn v2_max_is_no_quota() {
    Machine::in_v2_group("/job")
        .file("/sys/fs/cgroup/job/cpu.max", "max 100000\n")
        .says("8 threads: affinity allows 8, no cgroup quota");
}

#[test]
fn v2_quota_is_rounded_up() {
    Machine::in_v2_group("/job")
        .file("/sys/fs/cgroup/job/cpu.max", "150000 100000\n")
        .says("2 threads: cgroup quota 1.5 CPUs (/sys/fs/cgroup/job/cpu.max), affinity allows 8");
    Machine::in_v2_group("/job")
        .file("/sys/fs/cgroup/job/cpu.max", "1000 100000\n")
        .says("1 thread: cgroup quota 0.01 CPUs (/sys/fs/cgroup/job/cpu.max), affinity allows 8");
}

#[test]
fn v2_quota_above_affinity_does_not_decide() {
    Machine::in_v2_group("/job")
        .file("/sys/fs/cgroup/job/cpu.max", "1600000 100000\n")
        .says("8 threads: affinity allows 8, cgroup quota 16 CPUs (/sys/fs/cgroup/job/cpu.max)");
}

#[test]
fn v2_smallest_quota_of_all_ancestors_binds() {
    Machine::in_v2_group("/slice/pod/container")
        .file("/sys/fs/cgroup/slice/pod/container/cpu.max", "400000 100000\n")
        .file("/sys/fs/cgroup/slice/pod/cpu.max", "50000 20000\n")
        .file("/sys/fs/cgroup/slice/cpu.max", "max 100000\n")
        .says("3 threads: cgroup quota 2.5 CPUs (/sys/fs/cgroup/slice/pod/cpu.max), affinity allows 8");
}

#[test]
fn v2_namespace_root_is_read_at_the_mount_point() {
    Machine::in_v2_group("/")
        .file("/sys/fs/cgroup/cpu.max", "200000 100000\n")
        .file("/sys/fs/cpu.max", "100000 100000\n")
        .says("2 threads: cgroup quota 2 CPUs (/sys/fs/cgroup/cpu.max), affinity allows 8");
}

#[test]
fn v2_group_outside_the_namespace_is_not_followed() {
    // /sys/fs/other would be reached by following the dots.
    Machine::in_v2_group("/../other")
        .file("/sys/fs/cgroup/cpu.max", "300000 100000\n")
        .file("/sys/fs/other/cpu.max", "100000 100000\n")
        .says("3 threads: cgroup quota 3 CPUs (/sys/fs/cgroup/cpu.max), affinity allows 8");
}

#[test]
fn mount_root_is_taken_off_the_group() {
    let mounts = "40 1 0:28 /docker/ab /mnt/the\\040groups rw - cgroup2 cgroup2 rw\n";
    Machine::with_cpus("0-7")
        .file("/proc/self/cgroup", "0::/docker/ab/sub\n")
        .file("/proc/self/mountinfo", mounts)
        .file("/mnt/the groups/sub/cpu.max", "200000 100000")
        .says("2 threads: cgroup quota 2 CPUs (/mnt/the groups/sub/cpu.max), affinity allows 8");
}

#[test]
fn the_mount_that_shows_our_group_is_preferred() {
    let mounts = "40 1 0:28 /docker/other /elsewhere rw - cgroup2 cgroup2 rw\n".to_owned() + V2_MOUNT;
    Machine::with_cpus("0-7")
        .file("/proc/self/cgroup", "0::/docker/ab\n")
        .file("/proc/self/mountinfo", &mounts)
        .file("/elsewhere/cpu.max", "100000 100000\n")
        .file("/sys/fs/cgroup/docker/ab/cpu.max", "200000 100000\n")
        .says("2 threads: cgroup quota 2 CPUs (/sys/fs/cgroup/docker/ab/cpu.max), affinity allows 8");
}

#[test]
fn group_names_may_hold_colons() {
    Machine::in_v2_group("/a:b")
        .file("/sys/fs/cgroup/a:b/cpu.max", "100000 100000\n")
        .says("1 thread: cgroup quota 1 CPUs (/sys/fs/cgroup/a:b/cpu.max), affinity allows 8");
}

#[test]
fn v1_minus_one_is_no_quota() {
    Machine::in_v1_group("/job")
        .v1_quota("/job", "-1\n", "100000\n")
        .says("8 threads: affinity allows 8, no cgroup quota");
}

#[test]
fn v1_smallest_quota_of_all_ancestors_binds() {
    Machine::in_v1_group("/pod/container")
        .v1_quota("/pod/container", "-1\n", "100000\n")
        .v1_quota("/pod", "250000\n", "100000\n")
        .v1_quota("", "-1\n", "100000\n")
        .says("3 threads: cgroup quota 2.5 CPUs (/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us), affinity allows 8");
}

#[test]
fn v1_without_a_period_is_ignored() {
    Machine::in_v1_group("/").file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000").says(
        "8 threads: affinity allows 8, no cgroup quota; \
         ignored: /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us (\"100000 \")",
    );
}

#[test]
fn usual_places_serve_when_mounts_are_unknown() {
    Machine::with_cpus("0-7")
        .file("/proc/self/cgroup", "0::/job\n")
        .file("/sys/fs/cgroup/job/cpu.max", "200000 100000\n")
        .says("2 threads: cgroup quota 2 CPUs (/sys/fs/cgroup/job/cpu.max), affinity allows 8");
    Machine::with_cpus("0-7")
        .file("/proc/self/cgroup", "3:cpu:/\n")
        .file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n")
        .file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
        .says("1 thread: cgroup quota 1 CPUs (/sys/fs/cgroup/cpu/cpu.cfs_quota_us), affinity allows 8");
}

#[test]
fn content_that_makes_no_sense_is_ignored_and_said() {
    for (content, shown) in [
        ("", ""),
        ("max", "max"),
        ("many 100000", "many 100000"),
        ("-5 100000", "-5 100000"),
        ("100000 0\n", "100000 0"),
        ("99999999999999999999999 100000", "99999999999999999999999 100000"),
        ("1\x1b[2J 2\nsecond line", "1\x1b[2J 2"),
    ] {
        Machine::in_v2_group("/job").file("/sys/fs/cgroup/job/cpu.max", content).says(&format!(
            "8 threads: affinity allows 8, no cgroup quota; ignored: /sys/fs/cgroup/job/cpu.max ({shown:?})"
        ));
    }
}

#[test]
fn an_unreadable_quota_does_not_hide_its_parents() {
    let machine = Machine::in_v2_group("/pod/container")
        .unreadable("/sys/fs/cgroup/pod/container/cpu.max")
        .file("/sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
    let answer = machine.ask(None, None);
    assert_eq!(answer.threads, 2);
    assert!(answer.reason.contains("; ignored: /sys/fs/cgroup/pod/container/cpu.max ("), "{answer:?}");
}

#[test]
fn a_malformed_group_line_is_ignored_and_said() {
    Machine::with_cpus("0-7")
        .file("/proc/self/cgroup", "nonsense\n")
        .says("8 threads: affinity allows 8, no cgroup quota; ignored: /proc/self/cgroup (\"nonsense\")");
}

#[test]
fn the_user_caps_but_never_raises() {
    let machine = Machine::with_cpus("0-7");
    let answer = machine.ask(Some("3"), None);
    assert_eq!(answer.threads, 3);
    assert_eq!(answer.reason, "3 threads: PURLIN_NPROC=3, affinity allows 8, no cgroup quota");
    let answer = machine.ask(Some("64"), None);
    assert_eq!(answer.threads, 8);
    assert_eq!(answer.reason, "8 threads: affinity allows 8, PURLIN_NPROC=64, no cgroup quota");
}

#[test]
fn a_malformed_cap_is_ignored_and_said() {
    for value in ["0", "-1", "four", "", "1.5", "2\n3"] {
        let answer = Machine::with_cpus("0-7").ask(Some(value), None);
        assert_eq!(answer.threads, 8);
        let ending = format!("; ignored: PURLIN_NPROC={value:?} (not a whole number from 1)");
        assert!(answer.reason.ends_with(&ending), "{answer:?}");
        assert!(!answer.reason.contains('\n'));
    }
}

#[test]
fn this_machine_has_an_answer() {
    let answer = Parallelism::detect();
    assert!(answer.threads >= 1);
    assert!(answer.reason.starts_with(&format!("{} thread", answer.threads)), "{answer:?}");
}

#[test]
fn cpu_lists_are_counted_or_refused() {
    for (list, count) in [("0", 1), ("0-3,8", 5), ("0-0", 1), ("1,3,5", 3), ("0-1023", 1024)] {
        assert_eq!(count_cpus(list), Some(count), "{list}");
    }
    for list in ["", ",", "0-", "-3", "3-0", "a", "0-3-5", "0,,1", "99999999999", "0 1"] {
        assert_eq!(count_cpus(list), None, "{list}");
    }
}

#[test]
fn a_filter_of_system_calls_is_seen_and_what_is_not_known_may_be_one() {
    let are_filtered = |machine: &Machine| System::new(machine.root.clone()).calls_are_filtered();
    let with_mode = |mode: &str| {
        let status = format!("Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t{mode}\nSeccomp_filters:\t3\n");
        Machine::empty().file("/proc/thread-self/status", &status)
    };
    assert!(!are_filtered(&with_mode("0")));
    assert!(are_filtered(&with_mode("1")) && are_filtered(&with_mode("2")));
    assert!(!are_filtered(&Machine::with_cpus("0-7")), "a kernel without filters");
    assert!(are_filtered(&Machine::empty()), "no /proc");
}
