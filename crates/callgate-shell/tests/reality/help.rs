//! What programs print of themselves.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::options::{Stated, Takes, options_of};

/// Programs that print and end on `--help`, whatever else.
pub const SAFE: &str = "arch b2sum base32 base64 basename basenc cat chgrp chmod chown cksum comm cp csplit cut date dd df dir \
    dircolors dirname du env expand expr factor fmt fold groups head hostid id install join link ln logname ls md5sum mkdir \
    mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv ptx pwd readlink realpath rm rmdir \
    runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail \
    tee timeout touch tr truncate tsort tty uname unexpand uniq unlink users vdir wc who whoami cal chrt choom column \
    dmesg fallocate findmnt flock getopt hexdump ionice ipcs kill last line logger look lsblk lscpu lsipc lslocks lslogins \
    lsmem lsns mcookie more mountpoint namei nsenter prlimit rename renice rev script setarch setpriv setsid taskset ul \
    unshare uuidgen whereis grep egrep fgrep sed find xargs diff cmp diff3 sdiff patch tar gzip bzip2 xz zstd jq rg fd curl \
    wget rsync bash strace ltrace watch pgrep pkill ps free uptime vmstat w tree file less make gdb";

/// What a program prints; nothing if it takes its time.
pub fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut pipe = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes)
    });
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > Duration::from_secs(3) {
            child.kill().ok()?;
            child.wait().ok()?;
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(String::from_utf8_lossy(&reader.join().ok()?.ok()?).into_owned())
}

/// The options that a line of help is about: `  -k, --key=KEYDEF   sort by a key`.
pub fn options_of_line(line: &str) -> Vec<Stated> {
    let text = line.trim_start();
    if line.len() - text.len() > 8 || !text.starts_with('-') {
        return Vec::new();
    }
    // A long name leaves one blank in front of the description, which is a sentence and no value.
    let text = text.replace(",  -", ", -");
    let tag = text.split("  ").next().unwrap_or_default();
    let sentence = tag.split(' ').filter(|word| !word.starts_with(['-', '<', '['])).count() > 2;
    let tag = if sentence {
        tag.split_inclusive(' ').take_while(|word| word.starts_with('-')).collect()
    } else {
        tag.to_owned()
    };
    options_of(&tag)
}

/// The options of git's subcommands, as git's own completion asks for them: name and whether it is followed by `=`.
pub fn git_options(git: &Path) -> Vec<(String, Vec<Stated>)> {
    let commands = output(git, &["--list-cmds=parseopt"]).unwrap_or_default();
    commands
        .split_whitespace()
        .filter_map(|name| {
            let text = output(git, &[name, "--git-completion-helper-all"])?;
            let options = text
                .split_whitespace()
                .filter(|word| word.len() > 2 && word.starts_with("--"))
                .map(|word| match word.strip_suffix('=') {
                    Some(name) => (name.to_owned(), Some(Takes::Value)),
                    // An optional value is shown as none.
                    None => (word.to_owned(), None),
                })
                .collect();
            Some((name.to_owned(), options))
        })
        .collect()
}

#[test]
fn lines_of_help_are_understood() {
    let cases = [
        ("  -k, --key=KEYDEF          sort via a key", &["-k", "--key"][..], Takes::Value),
        ("      --color[=WHEN]        use colors", &["--color"], Takes::Perhaps),
        ("  -v, --verbose             say more", &["-v", "--verbose"], Takes::Nothing),
        ("  -O,  --output-document=FILE  write to it", &["-O", "--output-document"], Takes::Value),
        ("      --ignore-command-error ignore exit codes of children", &["--ignore-command-error"], Takes::Nothing),
        ("Usage: x [OPTION]", &[], Takes::Nothing),
        ("  -------", &[], Takes::Nothing),
    ];
    for (line, names, takes) in cases {
        let expected: Vec<_> = names.iter().map(|name| ((*name).to_owned(), Some(takes))).collect();
        assert_eq!(options_of_line(line), expected, "{line}");
    }
}
