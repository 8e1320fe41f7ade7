//! Declared limits, measured from outside while the command runs. Each is first exceeded without the sandbox.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::run::Wrapper;
use crate::world::{User, World, is_root};

/// What was seen of one run.
#[derive(Debug, Default)]
struct Peak {
    processes: usize,
    /// Of all processes of the run together, in MiB.
    memory: u64,
    /// In the workspace, in MiB.
    written: u64,
    took: Duration,
    ended: bool,
    /// Of its output, in MiB.
    read: u64,
    /// Processes that were left.
    left: usize,
}

/// Runs the text and looks at it every few milliseconds, for at most `patience`.
fn measure(text: &str, options: &str, wrapper: Wrapper, patience: Duration) -> Peak {
    measure_as(User::ordinary(), text, options, wrapper, patience)
}

fn measure_as(user: User, text: &str, options: &str, wrapper: Wrapper, patience: Duration) -> Peak {
    let case =
        Case { options: options.split_whitespace().map(str::to_owned).collect(), class: "limits", ..Case::default() };
    let world = World::new(&case, user);
    let known = world.processes();
    let mut words = wrapper.words(&world, &case);
    words.extend(["/bin/bash".to_owned(), "-c".to_owned(), world.fill(text)]);
    let mut command = user.command(words.first().expect("at least bash"), &world.home);
    command.args(words.iter().skip(1)).env("SUITE_MARK", &world.mark).current_dir(&world.workspace);
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut output = child.stdout.take().expect("it is piped");
    let mut peak = Peak::default();
    let read = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // a slow reader: one small piece every now and then, everything once the command should be over
        scope.spawn(|| {
            let mut piece = [0_u8; 65536];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                read.fetch_add(length as u64, Ordering::Relaxed);
                if start.elapsed() < Duration::from_secs(2) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        while start.elapsed() < patience {
            if child.try_wait().expect("it is our child").is_some() {
                peak.ended = true;
                break;
            }
            let own: Vec<u32> = world.processes().into_iter().filter(|id| !known.contains(id)).collect();
            peak.processes = peak.processes.max(own.len());
            peak.memory = peak.memory.max(own.iter().map(|id| resident(*id)).sum());
            peak.written = peak.written.max(size(&world.workspace));
            std::thread::sleep(Duration::from_millis(15));
        }
        peak.took = start.elapsed();
        peak.written = peak.written.max(size(&world.workspace));
        if peak.ended {
            std::thread::sleep(Duration::from_millis(300));
            peak.left = world.processes().len().saturating_sub(known.len());
        }
        let _ = child.kill();
        let _ = child.wait();
        world.end_processes();
    });
    peak.read = read.into_inner() >> 20;
    peak
}

fn resident(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let kib =
        text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn size(directory: &std::path::Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        bytes += entry.metadata().map_or(0, |found| found.len());
    }
    bytes >> 20
}

const LIMITS: &str = "--limit processes=256 --limit memory=512MiB --limit written=256MiB --limit time=5s";

/// Measures without a sandbox, where the limit must be exceeded, and inside, where it must hold.
fn compare(
    text: &str,
    options: &str,
    patience: Duration,
    ran: impl Fn(&Peak) -> bool,
    exceeded: impl Fn(&Peak) -> bool,
) {
    let without = measure(text, options, Wrapper::None, patience);
    assert!(exceeded(&without), "the control does not exceed the limit: {without:?}");
    let inside = measure(text, options, Wrapper::Callgate, patience);
    assert!(ran(&inside), "the command did not run: {inside:?}");
    assert!(!exceeded(&inside), "the limit does not hold: {inside:?}, without the sandbox {without:?}");
    assert!(inside.ended && inside.left == 0, "it did not end: {inside:?}");
}

const LONG: Duration = Duration::from_secs(12);

#[test]
fn four_hundred_processes_are_cut_to_the_limit() {
    // the wrapper's own processes are seen as well
    compare("./attack many 400 @mark@", LIMITS, LONG, |peak| peak.processes > 100, |peak| peak.processes > 256 + 16);
}

#[test]
fn root_has_no_more_processes_than_the_limit_for_long() {
    if !is_root() {
        return;
    }
    let text = "./attack many 400 @mark@; sleep 20";
    let without = measure_as(User::ROOT, text, "", Wrapper::None, Duration::from_secs(2));
    assert!(without.processes > 272 && !without.ended, "the control: {without:?}");
    let inside = measure_as(User::ROOT, text, "--limit processes=256", Wrapper::Callgate, LONG);
    assert!(inside.ended && inside.left == 0, "it was not ended: {inside:?}");
}

#[test]
fn memory_of_one_process_is_limited() {
    compare("./attack hold-memory 1400 1", LIMITS, LONG, |peak| peak.memory > 100, |peak| peak.memory > 512 + 256);
}

#[test]
fn memory_of_several_processes_together_is_limited() {
    compare("./attack hold-memory 1400 5", LIMITS, LONG, |peak| peak.memory > 100, |peak| peak.memory > 512 + 256);
}

#[test]
fn one_large_file_is_limited() {
    compare("head -c 600M /dev/zero > big", LIMITS, LONG, |peak| peak.written > 50, |peak| peak.written > 256 + 64);
}

#[test]
fn many_files_are_limited_together() {
    let text = "for i in $(seq 60); do head -c 10M /dev/zero > f$i || break; done; sleep 0.3";
    compare(text, LIMITS, LONG, |peak| peak.written > 50, |peak| peak.written > 256 + 96);
}

#[test]
fn a_command_that_never_ends_is_ended() {
    let text = "trap '' TERM INT; ./attack daemonise @mark@; while :; do sleep 1; done";
    compare(
        text,
        "--limit time=2s",
        Duration::from_secs(6),
        |peak| peak.took > Duration::from_secs(1),
        |peak| peak.took > Duration::from_secs(5),
    );
}

#[test]
fn output_without_end_is_not_kept_in_memory() {
    // the control keeps as much in memory as a wrapper that collects the output would
    let keeps = measure("python3 -c 'import time; x = b\"x\" * (300 << 20); time.sleep(0.5)'", "", Wrapper::None, LONG);
    assert!(keeps.memory > 250, "{keeps:?}");
    let inside = measure("head -c 300M /dev/zero", "", Wrapper::Callgate, LONG);
    assert!(inside.ended && inside.read == 300 && inside.memory < 100, "{inside:?}");
}
