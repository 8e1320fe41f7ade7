use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_model::fence::Network;
use proptest::prelude::*;

use super::super::message::tests::{outcome, query};
use super::super::name::Host;
use super::*;

const A: u16 = 1;
const AAAA: u16 = 28;
const TXT: u16 = 16;

struct Setting {
    resolver: Arc<Resolver>,
    reported: Arc<Mutex<Vec<String>>>,
    asked: Arc<AtomicUsize>,
}

impl Setting {
    fn reported(&self) -> Vec<String> {
        self.reported.lock().unwrap().clone()
    }

    fn ask(&self, name: &str, kind: u16) -> (u8, u8) {
        outcome(&self.resolver.answer(&query(name, kind)).unwrap())
    }
}

/// A resolver for `entries` whose names lead to what `lookup` says.
fn setting(entries: &[&str], lookup: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Setting {
    let hosts = HostList::new(&Network::Hosts(entries.iter().map(|entry| (*entry).to_owned()).collect())).unwrap();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::new(AtomicUsize::new(0));
    let (reports, count) = (Arc::clone(&reported), Arc::clone(&asked));
    let report: Report = Arc::new(move |held: HeldBack| {
        assert_eq!((held.action.as_str(), held.by.as_str()), ("connect", "network"));
        reports.lock().unwrap().push(held.target);
    });
    let lookup = move |name: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        lookup(name)
    };
    let mut resolver = Resolver::with_lookup(Arc::new(hosts), report, Arc::new(lookup));
    resolver.time_limit = Duration::from_millis(400);
    Setting { resolver: Arc::new(resolver), reported, asked }
}

fn two_addresses(_: &str) -> io::Result<Vec<IpAddr>> {
    Ok(vec!["9.9.9.9".parse().unwrap(), "2606:4700::1".parse().unwrap()])
}

fn name(text: &str) -> HostName {
    match Host::new(text).unwrap() {
        Host::Name(name) => name,
        Host::Address(address) => panic!("{address}"),
    }
}

#[test]
fn listed_names_are_resolved_and_pinned() {
    let setting = setting(&["a.example", "*.b.example:443"], two_addresses);
    for name in ["a.example", "A.Example", "x.b.example"] {
        assert_eq!(setting.ask(name, A), (0, 1), "{name}");
        assert_eq!(setting.ask(name, AAAA), (0, 1), "{name}");
        assert_eq!(setting.ask(name, TXT), (0, 0), "{name}");
    }
    assert_eq!(setting.asked.load(Ordering::SeqCst), 2, "one look-up for each name");
    let mut names = setting.resolver.names("9.9.9.9".parse().unwrap());
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, [name("a.example"), name("x.b.example")]);
    assert_eq!(setting.reported(), [""; 0]);
}

#[test]
fn other_names_are_refused_without_a_query() {
    let setting = setting(&["a.example"], two_addresses);
    for (kind, code) in [(A, 3), (AAAA, 3), (TXT, 5), (A, 3)] {
        assert_eq!(setting.ask("c2VjcmV0.evil.example", kind), (code, 0));
    }
    for name in ["b.a.example", "a.example.evil", "0x7f.1", "2130706433", "a", ""] {
        assert_eq!(setting.ask(name, A), (3, 0), "{name}");
    }
    assert_eq!(setting.asked.load(Ordering::SeqCst), 0);
    assert_eq!(
        setting.reported(),
        ["c2vjcmv0.evil.example", "b.a.example", "a.example.evil", "0x7f.1", "2130706433", "a", "."]
    );
}

#[test]
fn a_public_name_does_not_lead_to_this_machine() {
    let setting = setting(&["a.example", "*.b.example", "127.0.0.7"], |name| {
        let addresses: &[&str] = match name {
            "a.example" => &["127.0.0.1", "169.254.169.254", "9.9.9.9", "10.0.0.1", "127.0.0.7"],
            _ => &["10.0.0.1", "::ffff:10.0.0.2"],
        };
        Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())
    });
    let resolved = setting.resolver.resolve(&name("a.example")).unwrap();
    assert_eq!(resolved, ["9.9.9.9", "10.0.0.1", "127.0.0.7"].map(|address| address.parse::<IpAddr>().unwrap()));
    assert_eq!(setting.ask("x.b.example", A), (3, 0));
    assert_eq!(setting.resolver.names("127.0.0.1".parse().unwrap()), []);
    assert_eq!(setting.resolver.names("10.0.0.2".parse().unwrap()), []);
    assert!(setting.reported().contains(&"169.254.169.254".to_owned()), "{:?}", setting.reported());
}

#[test]
fn this_machine_is_known_without_asking() {
    let setting = setting(&[], two_addresses);
    assert_eq!(setting.ask("localhost", A), (0, 1));
    assert_eq!(setting.ask("api.LOCALHOST", AAAA), (0, 1));
    assert_eq!(setting.ask("1.0.0.127.in-addr.arpa", 12), (3, 0));
    assert_eq!(setting.ask(&format!("1.{}ip6.arpa", "0.".repeat(31)), 12), (3, 0));
    assert_eq!(setting.reported(), [""; 0]);
    assert_eq!(setting.ask("c2vj.0.127.in-addr.arpa", 12), (5, 0));
    assert_eq!(setting.ask("4.3.2.1.in-addr.arpa", 12), (5, 0));
    assert_eq!(setting.reported().len(), 2);
}

#[test]
fn failures_have_their_own_code() {
    let setting = setting(&["*.example"], |name| match name {
        "gone.example" => Err(io::Error::other("failed to lookup address information: Name or service not known")),
        "later.example" => {
            Err(io::Error::other("failed to lookup address information: Temporary failure in name resolution"))
        }
        _ => Ok(Vec::new()),
    });
    assert_eq!(setting.ask("gone.example", A), (3, 0));
    assert_eq!(setting.ask("later.example", A), (2, 0));
    assert_eq!(setting.ask("empty.example", A), (3, 0));
}

#[test]
fn slow_look_ups_end_in_time_and_are_few() {
    let setting = setting(&["*.example"], |_| {
        std::thread::sleep(Duration::from_secs(3));
        Ok(Vec::new())
    });
    let start = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..100 {
            let setting = &setting;
            scope.spawn(move || assert_eq!(setting.ask(&format!("n{}.example", number % 50), A), (2, 0)));
        }
    });
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(setting.asked.load(Ordering::SeqCst), MOST_LOOKUPS);
}

#[test]
fn reports_are_bounded() {
    let setting = setting(&[], two_addresses);
    for number in 0..2 * MOST_REPORTED {
        assert_eq!(setting.ask(&format!("n{number}.example"), A), (3, 0));
    }
    assert_eq!(setting.reported().len(), MOST_REPORTED);
}

/// Runs `client` against a server on a loopback port, for UDP and TCP.
fn served(setting: &Setting, client: impl FnOnce(SocketAddr)) {
    let (stop, running) = rustix::pipe::pipe().unwrap();
    // The same number for both, as real clients need it.
    let (udp, tcp) = (0..50)
        .find_map(|_| {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            let tcp = TcpListener::bind(udp.local_addr().unwrap()).ok()?;
            Some((udp, tcp))
        })
        .unwrap();
    let address = udp.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| setting.resolver.serve_udp(udp.into(), stop.as_fd()).unwrap());
        scope.spawn(|| setting.resolver.serve_tcp(tcp.into(), stop.as_fd()).unwrap());
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(address)));
        drop(running);
        ended.unwrap();
    });
}

#[test]
fn queries_are_answered_over_both_transports() {
    let setting = setting(&["a.example"], two_addresses);
    served(&setting, |address| {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut buffer = [0; 600];
        for (message, expected) in [
            (query("a.example", A), (0, 1)),
            (query("b.example", A), (3, 0)),
            (vec![0; 1400], (1, 0)),
            (query("a.example", AAAA), (0, 1)),
        ] {
            // Garbage in between is not answered.
            udp.send_to(b"garbage", address).unwrap();
            udp.send_to(&message, address).unwrap();
            let (length, _) = udp.recv_from(&mut buffer).unwrap();
            assert_eq!(outcome(&buffer[..length]), expected);
        }
        let mut tcp = TcpStream::connect(address).unwrap();
        for (message, expected) in [(query("a.example", A), (0, 1)), (query("b.example", A), (3, 0))] {
            tcp.write_all(&u16::try_from(message.len()).unwrap().to_be_bytes()).unwrap();
            tcp.write_all(&message).unwrap();
            let mut length = [0; 2];
            tcp.read_exact(&mut length).unwrap();
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            tcp.read_exact(&mut answer).unwrap();
            assert_eq!(outcome(&answer), expected);
        }
        tcp.write_all(&[0xff, 0xff, 1, 2, 3]).unwrap();
        assert_eq!(tcp.read_to_end(&mut Vec::new()).ok().unwrap_or(0), 0, "closed");
    });
}

#[test]
fn a_real_client_understands_the_answers() {
    let Ok(node) = std::process::Command::new("node").arg("--version").output() else {
        return;
    };
    if !node.status.success() {
        return;
    }
    let setting = setting(&["a.example"], two_addresses);
    served(&setting, |address| {
        let script = format!(
            "const {{Resolver}} = require('dns').promises; const r = new Resolver({{timeout: 2000, tries: 1}}); r.setServers(['{address}']);
            (async () => {{ console.log(await r.resolve4('a.example'), await r.resolve6('a.example'));
            for (const f of [r.resolve4('b.example'), r.resolveTxt('a.example'), r.resolveTxt('b.example')])
              await f.then(console.log, e => console.log(e.code)); }})()"
        );
        let output = std::process::Command::new("node").args(["-e", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, "[ '9.9.9.9' ] [ '2606:4700::1' ]\nENOTFOUND\nENODATA\nEREFUSED\n", "{output:?}");
    });
}

#[test]
fn the_system_is_asked() {
    // An address, so that no settings of the machine matter.
    assert_eq!(system_lookup("127.0.0.1").unwrap(), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    assert!(has_route(Ipv4Addr::LOCALHOST.into()));
}

proptest! {
    #[test]
    fn any_message_is_answered_or_ignored(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let setting = setting(&["a.example"], two_addresses);
        let _ = setting.resolver.answer(&bytes);
        prop_assert_eq!(setting.asked.load(Ordering::SeqCst), 0);
    }
}
