//! A hundred kinds of secrets in every kind of call, and none of them in the log, the events, the questions or the errors.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::{Arc, Mutex};

use callgate::Gate;
use callgate::approvals::{ApprovalDecision, Question};
use callgate::call::Call;
use callgate::event::{Event, EventError, EventSink};
use callgate::policy::Policy;
use callgate_audit::{AuditSink, Log, Settings, SyncMode};
use serde_json::{Value, json};

/// A value that looks random. Made here so that no scanner takes the source for a leak.
fn random(alphabet: &str, length: usize, seed: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut state = seed as u64 + 11;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            letters[(state >> 33) as usize % letters.len()]
        })
        .collect()
}

const MIXED: &str = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const DIGITS_AND_A_TO_F: &str = "0123456789abcdef";

/// A kind of secret: how it stands in a command, and what must not be seen of it.
struct Canary {
    name: String,
    command: String,
    secret: String,
}

fn tokens() -> Vec<(&'static str, String)> {
    let mixed = |prefix: &str, length, seed| format!("{prefix}{}", random(MIXED, length, seed));
    let lower = |prefix: &str, length, seed| format!("{prefix}{}", random(DIGITS_AND_A_TO_F, length, seed));
    vec![
        ("aws access key", format!("AKIA{}", random(UPPER, 16, 1))),
        ("aws session key", format!("ASIA{}", random(UPPER, 16, 2))),
        ("github personal", mixed("ghp_", 36, 3)),
        ("github oauth", mixed("gho_", 36, 4)),
        ("github user", mixed("ghu_", 36, 5)),
        ("github server", mixed("ghs_", 36, 6)),
        ("github refresh", mixed("ghr_", 36, 7)),
        ("github fine-grained", mixed("github_pat_", 60, 8)),
        ("gitlab personal", mixed("glpat-", 20, 9)),
        ("gitlab deploy", mixed("gldt-", 20, 10)),
        ("gitlab runner", mixed("glrt-", 20, 11)),
        ("slack bot", mixed("xoxb-", 40, 12)),
        ("slack user", mixed("xoxp-", 40, 13)),
        ("slack app", mixed("xapp-", 40, 14)),
        ("stripe live", mixed("sk_live_", 24, 15)),
        ("stripe test", mixed("sk_test_", 24, 16)),
        ("stripe restricted", mixed("rk_live_", 24, 17)),
        ("stripe webhook", mixed("whsec_", 32, 18)),
        ("openai", mixed("sk-proj-", 48, 19)),
        ("anthropic", mixed("sk-ant-api03-", 80, 20)),
        ("npm", mixed("npm_", 36, 21)),
        ("pypi", mixed("pypi-AgEIcHlwaS5vcmc", 60, 22)),
        ("google api", mixed("AIza", 35, 23)),
        ("google oauth", mixed("ya29.", 60, 24)),
        ("google client", mixed("GOCSPX-", 28, 25)),
        ("hugging face", mixed("hf_", 34, 26)),
        ("sendgrid", format!("SG.{}.{}", random(MIXED, 22, 27), random(MIXED, 43, 28))),
        ("digitalocean", lower("dop_v1_", 64, 29)),
        ("telegram", format!("123456789:AA{}", random(MIXED, 33, 30))),
        ("docker", mixed("dckr_pat_", 27, 31)),
        ("vault", mixed("hvs.", 90, 32)),
        ("shopify", lower("shpat_", 32, 33)),
        ("linear", mixed("lin_api_", 40, 34)),
        ("databricks", lower("dapi", 32, 35)),
        ("age", format!("AGE-SECRET-KEY-1{}", random("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, 36))),
        (
            "signed token",
            format!("eyJ{}.eyJ{}.{}", random(MIXED, 30, 37), random(MIXED, 50, 38), random(MIXED, 43, 39)),
        ),
    ]
}

fn canaries() -> Vec<Canary> {
    let mut all: Vec<Canary> = tokens()
        .into_iter()
        .map(|(name, secret)| Canary {
            name: name.into(),
            command: format!("curl https://example.com -d {secret}"),
            secret,
        })
        .collect();
    let templates: &[(&str, &str)] = &[
        ("bearer header", "curl -H 'Authorization: Bearer {}' https://example.com"),
        ("basic header", "curl -H \"Authorization: Basic {}\" https://example.com"),
        ("token header", "curl -H 'Authorization: token {}' https://example.com"),
        ("api key header", "curl -H 'X-Api-Key: {}' https://example.com"),
        ("auth token header", "curl -H 'X-Auth-Token: {}' https://example.com"),
        ("cookie header", "curl -H 'Cookie: session={}' https://example.com"),
        ("user flag", "curl -u ada:{} https://example.com"),
        ("proxy user flag", "curl --proxy-user ada:{} https://example.com"),
        ("url password", "git clone https://ada:{}@example.com/x.git"),
        ("url token", "git clone https://{}@example.com/x.git"),
        ("postgres url", "psql postgres://ada:{}@db.example.com/x"),
        ("mysql url", "echo mysql://ada:{}@db.example.com/x"),
        ("mongodb url", "mongosh 'mongodb+srv://ada:{}@db.example.com/x'"),
        ("redis url", "redis-cli -u redis://default:{}@db.example.com:6379"),
        ("amqp url", "echo amqp://ada:{}@mq.example.com"),
        ("ftp url", "wget ftp://ada:{}@ftp.example.com/x"),
        ("smtp url", "curl smtps://ada:{}@mail.example.com"),
        ("https query token", "curl 'https://example.com/x?access_token={}'"),
        ("https query key", "curl 'https://example.com/x?api_key={}&y=1'"),
        ("https query signature", "curl 'https://example.com/x?sig={}'"),
        ("presigned url", "curl 'https://b.example.com/k?X-Amz-Signature={}&X-Amz-Date=1'"),
        ("slack webhook", "curl -d x https://hooks.slack.com/services/T0/B0/{}"),
        ("PASSWORD variable", "PASSWORD={} make"),
        ("exported secret", "export CLIENT_SECRET='{}'"),
        ("PGPASSWORD", "PGPASSWORD={} psql -h db.example.com"),
        ("MYSQL_PWD", "MYSQL_PWD={} mysql"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY={} aws s3 ls"),
        ("GITHUB_TOKEN", "GITHUB_TOKEN={} gh pr list"),
        ("NPM_TOKEN", "NPM_TOKEN={} npm publish"),
        ("DATABASE_PASSWORD in env", "env DATABASE_PASSWORD={} ./run"),
        ("SECRET_KEY_BASE", "SECRET_KEY_BASE={} rails s"),
        ("ENCRYPTION_KEY", "ENCRYPTION_KEY={} node app.js"),
        ("AUTH_KEY", "TAILSCALE_AUTH_KEY={} tailscale up"),
        ("password flag", "tool --password {}"),
        ("password flag with equals", "tool --password={}"),
        ("passphrase flag", "gpg --passphrase {} -d x.gpg"),
        ("token flag", "vercel --token {}"),
        ("token flag with equals", "vercel --token={}"),
        ("api key flag", "tool --api-key {}"),
        ("secret flag", "tool --client-secret {}"),
        ("access key flag", "tool --access-key {}"),
        ("private key flag", "tool --private-key {}"),
        ("sshpass", "sshpass -p {} ssh example.com"),
        ("mysql -p", "mysql -u root -p{} shop"),
        ("mysqldump -p", "mysqldump -u root -p{} shop"),
        ("docker login", "docker login -u ada -p {} registry.example.com"),
        ("podman login", "podman login --username ada --password {} registry.example.com"),
        ("redis-cli -a", "redis-cli -a {} ping"),
        ("ldapsearch -w", "ldapsearch -D cn=ada -w {} -b dc=example"),
        ("zip -P", "zip -P {} x.zip x"),
        ("7z -p", "7z a -p{} x.7z x"),
        ("openssl pass", "openssl rsa -in k.pem -passin pass:{}"),
        ("smbclient", "smbclient //host/share -U ada%{}"),
        ("az storage", "az storage blob list --connection-string 'AccountName=x;AccountKey={};EndpointSuffix=y'"),
        ("service bus", "echo 'Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey={}'"),
        ("odbc", "isql -k 'Driver=x;Uid=ada;Pwd={};'"),
        ("jdbc", "java -jar x.jar 'jdbc:postgresql://h/x?user=ada&password={}'"),
        ("json field", "curl -d '{{\"password\": \"{}\"}}' https://example.com"),
        ("json token", "curl -d '{{\"refresh_token\":\"{}\"}}' https://example.com"),
        ("yaml line", "echo 'api_key: {}' >> config.yml"),
        ("dotenv line", "echo 'SESSION_SECRET={}' >> .env.local"),
        ("netrc", "echo 'machine example.com login ada password={}' >> netrc"),
        ("private key", "echo '-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----' > k.pem"),
        ("openssh key", "echo '-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----' > k"),
        ("random auth value", "echo auth_hash={}"),
        ("random session value", "echo 'session_key: {}'"),
    ];
    all.extend(templates.iter().enumerate().map(|(index, (name, template))| {
        let secret = random(MIXED, 32, 100 + index);
        let command = template.replace("{{", "{").replace("}}", "}").replace("{}", &secret);
        Canary { name: (*name).into(), command, secret }
    }));
    all
}

/// Every kind of call that carries such a text.
fn calls(canary: &Canary) -> Vec<Call> {
    let text = &canary.command;
    let inputs: Vec<(&str, Value)> = vec![
        ("Bash", json!({"command": text, "description": "does something"})),
        ("shell", json!({"command": ["bash", "-lc", text]})),
        ("exec_command", json!({"cmd": text, "env": {"X": canary.secret}})),
        ("shell_exec", json!({"argv": text.split(' ').collect::<Vec<_>>()})),
        ("write_stdin", json!({"session_id": 1, "chars": text})),
        ("Write", json!({"file_path": "notes.txt", "content": text})),
        ("Edit", json!({"file_path": "notes.txt", "old_string": text, "new_string": canary.secret})),
        ("apply_patch", json!({"input": format!("*** Begin Patch\n*** Add File: a.txt\n+{text}\n*** End Patch")})),
        ("Grep", json!({"pattern": text, "path": "."})),
        ("WebFetch", json!({"url": "https://example.com", "prompt": text})),
        ("Task", json!({"description": "x", "prompt": text})),
        ("mcp__mail__send", json!({"to": "ada@example.com", "body": text, "nested": {"deep": [{"text": text}]}})),
        (
            "unknown_tool",
            json!({"anything": text, "password": canary.secret, "headers": {"Authorization": canary.secret}}),
        ),
    ];
    inputs.into_iter().map(|(tool, input)| Call::new(tool, input).session("s").directory("/tmp")).collect()
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<String>>);

impl EventSink for Seen {
    fn emit(&self, event: &Event) -> Result<(), EventError> {
        self.0.lock().unwrap().push_str(&serde_json::to_string(event).unwrap());
        Ok(())
    }
}

#[test]
fn no_secret_leaves_the_gate() {
    let all = canaries();
    assert!(all.len() >= 100, "{}", all.len());
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::at(directory.path().join("audit")).sync(SyncMode::Os);
    let log = Arc::new(Log::open(settings.clone()).unwrap());
    let seen = Seen::default();
    let asked = Seen::default();
    let questions = asked.clone();
    let gate = Gate::builder()
        .policy(Policy::bundled("standard").unwrap())
        .approver(move |request: &Question| {
            questions.0.lock().unwrap().push_str(&serde_json::to_string(request).unwrap());
            ApprovalDecision::Denied
        })
        .events(AuditSink::new(log))
        .events(seen.clone())
        .build();
    let mut leaks = Vec::new();
    let mut read = 0;
    for canary in &all {
        for call in calls(canary) {
            let tool = call.tool.to_string();
            let error = match gate.check(call) {
                Ok(_) => String::new(),
                Err(refusal) => format!("{refusal} {refusal:?}"),
            };
            let text = std::fs::read(settings.directory.join("audit-000001.jsonl")).unwrap();
            let log = String::from_utf8_lossy(&text[read..]).into_owned();
            read = text.len();
            let places = [
                ("log", log),
                ("event", std::mem::take(&mut *seen.0.lock().unwrap())),
                ("question", std::mem::take(&mut *asked.0.lock().unwrap())),
                ("error", error),
            ];
            for (place, text) in places {
                assert!(place != "log" || text.contains("tool_attempt"), "{tool}: {text}");
                // a good half of a secret is a leak as well
                let part = &canary.secret[canary.secret.len() / 2..];
                if text.contains(&canary.secret) || part.len() >= 12 && text.contains(part) {
                    leaks.push(format!("{} in {place} of {tool}", canary.name));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

/// Commands as people write them, in which nothing is secret.
const HARMLESS: &[&str] = &[
    "cargo test -p callgate --lib -- --nocapture",
    "git commit -m 'Explain how tokens are refreshed and why the password prompt is gone'",
    "git log --oneline --since=2026-01-01 -- src/secret_store.rs",
    "grep -rn 'api_key' src --include='*.py'",
    "rg 'Authorization' -g '*.ts'",
    "kubectl get secrets -n production",
    "aws secretsmanager list-secrets --region eu-central-1",
    "docker run -p 8080:80 -v \"$PWD\":/srv nginx:1.27",
    "ssh -p 2222 deploy@example.com uptime",
    "mkdir -p target/token-cache && touch target/token-cache/.keep",
    "sha256sum dist/app-1.2.3.tar.gz",
    "git checkout 8f14e45fceea167a5a36dedd4bea2543f6e8c1d2",
    "curl -fsSL https://example.com/releases/v1.2.3/install.sh",
    "curl -H 'Accept: application/json' 'https://api.example.com/users?page=2&sort=name'",
    "npm run build -- --mode=production --sourcemap",
    "python -m pytest tests/test_tokenizer.py -k 'password and not slow'",
    "sed -n '/password:/,/^$/p' docs/configuration.md",
    "export TOKEN=$(gh auth token)",
    "PASSWORD=$DB_PASSWORD ./migrate.sh",
    "psql \"$DATABASE_URL\" -c 'select count(*) from sessions'",
    "terraform plan -var 'key_name=deploy' -out plan.bin",
    "ansible-playbook site.yml --tags 'keys,auth' --limit web",
    "openssl x509 -in certs/server.pem -noout -text",
    "gpg --list-keys --keyid-format long",
    "ls -la ~/.config/callgate",
    "jq '.tokens | length' report.json",
    "find . -name '*key*' -not -path './node_modules/*'",
    "make key=value target=release",
    "rustc --edition 2024 --cfg 'feature=\"secret\"' x.rs",
    "tokens: 4096, max_tokens: 8192",
    "the key is under the mat; the secret of good coffee is patience",
    "sort -k 2,2 -t: /etc/passwd",
    "tar -cf - src | zstd -o src.tar.zst",
    "uuid=6f1ed002-ab59-4d3c-9d1e-3c6f1f6a2b11 ./deploy",
    "head -c 100 /dev/urandom | base64",
    "echo 'see https://docs.example.com/auth#tokens for details'",
    "git remote add origin git@example.com:ada/project.git",
    "pip install 'requests>=2.31' --index-url https://pypi.example.org/simple",
    "yarn add @auth/core@0.37.0",
    "go test ./internal/auth/... -run TestTokenRefresh -count=1",
];

#[test]
fn harmless_text_is_hardly_ever_masked() {
    let redactor = callgate::redact::Redactor::default();
    let masked: Vec<&&str> = HARMLESS.iter().filter(|text| redactor.text(text) != **text).collect();
    println!("{} of {} harmless texts are masked: {masked:#?}", masked.len(), HARMLESS.len());
    assert!(masked.len() * 20 <= HARMLESS.len(), "more than one in twenty: {masked:#?}");
}
