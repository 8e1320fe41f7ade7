//! Set-up, tests, benchmarks and generated files of callgate: `cargo xtask help`.

mod agents;
mod api;
mod dependencies;
mod dist;
mod fuzz;
mod manuals;
mod order;
mod packages;
mod step;
mod sweep;
mod tables;

use std::process::ExitCode;

use step::{Failure, cargo, run};

const HELP: &str = "cargo xtask TASK

  test       everything CI runs: packages, format, lints, tests, docs, dependencies, a bounded fuzz run
  setup      install the Debian packages that the tests need (as root or with sudo), and unpack manual pages
  check      format, lints, documentation, public items, packages and dependencies, without tests
  api        write the list of public items, docs/api.txt, anew
  nightly    what takes longer than CI may: packages built from their own contents, longer fuzzing, 100,000 scripts in bash, real agents, benchmarks
  agents     real agents (from npm) with a stand-in model: contained calls run unasked, and nothing escapes
  dist       the static binary as it is shipped; prints where it lies
  tables [P] where the table of program P is; without P: the tables that do not say from which version they were made
  sweep      run the options of the programs of 500 Debian packages in a sandbox and compare what they do with the tables
  bench      all benchmarks; each prints its table and ratios
  fuzz [S]   fuzz every target for S seconds (default 30)";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let outcome = match task.as_str() {
        "test" => test(),
        "setup" => packages::install().and_then(|()| manuals::unpack()),
        "check" => check(),
        "api" => document().and_then(|()| api::check(api::Stale::IsWritten)),
        "nightly" => nightly(),
        "agents" => agents::drive(),
        "dist" => dist::build(),
        "tables" => match arguments.collect::<Vec<_>>().as_slice() {
            [] => tables::list(),
            programs => tables::find(programs),
        },
        "sweep" => sweep_all(),
        "bench" => run("benchmarks", &mut cargo(&["bench", "--workspace"])),
        "fuzz" => match arguments.next().unwrap_or_else(|| "30".to_owned()).parse() {
            Ok(seconds) => fuzz::run_all(seconds),
            Err(error) => Err(Failure::new(format!("fuzz takes a number of seconds: {error}"))),
        },
        "" | "help" | "--help" | "-h" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => Err(Failure::new(format!("unknown task `{other}`\n\n{HELP}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<(), Failure> {
    packages::install()?;
    manuals::unpack()?;
    check()?;
    // The command's tests drive the release binary's twin; building it first keeps the runner's time limits honest.
    run("build", &mut cargo(&["build", "--workspace", "--all-targets"]))?;
    if step::succeeds("cargo", &["nextest", "--version"]) {
        // What failed is said before a backtrace, which would push it out of short logs.
        run("tests", cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]).env("RUST_BACKTRACE", "0"))?;
    } else {
        run("tests", &mut cargo(&["test", "--workspace", "--all-targets", "--no-fail-fast"]))?;
    }
    let encrypted = ["test", "-p", "callgate", "--features", "webhook-tls", "--test", "webhook_tls"];
    run("webhooks with TLS", &mut cargo(&encrypted))?;
    run("optional features", &mut optional(&["test"], &["--lib"]))?;
    run("documentation tests", &mut cargo(&["test", "--workspace", "--doc"]))?;
    fuzz::run_all(10)
}

/// Something with what the audit log has only when asked for.
fn optional(before: &[&str], after: &[&str]) -> std::process::Command {
    let features = ["-p", "callgate-audit", "--features", "tracing,opentelemetry"];
    cargo(&[before, features.as_slice(), after].concat())
}

fn check() -> Result<(), Failure> {
    run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    run("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    run("lints of optional features", &mut optional(&["clippy"], &["--all-targets", "--", "-D", "warnings"]))?;
    document()?;
    api::check(api::Stale::Fails)?;
    run("packages", &mut package(&["--no-verify"]))?;
    dependencies::check()
}

fn document() -> Result<(), Failure> {
    let mut documentation = cargo(&["doc", "--workspace", "--no-deps"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    run("documentation", &mut documentation)
}

/// Packs every crate that can be published: tables and policies must be inside.
fn package(arguments: &[&str]) -> std::process::Command {
    let all = ["package", "--workspace", "--exclude", "xtask", "--exclude", "callgate-example-email", "--allow-dirty"];
    cargo(&[all.as_slice(), arguments].concat())
}

fn nightly() -> Result<(), Failure> {
    run("packages, built from their own contents", &mut package(&[]))?;
    fuzz::run_all(300)?;
    let mut oracle =
        cargo(&["test", "-p", "callgate-shell", "--release", "--test", "bash_oracle", "--", "--nocapture", "hostile"]);
    run("100,000 hostile scripts in bash", oracle.env("CALLGATE_ORACLE_SCRIPTS", "100000"))?;
    sweep_all()?;
    agents::drive()?;
    run("benchmarks", &mut cargo(&["bench", "--workspace"]))
}

/// The whole sweep; CI runs a sample of it with the programs that are installed.
fn sweep_all() -> Result<(), Failure> {
    packages::install()?;
    let root = sweep::unpack()?;
    let mut sweep = cargo(&["test", "-p", "callgate", "--release", "--test", "sweep", "--", "--nocapture"]);
    run("sweep", sweep.env("CALLGATE_SWEEP_ROOT", root).env("CALLGATE_SWEEP_RUNS", "6000"))
}
