use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use callgate_model::fence::{HeldBack, Network};

use super::super::hosts::HostList;
use super::super::resolver::Resolver;
use super::*;

struct Setting {
    proxy: Proxy,
    reported: Arc<Mutex<Vec<String>>>,
}

/// A proxy for `entries`; `db.internal` and `public.example` are names of this machine.
fn setting(entries: &[String]) -> Setting {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&reported);
    let lookup = |name: &str| -> io::Result<Vec<IpAddr>> {
        Ok(match name {
            "db.internal" | "public.example" => vec![Ipv4Addr::LOCALHOST.into()],
            _ => Vec::new(),
        })
    };
    let hosts = Arc::new(HostList::new(&Network::Hosts(entries.to_vec())).unwrap());
    let report = Arc::new(move |held: HeldBack| reports.lock().unwrap().push(held.target));
    let resolver = Arc::new(Resolver::with_lookup(hosts, report, Arc::new(lookup)));
    Setting { proxy: Proxy::new(Arc::new(Connector::new(resolver))), reported }
}

/// Runs `client` against the proxy on a loopback port.
fn served(setting: &Setting, client: impl FnOnce(u16)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    served_on(setting, listener.into(), || client(port));
}

fn served_on(setting: &Setting, listener: OwnedFd, client: impl FnOnce()) {
    let (stop, running) = rustix::pipe::pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| setting.proxy.serve(listener, stop.as_fd()).unwrap());
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(client));
        drop(running);
        ended.unwrap();
    });
}

/// A server that answers each connection with what it got, in upper case, once the client has ended its direction.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes);
                let _ = stream.write_all(&bytes.to_ascii_uppercase());
            });
        }
    });
    port
}

/// A web server with one page.
fn web() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 1000];
            let _ = stream.read(&mut buffer);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    port
}

fn connected(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

fn exchanged(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connected(port);
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn tunnels_pass_bytes_and_ends_on() {
    let target = echo();
    let setting = setting(&[format!("db.internal:{target}"), format!("127.0.0.1:{target}")]);
    served(&setting, |port| {
        for host in ["db.internal", "DB.internal.", "127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]"] {
            let answer =
                exchanged(port, format!("CONNECT {host}:{target} HTTP/1.1\r\nHost: x\r\n\r\nearly").as_bytes());
            let text = String::from_utf8_lossy(&answer).into_owned();
            assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nEARLY"), "{host}: {text}");
        }
        let [high, low] = target.to_be_bytes();
        let mut request = vec![5, 1, 0, 5, 1, 0, 3, 11];
        request.extend_from_slice(b"db.internal");
        request.extend_from_slice(&[high, low]);
        request.extend_from_slice(b"bytes");
        assert_eq!(exchanged(port, &request), [&[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0], &b"BYTES"[..]].concat());
        assert_eq!(exchanged(port, &[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low])[..4], [5, 0, 5, 0]);
    });
    assert_eq!(*setting.reported.lock().unwrap(), [""; 0]);
}

#[test]
fn much_data_passes_in_constant_memory_and_at_the_pace_of_the_reader() {
    let target = echo();
    let setting = setting(&[format!("127.0.0.1:{target}")]);
    served(&setting, |port| {
        let mut stream = connected(port);
        stream.write_all(format!("CONNECT 127.0.0.1:{target} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        let mut head = [0; 39];
        stream.read_exact(&mut head).unwrap();
        let bytes = vec![b'x'; 20_000_000];
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), bytes.len());
    });
}

#[test]
fn other_hosts_are_refused_and_reported_once() {
    let target = echo();
    let setting = setting(&["db.internal:1".into(), "public.example".into()]);
    served(&setting, |port| {
        for _ in 0..2 {
            for host in
                ["db.internal", "127.0.0.1", "localhost", "public.example", "evil.example", "2130706433", "[::1]", "0"]
            {
                let answer = exchanged(port, format!("CONNECT {host}:{target} HTTP/1.1\r\n\r\n").as_bytes());
                let text = String::from_utf8_lossy(&answer).into_owned();
                assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n") && text.contains("held back"), "{host}: {text}");
            }
        }
        let [high, low] = target.to_be_bytes();
        assert_eq!(exchanged(port, &[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low])[2..4], [5, 2]);
        assert_eq!(exchanged(port, &[&[5, 1, 0, 5, 1, 0, 3, 4], &b"a\0.b"[..], &[high, low]].concat())[2..4], [5, 2]);
    });
    let mut reported = setting.reported.lock().unwrap().clone();
    reported.sort();
    let expected = ["127.0.0.1", "[::1]", "db.internal", "evil.example", "public.example"];
    let mut expected: Vec<String> = expected.iter().map(|host| format!("{host}:{target}")).collect();
    // What would have to be listed for the public name.
    expected.push("127.0.0.1".into());
    expected.sort();
    assert_eq!(reported, expected);
}

#[test]
fn garbage_is_answered_and_closed() {
    let setting = setting(&["127.0.0.1".into()]);
    served(&setting, |port| {
        for (request, expected) in [
            (&b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 405 "),
            (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
            (b"CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT ::1:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT u@127.0.0.1:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT 127.0.0.1:80@x:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT 127.0.0.1:0 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT 127.0.0.1:80 HTTP/2\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT 127.0.0.1:80 x HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT \xff:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
            (b"CONNECT", "HTTP/1.1 400 "),
            (b"\r\n\r\n", "HTTP/1.1 400 "),
            (b"\x16\x03\x01\x02\x00", "HTTP/1.1 400 "),
            (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", "HTTP/1.1 502 "),
            (b"CONNECT evil\r\nX: .example:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
        ] {
            let answer = exchanged(port, request);
            let text = String::from_utf8_lossy(&answer).into_owned();
            assert!(text.starts_with(expected), "{}: {text}", String::from_utf8_lossy(request));
        }
        let long = [&b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nX: "[..], &vec![b'x'; 20_000]].concat();
        assert!(exchanged(port, &long).starts_with(b"HTTP/1.1 431 "));
        assert_eq!(exchanged(port, &[4, 1, 0, 80, 127, 0, 0, 1, 0])[..2], [0, 91]);
        assert_eq!(exchanged(port, &[5, 1, 2]), [5, 0xff]);
        assert_eq!(exchanged(port, &[5, 0]), [5, 0xff]);
        assert_eq!(exchanged(port, &[5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80])[2..4], [5, 7]);
        assert_eq!(exchanged(port, &[5, 1, 0, 5, 1, 0, 9])[2..4], [5, 8]);
        assert_eq!(exchanged(port, &[5, 1, 0, 4, 1, 0, 1])[2..4], [5, 1]);
        assert_eq!(exchanged(port, &[5, 200, 0]), b"");
        assert_eq!(exchanged(port, b""), b"");
        // Bytes from a generator, so that no pattern was thought of.
        let mut state = 12345_u32;
        for length in 0..60 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state.to_be_bytes()[0]
                })
                .collect();
            exchanged(port, &bytes);
        }
    });
}

#[test]
fn connections_end_with_the_call() {
    let target = echo();
    let setting = setting(&[format!("127.0.0.1:{target}")]);
    let mut streams = Vec::new();
    served(&setting, |port| {
        let mut open = connected(port);
        open.write_all(format!("CONNECT 127.0.0.1:{target} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        open.read_exact(&mut [0; 39]).unwrap();
        streams.extend([open, connected(port)]);
        std::thread::sleep(Duration::from_millis(50));
    });
    let start = Instant::now();
    for mut stream in streams {
        let _ = stream.read(&mut [0; 10]);
    }
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn there_are_only_so_many_connections() {
    let setting = setting(&["127.0.0.1".into()]);
    served(&setting, |port| {
        let held: Vec<TcpStream> = (0..MOST_CONNECTIONS).map(|_| connected(port)).collect();
        let mut answer = Vec::new();
        connected(port).read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&answer));
        drop(held);
        let start = Instant::now();
        while exchanged(port, b"GET / HTTP/1.1\r\n\r\n").starts_with(b"HTTP/1.1 503 ") {
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    });
}

#[test]
fn a_unix_socket_serves_as_well() {
    let target = echo();
    let setting = setting(&[format!("127.0.0.1:{target}")]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proxy");
    served_on(&setting, UnixListener::bind(&path).unwrap().into(), || {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(format!("CONNECT 127.0.0.1:{target} HTTP/1.1\r\n\r\nabc").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\r\n\r\nABC"), "{text}");
    });
}

#[test]
fn curl_understands_the_proxy() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let target = web();
    let setting = setting(&[format!("db.internal:{target}")]);
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl")
            .args(["-q", "-sS", "--max-time", "5", "--noproxy", ""])
            .args(arguments)
            .output()
            .unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    served(&setting, |port| {
        let (http, socks) = (format!("http://127.0.0.1:{port}"), format!("127.0.0.1:{port}"));
        let (good, bad) = (format!("http://db.internal:{target}/"), "http://evil.example/".to_owned());
        assert_eq!(curl(&["--proxytunnel", "--proxy", &http, &good]), ("hello".into(), String::new()));
        assert_eq!(curl(&["--socks5-hostname", &socks, &good]), ("hello".into(), String::new()));
        let (_, error) = curl(&["--proxytunnel", "--proxy", &http, &bad]);
        assert!(error.contains("403"), "{error}");
        let (_, error) = curl(&["--socks5-hostname", &socks, &bad]);
        assert!(error.contains("curl: (97)"), "{error}");
        let (text, _) = curl(&["--proxy", &http, &good]);
        assert!(text.contains("tunnels only"), "{text}");
    });
}
