//! macOS: the profile for `/usr/bin/sandbox-exec`, made from a fence.
//!
//! The profile denies everything and allows what the fence names; of several rules that match, the last one counts. It is text
//! only: nothing here looks at the machine.

use std::fmt::Write;
use std::path::Path;

use callgate_model::fence::{Fence, Globs, Network, Protection};

use crate::denied::Denied;

/// The program that runs a command under a profile.
pub const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// What every program needs: to start others, to signal its own, to look at the machine, and the few services of the system
/// without which the C library does not work.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))
(allow pseudo-tty)
(allow mach-lookup
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.trustd.agent"))
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow file-read* file-test-existence
  (subpath "/System")
  (subpath "/Library/Developer")
  (subpath "/private/var/db/timezone")
  (subpath "/private/var/db/dyld")
  (subpath "/usr/lib")
  (literal "/dev/autofs_nowait")
  (literal "/dev/random")
  (literal "/dev/urandom")
  (literal "/dev/zero")
  (literal "/dev/null")
  (literal "/dev/tty"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-ioctl (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+$"))
(allow file-read* file-write* (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
"#;

/// What a profile holds wholly. It denies protected and hidden names, too, but rules go by path, and a directory that is renamed
/// takes what lies in it to another path. It cannot close single system calls, end what is left running, or limit anything.
pub const fn holds(protection: Protection) -> bool {
    matches!(
        protection,
        Protection::Writes | Protection::Reads | Protection::Network | Protection::Sockets | Protection::Processes
    )
}

/// The profile of a fence. `proxy` is the port of callgate's own proxy on the loopback, through which listed hosts are reached.
/// `temporary` is a directory that only this call has. `added` is text from a policy: it comes last of what allows, and never
/// instead of what callgate writes.
pub fn profile(fence: &Fence, temporary: &Path, proxy: Option<u16>, added: Option<&str>) -> Result<String, Denied> {
    let mut text = BASE.to_owned();
    if let Some(added) = added {
        if !is_whole(added) {
            return Err(Denied::new("`os.seatbelt.profile` is not a list of whole expressions")
                .hint("check its parentheses and quotes"));
        }
        section(&mut text, "from the policy");
        let _ = writeln!(text, "{}", added.trim());
        // Whatever it allows, what follows is refused again.
        text.push_str("(deny file-write*)\n(deny network*)\n");
        text.push_str(
            "(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))\n",
        );
        text.push_str("(allow file-write* (literal \"/dev/ptmx\") (regex #\"^/dev/ttys[0-9]+$\"))\n");
    }
    section(&mut text, "may be read");
    for path in fence.readable.iter().chain(&fence.caches) {
        rule(&mut text, "allow file-read* file-test-existence", &subpath(path)?);
    }
    section(&mut text, "may be changed");
    for path in fence.roots.iter().map(|path| path.as_path()).chain([temporary]) {
        if path == Path::new("/") {
            return Err(Denied::new("the whole file system cannot be a directory that a contained call may change")
                .hint("name the directories in `boundary: {roots: …}`"));
        }
        rule(&mut text, "allow file-read* file-write* file-test-existence", &subpath(path)?);
    }
    for shared in &fence.shared {
        let allowed = if shared.writable { "allow file-read* file-write*" } else { "allow file-read*" };
        rule(&mut text, allowed, &subpath(&shared.path)?);
    }
    section(&mut text, "protected");
    // Where a link leads out, the kernel judges where it leads; a second name of a file is a way around names.
    text.push_str("(deny file-link)\n(deny file-write-setugid)\n(deny file-mknod)\n");
    globs(&mut text, "file-write*", &fence.protected, &[])?;
    if !fence.git {
        rule(&mut text, "deny file-write*", "(regex #\"/[.][gG][iI][tT](/|$)\")");
    }
    section(&mut text, "hidden");
    globs(&mut text, "file-read* file-write*", &fence.hidden, &fence.roots)?;
    section(&mut text, "network");
    text.push_str("(deny network*)\n");
    text.push_str(
        "(allow network-bind (local ip \"localhost:*\"))\n(allow network-inbound (local ip \"localhost:*\"))\n",
    );
    match (&fence.network, proxy) {
        (Network::None, _) => {}
        (Network::Hosts(_) | Network::All, Some(port)) => {
            let _ = writeln!(text, "(allow network-outbound (remote ip \"localhost:{port}\"))");
        }
        (Network::Hosts(_) | Network::All, None) => {
            return Err(Denied::new("a list of hosts needs callgate's proxy, which does not run"));
        }
    }
    Ok(text)
}

fn section(text: &mut String, name: &str) {
    let _ = writeln!(text, "; {name}");
}

fn rule(text: &mut String, what: &str, filter: &str) {
    let _ = writeln!(text, "({what} {filter})");
}

fn subpath(path: &Path) -> Result<String, Denied> {
    Ok(format!("(subpath {})", quoted(path)?))
}

/// A path as a string of the profile. What a profile has no way to say is refused.
fn quoted(path: &Path) -> Result<String, Denied> {
    let refused = |why: &str| Denied::new(format!("the path {} {why}", path.display()));
    let text = path.to_str().ok_or_else(|| refused("is not valid UTF-8, so a profile cannot name it"))?;
    if !path.is_absolute() {
        return Err(refused("is not absolute"));
    }
    if text.chars().any(char::is_control) {
        return Err(refused("contains a control character, so a profile cannot name it"));
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Denies what globs name, in their order; `!` takes names out again. Inside `roots` this means: they may be read and written.
fn globs(text: &mut String, what: &str, globs: &Globs, roots: &[std::path::PathBuf]) -> Result<(), Denied> {
    for glob in globs.iter() {
        match glob.strip_prefix('!') {
            None => rule(text, &format!("deny {what}"), &format!("(regex #\"{}\")", regex(glob)?)),
            // What is taken out again is allowed only where it was allowed before.
            Some(glob) => {
                for root in roots {
                    let filter = format!("(require-all {} (regex #\"{}\"))", subpath(root)?, regex(glob)?);
                    rule(text, &format!("allow {what}"), &filter);
                }
            }
        }
    }
    Ok(())
}

/// A glob as a regular expression over whole paths, without regard to case. What lies below a name belongs to it.
fn regex(glob: &str) -> Result<String, Denied> {
    let refused = |why: &str| Denied::new(format!("a profile cannot express the glob {glob}: {why}"));
    if glob.chars().any(|character| character.is_control() || character == '"') {
        return Err(refused("it contains a quote or a control character"));
    }
    let bare = glob.strip_suffix("/**").unwrap_or(glob);
    let (mut out, bare) = match (bare.strip_prefix("**/"), bare.starts_with('/')) {
        (Some(rest), _) => ("/".to_owned(), rest),
        (None, true) => ("^".to_owned(), bare),
        (None, false) => ("/".to_owned(), bare),
    };
    let mut rest = bare.chars().peekable();
    let mut braces = 0_usize;
    while let Some(character) = rest.next() {
        match character {
            '*' if rest.peek() == Some(&'*') => {
                rest.next();
                if rest.peek() == Some(&'/') {
                    rest.next();
                    out.push_str("(.*/)?");
                } else {
                    out.push_str(".*");
                }
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '{' => {
                braces = braces.saturating_add(1);
                out.push('(');
            }
            '}' if braces > 0 => {
                braces = braces.saturating_sub(1);
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            '[' => return Err(refused("it contains a set of characters")),
            '\\' => {
                let next = rest.next().ok_or_else(|| refused("it ends with a backslash"))?;
                literal(&mut out, next);
            }
            other => literal(&mut out, other),
        }
    }
    if braces > 0 {
        return Err(refused("a brace is not closed"));
    }
    out.push_str("(/|$)");
    Ok(out)
}

/// One character that stands for itself, in either case. Brackets need no backslash, which some readers of profiles take away.
fn literal(out: &mut String, character: char) {
    let _ = match character {
        letter if letter.is_ascii_alphabetic() => {
            write!(out, "[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase())
        }
        '^' | '\\' => write!(out, "\\{character}"),
        '.' | '$' | '|' | '(' | ')' | '[' | ']' | '{' | '}' | '*' | '+' | '?' => write!(out, "[{character}]"),
        other => write!(out, "{other}"),
    };
}

/// Whether text consists of whole expressions: it cannot close what it did not open, nor leave something open that swallows what
/// follows.
fn is_whole(text: &str) -> bool {
    let (mut depth, mut characters) = (0_usize, text.chars());
    while let Some(character) = characters.next() {
        match character {
            '(' => depth = depth.saturating_add(1),
            ')' => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return false,
            },
            '"' => loop {
                match characters.next() {
                    Some('"') => break,
                    Some('\\') => drop(characters.next()),
                    Some(_) => {}
                    None => return false,
                }
            },
            // comments of several lines could hide the rest
            '|' | '#' => {
                if !matches!(character, '#') || !characters.as_str().starts_with('"') {
                    return false;
                }
                characters.next();
                // no backslash means anything in a regular expression's text
                if !characters.by_ref().any(|character| character == '"') {
                    return false;
                }
            }
            ';' => {
                characters.by_ref().find(|character| *character == '\n');
            }
            _ => {}
        }
    }
    depth == 0
}

/// The command that runs words under a profile. Standard streams and environment are the caller's.
#[cfg(any(target_os = "macos", test))]
pub fn command(profile: &str, words: &[std::ffi::OsString], directory: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(SANDBOX_EXEC);
    command.args(["-p", profile, "--"]).args(words).current_dir(directory).env_clear();
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_model::fence::SharedPath;

    fn fence() -> Fence {
        Fence {
            roots: vec!["/Users/u/p".into()],
            readable: vec!["/usr".into(), "/opt/homebrew".into()],
            caches: vec!["/Users/u/.cargo/registry".into()],
            shared: vec![SharedPath { path: "/private/tmp/in".into(), writable: false, redirected: false }],
            hidden: ["**/.env", "!**/.env.example", "/Users/u/.ssh/**"].into_iter().collect(),
            protected: ["**/.git/hooks/**", "**/.{bash,zsh}rc"].into_iter().collect(),
            ..Fence::default()
        }
    }

    fn after_base(profile: &str) -> &str {
        profile.strip_prefix(BASE).unwrap()
    }

    #[test]
    fn a_fence_becomes_a_profile() {
        let profile = profile(&fence(), Path::new("/private/tmp/own"), None, None).unwrap();
        assert_eq!(
            after_base(&profile),
            r#"; may be read
(allow file-read* file-test-existence (subpath "/usr"))
(allow file-read* file-test-existence (subpath "/opt/homebrew"))
(allow file-read* file-test-existence (subpath "/Users/u/.cargo/registry"))
; may be changed
(allow file-read* file-write* file-test-existence (subpath "/Users/u/p"))
(allow file-read* file-write* file-test-existence (subpath "/private/tmp/own"))
(allow file-read* (subpath "/private/tmp/in"))
; protected
(deny file-link)
(deny file-write-setugid)
(deny file-mknod)
(deny file-write* (regex #"/[.][gG][iI][tT]/[hH][oO][oO][kK][sS](/|$)"))
(deny file-write* (regex #"/[.]([bB][aA][sS][hH]|[zZ][sS][hH])[rR][cC](/|$)"))
(deny file-write* (regex #"/[.][gG][iI][tT](/|$)"))
; hidden
(deny file-read* file-write* (regex #"/[.][eE][nN][vV](/|$)"))
(allow file-read* file-write* (require-all (subpath "/Users/u/p") (regex #"/[.][eE][nN][vV][.][eE][xX][aA][mM][pP][lL][eE](/|$)")))
(deny file-read* file-write* (regex #"^/[uU][sS][eE][rR][sS]/[uU]/[.][sS][sS][hH](/|$)"))
; network
(deny network*)
(allow network-bind (local ip "localhost:*"))
(allow network-inbound (local ip "localhost:*"))
"#
        );
        assert!(is_whole(after_base(&profile)));
    }

    #[test]
    fn what_goes_by_path_alone_is_not_promised() {
        let held: Vec<Protection> = Protection::ALL.into_iter().filter(|protection| holds(*protection)).collect();
        use Protection::{Network, Processes, Reads, Sockets, Writes};
        assert_eq!(held, [Writes, Reads, Network, Sockets, Processes]);
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        let profile = profile(&Fence::default(), Path::new("/private/tmp/own"), None, None).unwrap();
        assert!(profile.starts_with("(version 1)\n(deny default)\n"));
        assert!(!profile.contains("network-outbound"));
    }

    #[test]
    fn hosts_are_reached_through_the_proxy_only() {
        let fence = Fence { network: Network::Hosts(vec!["example.com".into()]), ..fence() };
        let own = Path::new("/private/tmp/own");
        let with = profile(&fence, own, Some(4711), None).unwrap();
        assert!(with.ends_with("(allow network-outbound (remote ip \"localhost:4711\"))\n"), "{with}");
        assert!(profile(&fence, own, None, None).is_err());
    }

    #[test]
    fn hostile_paths_stay_inside_their_quotes() {
        let quote = |path: &str| quoted(Path::new(path));
        assert_eq!(quote(r#"/a") (allow default) (subpath "/"#).unwrap(), r#""/a\") (allow default) (subpath \"/""#);
        assert_eq!(quote(r"/a\").unwrap(), r#""/a\\""#);
        assert_eq!(quote("/a (b) ; c").unwrap(), r#""/a (b) ; c""#);
        for refused in ["/a\nb", "/a\rb", "/a\0b", "/a\u{85}b", "relative", ""] {
            assert!(quote(refused).is_err(), "{refused:?}");
        }
        use std::os::unix::ffi::OsStrExt;
        assert!(quoted(Path::new(std::ffi::OsStr::from_bytes(b"/a\xff"))).is_err());
        for root in ["/p\")(allow default)", "/p\\", "/p(", "/p;"] {
            let fence = Fence { roots: vec![root.into()], ..Fence::default() };
            let profile = profile(&fence, Path::new("/private/tmp/own"), None, None).unwrap();
            assert!(is_whole(after_base(&profile)), "{profile}");
            assert!(!profile.lines().any(|line| line.contains("(allow default)") && !line.contains("\\\")")));
        }
    }

    #[test]
    fn globs_become_expressions_or_are_refused() {
        assert_eq!(regex("**/a+b").unwrap(), "/[aA][+][bB](/|$)");
        assert_eq!(regex("/x/*.y").unwrap(), "^/[xX]/[^/]*[.][yY](/|$)");
        assert_eq!(regex("x/**/y").unwrap(), "/[xX]/(.*/)?[yY](/|$)");
        assert_eq!(regex(r"\*").unwrap(), "/[*](/|$)");
        for refused in ["[ab]", "{a", "a\\", "a\"b", "a\nb"] {
            assert!(regex(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn text_of_a_policy_is_added_and_opens_nothing_that_is_written() {
        let own = Path::new("/private/tmp/own");
        let added = "(allow mach-lookup (global-name \"com.example.service\")) ; why\n(allow file-write*)";
        let with = profile(&fence(), own, None, Some(added)).unwrap();
        let without = profile(&fence(), own, None, None).unwrap();
        assert!(with.starts_with(BASE) && with.ends_with(after_base(&without)));
        let (allowed, denied) =
            (with.find("(allow file-write*)\n").unwrap(), with.find("\n(deny file-write*)").unwrap());
        assert!(allowed < denied);
        for broken in ["(allow", ")", "(a \"b)", "(a #\"b)", "#| (a)", "(a))(b"] {
            assert!(profile(&fence(), own, None, Some(broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn the_command_names_its_program_by_path() {
        let command = command("(version 1)", &["/usr/bin/true".into()], Path::new("/p"));
        assert_eq!(command.get_program(), SANDBOX_EXEC);
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["-p", "(version 1)", "--", "/usr/bin/true"]);
    }
}
