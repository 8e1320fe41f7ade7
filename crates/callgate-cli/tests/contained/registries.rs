//! The registries are open while a package manager fetches, and closed while scripts of packages run.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::case::Case;
use crate::run::Wrapper;
use crate::world::{User, World};

/// A registry of npm with one package, whose script asks it for `/leak`. It notes what it is asked for.
struct Registry {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn start(archive: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut line = String::new();
                let _ = reader.read_line(&mut line);
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                let mut header = String::new();
                while reader.read_line(&mut header).is_ok_and(|length| length > 2) {
                    header.clear();
                }
                let package = format!(
                    r#"{{"name":"tool","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{{"name":"tool","version":"1.0.0","hasInstallScript":true,"scripts":{{"postinstall":"node leak.js"}},"dist":{{"tarball":"http://127.0.0.1:{port}/tool/-/tool-1.0.0.tgz"}}}}}}}}"#
                );
                let body = match path.as_str() {
                    "/tool" => package.into_bytes(),
                    path if path.ends_with(".tgz") => archive.clone(),
                    _ => Vec::new(),
                };
                noted.lock().expect("no thread panics here").push(path);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let mut stream = reader.into_inner();
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        Registry { port, asked }
    }

    fn was_asked_for(&self, path: &str) -> bool {
        self.asked.lock().expect("no thread panics here").iter().any(|asked| asked == path)
    }
}

/// What a package contains: its script asks the registry that its first word names, and says in a file how that ended.
const PACKAGE: &str = r#"
mkdir -p pack/package && cd pack
echo '{"name":"tool","version":"1.0.0","scripts":{"postinstall":"node leak.js"}}' > package/package.json
cat > package/leak.js <<'X'
const fs = require('fs'), http = require('http');
const done = (how) => fs.writeFileSync(process.env.INIT_CWD + '/script', how);
const request = http.get(process.env.npm_config_registry + 'leak', (answer) => { answer.resume(); done('reached'); });
request.on('error', (error) => done(error.code));
X
tar -czf ../tool.tgz package
"#;

/// Runs `npm install` in a project that needs the package, and gives back the registry and what the script said.
fn install(command: &str, wrapper: Wrapper) -> (Registry, String, String) {
    let options = vec!["--network".to_owned(), "@registries".to_owned()];
    let case = Case { class: "work", options, ..Case::default() };
    let user = User::ordinary();
    let world = World::new(&case, user);
    assert!(world.outside_step(PACKAGE), "the package can be packed");
    let registry = Registry::start(std::fs::read(world.workspace.join("tool.tgz")).expect("it was just made"));
    let set_up = format!(
        "rm -rf pack tool.tgz; echo 'registry=http://127.0.0.1:{}/' > ~/.npmrc; \
         echo '{{\"name\":\"app\",\"version\":\"1.0.0\",\"dependencies\":{{\"tool\":\"1.0.0\"}},\"scripts\":{{\"prepare\":\"echo prepared > prepared\"}}}}' > package.json",
        registry.port
    );
    assert!(world.outside_step(&set_up), "the project can be made");
    let mut words = wrapper.words(&world, &case);
    words.extend(["/bin/bash", "-c", command].map(str::to_owned));
    let mut run: Command = user.command(words.first().expect("at least bash"), &world.home);
    run.args(words.iter().skip(1)).current_dir(&world.workspace);
    run.env("npm_config_registry", format!("http://127.0.0.1:{}/", registry.port));
    let done = run.output().expect("it starts");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let script = std::fs::read_to_string(world.workspace.join("script")).unwrap_or_default();
    assert!(world.workspace.join("node_modules/tool/leak.js").exists(), "the package was not fetched: {said}");
    assert!(world.workspace.join("prepared").exists(), "the project's own script did not run: {said}");
    (registry, script, said)
}

const INSTALL: &str = "npm install --no-audit --no-fund --foreground-scripts 2>&1 | cat";

#[test]
fn scripts_of_packages_do_not_reach_the_registry_that_they_came_from() {
    let (registry, script, said) = install(INSTALL, Wrapper::None);
    assert_eq!(script, "reached", "the control: {said}");
    assert!(registry.was_asked_for("/leak"), "the control: {said}");
    for wrapper in [Wrapper::Callgate, Wrapper::Backend("bubblewrap")] {
        let (registry, script, said) = install(INSTALL, wrapper);
        assert_eq!(script, "ENETUNREACH", "{wrapper:?}: {said}");
        assert!(registry.was_asked_for("/tool") && !registry.was_asked_for("/leak"), "{wrapper:?}: {said}");
    }
}
