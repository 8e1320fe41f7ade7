use super::*;

fn shown(text: &str) -> String {
    Redactor::default().text(text)
}

/// Made here so that no scanner takes the source for a leak.
fn secret(prefix: &str, length: usize) -> String {
    let alphabet = b"aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z";
    let tail: String = (0..length).map(|index| char::from(alphabet[index * 7 % alphabet.len()])).collect();
    format!("{prefix}{tail}")
}

#[test]
fn credential_shapes_are_replaced() {
    let upper = |length| secret("", length).to_uppercase();
    let cases: Vec<(String, String)> = [
        format!("AKIA{}", upper(16)),
        secret("ghp_", 36),
        secret("github_pat_", 40),
        secret("glpat-", 20),
        secret("xoxb-", 24),
        secret("sk_live_", 24),
        secret("sk-proj-", 40),
        secret("sk-ant-api03-", 40),
        secret("npm_", 36),
        secret("pypi-", 60),
        secret("AIza", 35),
        secret("hf_", 34),
        format!("{}.{}.{}", secret("eyJ", 20), secret("eyJ", 30), secret("", 40)),
    ]
    .into_iter()
    .map(|secret| (format!("echo {secret} done"), secret))
    .chain(
        [
            ("curl -H 'Authorization: Bearer SECRETVALUE' x", "SECRETVALUE"),
            ("curl -H \"Authorization: Basic QWRhOmh1bnRlcjI=\" x", "QWRhOmh1bnRlcjI="),
            ("curl -H 'Cookie: session=SECRETVALUE' x", "SECRETVALUE"),
            ("git clone https://ada:SECRETVALUE@example.com/x", "SECRETVALUE"),
            ("git clone https://SECRETVALUE0123456@example.com/x", "SECRETVALUE0123456"),
            ("psql postgres://u:SECRETVALUE@db/x", "SECRETVALUE"),
            ("PASSWORD=SECRETVALUE make", "SECRETVALUE"),
            ("export DB_PASSWORD='SECRET VALUE'", "SECRET VALUE"),
            ("PGPASSWORD=\"SECRETVALUE\" psql", "SECRETVALUE"),
            ("api_key: SECRETVALUE", "SECRETVALUE"),
            ("{\"client_secret\": \"SECRETVALUE\"}", "SECRETVALUE"),
            ("{\\\"token\\\": \\\"SECRETVALUE\\\"}", "SECRETVALUE"),
            ("login --password SECRETVALUE", "SECRETVALUE"),
            ("tool --api-key 'SECRETVALUE'", "SECRETVALUE"),
            ("tool --token=SECRETVALUE", "SECRETVALUE"),
            ("sshpass -p SECRETVALUE ssh x", "SECRETVALUE"),
            ("mysql -u root -pSECRETVALUE db", "SECRETVALUE"),
            ("docker login -u ada -p SECRETVALUE registry", "SECRETVALUE"),
            ("redis-cli -a SECRETVALUE ping", "SECRETVALUE"),
            ("curl -u ada:SECRETVALUE https://x", "SECRETVALUE"),
            ("openssl rsa -passin pass:SECRETVALUE", "SECRETVALUE"),
            ("curl 'https://x.example/y?sig=SECRETVALUE&a=b'", "SECRETVALUE"),
            ("AccountName=x;AccountKey=SECRETVALUE;", "SECRETVALUE"),
            ("token_übung=SECRETVALUE", "SECRETVALUE"),
            ("пароль_token: SECRETVALUE", "SECRETVALUE"),
            ("aws_größe_key = SECRETVALUE0123456789012345678901234567A", "SECRETVALUE0123456789012345678901234567A"),
            ("auth_hash=9f8a7b6c5d4e3f2a1b0c9d8e7f", "9f8a7b6c5d4e3f2a1b0c9d8e7f"),
            ("-----BEGIN RSA PRIVATE KEY-----\nSECRETVALUE\n-----END RSA PRIVATE KEY-----", "SECRETVALUE"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nSECRETVALUE cut off", "SECRETVALUE"),
        ]
        .into_iter()
        .map(|(text, secret)| (text.to_owned(), secret.to_owned())),
    )
    .collect();
    for (text, secret) in cases {
        let shown = shown(&text);
        assert!(!shown.contains(&secret), "{text} => {shown}");
        assert!(shown.contains("[redacted: "), "{shown}");
    }
}

#[test]
fn ordinary_text_stays() {
    for text in [
        "cargo test -p callgate --lib",
        "mkdir -p src/token && ssh -p 22 host ls",
        "grep -rn 'password' src",
        "vim tokenizer.rs secretary.py",
        "curl -H \"Authorization: $HEADER\" https://example.com/a/b",
        "TOKEN=$TOKEN make",
        "max_tokens: 4096",
        "token: true",
        "git commit -m 'say what the token is for'",
        "http://localhost:8080/path",
        "a basic understanding of the matter",
        "key=value",
        "--key-file path",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn values_that_the_caller_names_are_replaced() {
    let redactor = Redactor::knowing(["swordfish", "abc", "fish-and-more"]);
    assert_eq!(redactor.text("say swordfish-and-more, abc"), "say [redacted: known secret], abc");
}

#[test]
fn fields_are_shown_as_they_deserve() {
    let redactor = Redactor::default();
    let view = redactor.input(
        &json!({
            "env": {"A": "SECRETVALUE", "B": "x"},
            "content": "SECRETVALUE",
            "password": "SECRETVALUE",
            "nested": {"apiKey": "SECRETVALUE", "count": 3, "environment": ["A=SECRETVALUE"]},
            "argv": ["tool", "--password", "SECRETVALUE", "--verbose"],
            "command": "ls",
        }),
        &|name| match name {
            "env" => Shown::Keys,
            "content" => Shown::Digest,
            _ => Shown::Text,
        },
    );
    assert!(!view.to_string().contains("SECRETVALUE"), "{view}");
    assert_eq!(view.as_value()["env"], json!(["A", "B"]));
    assert_eq!(view.as_value()["content"]["size"], 11);
    assert_eq!(view.as_value()["command"], "ls");
    assert_eq!(view.as_value()["nested"]["count"], 3);
    assert_eq!(view.as_value()["argv"][3], "--verbose");
}

#[test]
fn a_digest_is_the_known_one() {
    assert_eq!(
        digest("abc"),
        json!({"size": 3, "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"})
    );
}

#[test]
fn work_is_bounded() {
    let long = shown(&"a".repeat(10_000_000));
    assert!(long.starts_with("[10000000 bytes, sha256 "), "what is too long is not searched");
    for text in [
        "token=".repeat(40_000),
        "password: ".repeat(25_000),
        "://".repeat(80_000),
        "-----BEGIN PRIVATE KEY-----".repeat(9_000),
        format!("{}{}", "key_".repeat(60_000), "="),
    ] {
        let found = shapes::find(&text).len();
        assert!(found <= text.len() / 2, "{found} secrets in {} bytes", text.len());
    }
    let mut deep = json!("x");
    for _ in 0..2_000 {
        deep = Value::Array(vec![deep]);
    }
    Redactor::default().anything(&deep);
}
