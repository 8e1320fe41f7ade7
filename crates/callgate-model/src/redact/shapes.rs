//! The shapes of credentials: a table.
//!
//! The pattern of a shape is compiled and searched only in texts with one of its keywords. The groups of a pattern are the
//! secret; the text around them stays readable.
//!
//! A hook compiles patterns in every call, so they are small: `\w` has hundreds of ranges, and a few dozen repetitions of it
//! take longer than everything else a hook does. So `\u{80}-\u{10FFFF}` stands for letters of other scripts, with `-i` because
//! case folding takes as long.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;

/// One kind of credential.
struct SecretShape {
    /// The name shown in place of the secret.
    what: &'static str,
    /// Keywords in lower case. Every text with such a secret contains at least one.
    words: &'static [&'static str],
    /// Bytes. Every text with such a secret contains at least one of them; if there are none, this says nothing.
    bytes: &'static [u8],
    /// The pattern.
    pattern: &'static str,
    /// A further condition on the secret.
    check: SecretCheck,
}

/// A condition on what a pattern found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretCheck {
    /// None.
    Always,
    /// It is not a variable, a placeholder, a plain word like `true` or a small number.
    IsValue,
    /// It also looks random.
    IsRandom,
}

use SecretCheck::{Always, IsRandom, IsValue};

const fn shape(
    what: &'static str,
    words: &'static [&'static str],
    pattern: &'static str,
    check: SecretCheck,
) -> SecretShape {
    SecretShape { what, words, bytes: &[], pattern, check }
}

impl SecretShape {
    /// The shape of a secret that never stands in a text without one of these bytes. For patterns whose keywords are common in
    /// addresses and names of variables, which then need not be compiled.
    const fn only_with(mut self, bytes: &'static [u8]) -> Self {
        self.bytes = bytes;
        self
    }

    /// Whether the pattern can find something that counts. A text with a keyword often cannot hold a secret all the same, and looking
    /// at its bytes takes a thousandth of the time that compiling the pattern takes.
    fn may_be_in(&self, text: &str) -> bool {
        (self.bytes.is_empty() || text.bytes().any(|byte| self.bytes.contains(&byte)))
            && (self.check != IsRandom || has_random_run(text))
    }
}

const SHAPES: &[SecretShape] = &[
    shape(
        "private key",
        &["private key"],
        r"(?s)(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\z))",
        Always,
    ),
    shape("age key", &["age-secret-key-"], r"(?i)(AGE-SECRET-KEY-1[0-9A-Z]{20,})", Always),
    shape("AWS key", &["akia", "asia", "abia", "acca"], r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b", Always),
    shape(
        "AWS secret",
        &["aws"],
        r#"(?i)aws(?-i:[0-9A-Za-z_ .\-\u{80}-\u{10FFFF}]){0,24}(?:secret|key)(?-i:[0-9A-Za-z_ .\-\u{80}-\u{10FFFF}]){0,24}["']?\s*[=:,]?\s*["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)"#,
        Always,
    ),
    shape(
        "GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
        Always,
    ),
    shape(
        "GitLab token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "gloas-"],
        r"(gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[A-Za-z0-9_.\-]{16,})",
        Always,
    ),
    shape(
        "Slack token",
        &["xox", "xapp-", "hooks.slack.com"],
        r"(xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})|hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]+)",
        Always,
    ),
    shape(
        "Stripe key",
        &["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_", "whsec_"],
        r"((?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,})",
        Always,
    ),
    shape("API key", &["sk-"], r"\b(sk-[A-Za-z0-9_\-]{16,})", Always),
    shape("npm token", &["npm_"], r"\b(npm_[A-Za-z0-9]{30,})", Always),
    shape("PyPI token", &["pypi-"], r"\b(pypi-[A-Za-z0-9_\-]{16,})", Always),
    shape(
        "Google key",
        &["aiza", "ya29.", "gocspx-"],
        r"(AIza[0-9A-Za-z_\-]{35}|ya29\.[0-9A-Za-z_\-]{20,}|GOCSPX-[0-9A-Za-z_\-]{20,})",
        Always,
    ),
    shape("Hugging Face token", &["hf_"], r"\b(hf_[A-Za-z0-9]{20,})", Always),
    shape("SendGrid key", &["sg."], r"\b(SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,})", Always),
    shape("DigitalOcean token", &["_v1_"], r"\b(do[oprt]_v1_[a-f0-9]{64})", Always),
    shape("Telegram token", &[":aa"], r"\b([0-9]{8,10}:AA[A-Za-z0-9_\-]{30,})", Always),
    shape("Docker token", &["dckr_"], r"\b(dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,})", Always),
    shape("Vault token", &["hvs.", "hvb."], r"\b(hv[sb]\.[A-Za-z0-9_\-]{20,})", Always),
    shape(
        "Shopify token",
        &["shpat_", "shpss_", "shpca_", "shppa_"],
        r"\b(shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32})",
        Always,
    ),
    shape("Linear key", &["lin_api_"], r"\b(lin_api_[A-Za-z0-9]{30,})", Always),
    shape("Databricks token", &["dapi"], r"\b(dapi[a-f0-9]{32})", Always),
    shape("signed token", &["eyj"], r"\b(eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?)", Always),
    shape("authorization", &["authorization"], r#"(?i)authorization["']?\s*[:=]\s*["']?([^"'\r\n]+)"#, IsValue),
    shape("bearer token", &["bearer"], r"(?i)\bbearer\s+([A-Za-z0-9._~+/=\-]{8,})", IsValue),
    shape("cookie", &["cookie"], r#"(?i)\b(?:set-)?cookie\s*:\s*([^"'\r\n]+)"#, IsValue),
    shape("password in a URL", &["://"], r#"://[^\s:/@"'<>]*:([^\s/@"'<>]+)@|://([^\s:/@"'<>]{16,})@"#, IsValue)
        .only_with(b"@"),
    shape(
        "signature in a URL",
        &["sig=", "signature=", "token=", "code=", "key="],
        r#"(?i)[?&](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|(?:access_|auth_|id_|refresh_)?token|code|(?:api_?)?key)=([^&\s"'#]{6,})"#,
        IsValue,
    )
    .only_with(b"?&"),
    shape(
        "connection string",
        &["accountkey=", "sharedaccess"],
        r#"(?i)\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([^;\s"']+)"#,
        IsValue,
    ),
    shape(
        "value of that name",
        &["passw", "pwd", "passphrase", "secret", "token", "key", "credential"],
        r#"(?i)(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|signing[_-]?key|encryption[_-]?key|secret[_-]?key|credential)(?:s|[0-9]{1,3}|[_\-](?-i:[0-9A-Za-z_\-\u{80}-\u{10FFFF}]){1,40})?\\?["']?\s*(?:=>|:=|=|:)\s*(?:\\?"((?:[^"\\]|\\[^"])+)|'([^']+)|([^\s"'&;,|(){}\[\]<>\\]+))"#,
        IsValue,
    ),
    shape(
        "value of a flag",
        &["-pass", "token", "secret", "key", "-password"],
        r#"(?i)(?:^|[\s"'])--?(?:[a-z]+-)*(?:password|passwd|pass|passphrase|token|secret|api-?key|access-?key|private-?key|secret-?key|client-?secret|credential)\s+(?:"([^"]+)|'([^']+)|([^\s"'\-;&|][^\s"';&|]*))"#,
        IsValue,
    ),
    shape("password", &["sshpass"], r#"\bsshpass\s+-p\s*["']?([^\s"']+)"#, IsValue),
    shape(
        "password",
        &["mysql", "mariadb"],
        r#"\b(?:mysql|mariadb)[0-9A-Za-z_\-]*\b[^|;&\n]*?\s-p["']?([^\s"']+)"#,
        IsValue,
    ),
    shape("password", &["login"], r#"\blogin\b[^|;&\n]*?\s-p\s*["']?([^\s"']+)"#, IsValue),
    shape("password", &["redis-cli"], r#"\bredis-cli\b[^|;&\n]*?\s-a\s*["']?([^\s"']+)"#, IsValue),
    shape("password", &["ldap"], r#"\bldap[a-z]+\b[^|;&\n]*?\s-w\s*["']?([^\s"']+)"#, IsValue),
    shape(
        "password",
        &["zip", "7z"],
        r#"\b(?:zip|unzip)\b[^|;&\n]*?\s-P\s*["']?([^\s"']+)|\b7z[a-z]?\b[^|;&\n]*?\s-p["']?([^\s"']+)"#,
        IsValue,
    ),
    shape("password", &["pass:"], r#"\bpass:([^\s"']+)"#, IsValue),
    shape(
        "password",
        &["curl", "wget", "http"],
        r#"(?:^|\s)(?:-u|-U|--user|--proxy-user)(?:\s+|=)?["']?[^\s:"'\-][^\s:"']*:([^\s"']+)"#,
        IsValue,
    )
    .only_with(b"-"),
    shape("password", &["smbclient", "//"], r#"(?:^|\s)-U\s*["']?[^\s%"']+%([^\s"']+)"#, IsValue).only_with(b"%"),
    shape(
        "random value",
        &["key", "auth", "session", "salt", "signature", "cert", "nonce", "hash"],
        r#"(?i)(?:key|auth|session|salt|signature|cert|nonce|hash)(?-i:[0-9A-Za-z_\-\u{80}-\u{10FFFF}]){0,20}\\?["']?\s*[=:]\s*\\?["']?([A-Za-z0-9+/_=\-]{20,})"#,
        IsRandom,
    ),
];

/// The number of keywords.
#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where a mistake is a compile error")]
const WORD_COUNT: usize = {
    let (mut count, mut shape) = (0, 0);
    while shape < SHAPES.len() {
        count += SHAPES[shape].words.len();
        shape += 1;
    }
    assert!(count < 256, "one byte counts them");
    count
};

/// The keywords, grouped by first byte, each with the index of its shape.
///
/// Built at compile time, because a hook redacts in every call: an automaton over all keywords is faster for long texts but
/// takes too long to build.
static WORDS: Words = Words::new();

struct Words {
    sorted: [(&'static [u8], u8); WORD_COUNT],
    /// The index of the first keyword for each first byte.
    starts: [u8; 257],
    /// A Bloom filter of the first two bytes of keywords.
    pairs: [u64; PAIR_WORDS],
}

const PAIR_WORDS: usize = 32;

/// The filter's bit for two lower-case bytes: its word and its mask.
const fn pair(first: u8, second: u8) -> (usize, u64) {
    let number = (first as usize).wrapping_mul(37) ^ (second as usize).wrapping_mul(101);
    (number / 64 % PAIR_WORDS, 1 << (number % 64))
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time, where a mistake is a compile error"
)]
impl Words {
    const fn new() -> Self {
        let mut words = Words { sorted: [(b"", 0); WORD_COUNT], starts: [0; 257], pairs: [0; PAIR_WORDS] };
        let (mut first, mut next) = (0_usize, 0_usize);
        while first < 256 {
            words.starts[first] = next as u8;
            let mut shape = 0;
            while shape < SHAPES.len() {
                let mut number = 0;
                while number < SHAPES[shape].words.len() {
                    let word = SHAPES[shape].words[number].as_bytes();
                    if word[0] as usize == first {
                        words.sorted[next] = (word, shape as u8);
                        let (place, mask) = pair(word[0], word[1]);
                        words.pairs[place] |= mask;
                        next += 1;
                    }
                    number += 1;
                }
                shape += 1;
            }
            first += 1;
        }
        words.starts[256] = next as u8;
        words
    }
}

impl Words {
    /// The keywords that may begin with two lower-case bytes.
    fn beginning(&self, first: u8, second: u8) -> &[(&'static [u8], u8)] {
        let (place, mask) = pair(first, second);
        if self.pairs.get(place).is_none_or(|bits| bits & mask == 0) {
            return &[];
        }
        let start = |byte: usize| self.starts.get(byte).copied().map_or(0, usize::from);
        self.sorted.get(start(first.into())..start(usize::from(first).saturating_add(1))).unwrap_or_default()
    }
}

static COMPILED: LazyLock<Vec<OnceLock<Option<Regex>>>> =
    LazyLock::new(|| SHAPES.iter().map(|_| OnceLock::new()).collect());

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSecret {
    /// Its position.
    pub range: Range<usize>,
    /// What it is.
    pub what: &'static str,
}

/// The shapes whose keywords are in a text, as one bit each. A test checks that the bits suffice.
fn possible(text: &str) -> u128 {
    let mut possible = 0_u128;
    let bytes = text.as_bytes();
    let pairs = bytes.iter().zip(bytes.iter().skip(1)).enumerate();
    for (place, (first, second)) in pairs {
        for (word, shape) in WORDS.beginning(first.to_ascii_lowercase(), second.to_ascii_lowercase()) {
            let here = bytes.get(place..place.saturating_add(word.len()));
            if here.is_some_and(|here| here.eq_ignore_ascii_case(word)) {
                possible |= 1_u128.checked_shl((*shape).into()).unwrap_or_default();
            }
        }
    }
    possible
}

/// All secrets in a text, in no particular order. If a pattern is invalid, the whole text counts as a secret.
pub(super) fn find(text: &str) -> Vec<FoundSecret> {
    let everything = || vec![FoundSecret { range: 0..text.len(), what: "text" }];
    let possible = possible(text);
    if possible == 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let is_possible = |number: usize| possible >> number & 1 == 1;
    for (_, (shape, compiled)) in
        SHAPES.iter().zip(COMPILED.iter()).enumerate().filter(|(number, _)| is_possible(*number))
    {
        if !shape.may_be_in(text) {
            continue;
        }
        let Some(regex) = compiled.get_or_init(|| Regex::new(shape.pattern).ok()) else {
            return everything();
        };
        for captures in regex.captures_iter(text) {
            let secrets = captures.iter().skip(1).flatten();
            found.extend(
                secrets
                    .filter(|secret| shape.check.accepts(secret.as_str()))
                    .map(|secret| FoundSecret { range: secret.range(), what: shape.what }),
            );
        }
    }
    found
}

impl SecretCheck {
    fn accepts(self, secret: &str) -> bool {
        match self {
            SecretCheck::Always => true,
            SecretCheck::IsValue => is_value(secret),
            SecretCheck::IsRandom => is_value(secret) && is_random(secret),
        }
    }
}

/// Whether a text is a literal secret, unlike `$TOKEN`, `<token>`, `true` and `4096`.
fn is_value(secret: &str) -> bool {
    let secret = secret.trim();
    let reference = secret.starts_with('$');
    let placeholder = secret.starts_with(['<', '*', '%', '{']) || secret.starts_with("[redacted");
    let small_number = secret.len() <= 6 && secret.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let plain = matches!(
        secret.to_ascii_lowercase().as_str(),
        "" | "true" | "false" | "null" | "none" | "yes" | "no" | "string" | "required" | "optional" | "="
    );
    !(reference || placeholder || small_number || plain)
}

/// The least length of what the pattern of random values finds.
const RANDOM_LENGTH: usize = 20;

/// Whether a text has letters and digits in one long run of the bytes that random values are made of.
fn has_random_run(text: &str) -> bool {
    let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/_=-".contains(byte);
    text.as_bytes().split(|byte| !in_run(byte)).filter(|run| run.len() >= RANDOM_LENGTH).any(has_letters_and_digits)
}

fn has_letters_and_digits(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a text has letters and digits and little repetition: more than 3.5 bits a byte.
fn is_random(secret: &str) -> bool {
    let mut counts = [0_u32; 256];
    for byte in secret.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count = count.saturating_add(1);
        }
    }
    let total = secret.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum();
    entropy > 3.5 && has_letters_and_digits(secret.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_small_because_a_hook_compiles_it_with_every_call() {
        for shape in SHAPES {
            let compiled = regex::RegexBuilder::new(shape.pattern).size_limit(96 * 1024).build();
            assert!(compiled.is_ok(), "{}", shape.pattern);
            assert!(!shape.pattern.contains(r"\w"), "{}", shape.pattern);
        }
    }

    #[test]
    fn every_pattern_compiles_and_has_a_group_and_lower_case_words() {
        assert!(SHAPES.len() <= 128, "one bit for each");
        for shape in SHAPES {
            let regex = Regex::new(shape.pattern).expect(shape.pattern);
            assert!(regex.captures_len() > 1, "{}", shape.pattern);
            assert!(!shape.words.is_empty());
            for word in shape.words {
                assert_eq!(*word, word.to_lowercase());
                let begins = WORDS.beginning(word.as_bytes()[0], word.as_bytes()[1]);
                assert!(begins.iter().any(|(one, _)| one == &word.as_bytes()), "{word}");
            }
        }
    }

    #[test]
    fn patterns_that_are_not_tried_would_find_nothing() {
        let texts = [
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
            "PYTHONDONTWRITEBYTECODE=1",
            "PIP_INDEX_URL=https://pypi.example/simple",
            "PIP_INDEX_URL=https://ada:geheim12@pypi.example/simple",
            "PIP_INDEX_URL=https://SECRETVALUE0123456@pypi.example/simple",
            "https://x.example/y?sig=SECRETVALUE",
            "https://x.example/y?a=b&token=SECRETVALUE",
            "curl -u ada:SECRETVALUE https://x",
            "curl --user=ada:SECRETVALUE https://x",
            "wget -Uada:SECRETVALUE x",
            "smbclient //host/share -U ada%SECRETVALUE",
            "session=0123456789abcdefghij",
            "hash: 'aB3dE5gH7jK9mN1pQ2rS'",
            "auth=aaaaaaaaaaaaaaaaaaaaaaaa",
            "key=12345678901234567890",
            "nonce=0123456789abcdefghi",
            "cert_ü=+/_=-0123456789abcdefghij",
        ];
        let mut skipped = 0;
        for (text, shape) in texts.iter().flat_map(|text| SHAPES.iter().map(move |shape| (text, shape))) {
            let regex = Regex::new(shape.pattern).unwrap();
            let counts = |found: regex::Match<'_>| shape.check.accepts(found.as_str());
            let finds = regex.captures_iter(text).any(|found| found.iter().skip(1).flatten().any(counts));
            assert!(shape.may_be_in(text) || !finds, "{} in {text}", shape.what);
            skipped += usize::from(!shape.may_be_in(text));
        }
        assert!(skipped > 0);
    }

    #[test]
    fn telling_words_are_found_wherever_they_stand_and_however_they_are_written() {
        let naive = |text: &str| {
            let lower = text.to_ascii_lowercase();
            let has = |shape: &SecretShape| shape.words.iter().any(|word| lower.contains(word));
            SHAPES.iter().enumerate().filter(|(_, shape)| has(shape)).fold(0, |all, (number, _)| all | 1_u128 << number)
        };
        let words = SHAPES.iter().flat_map(|shape| shape.words);
        for word in words {
            let mixed: String = word
                .chars()
                .enumerate()
                .map(|(place, letter)| if place % 2 == 0 { letter.to_ascii_uppercase() } else { letter })
                .collect();
            for text in [
                (*word).to_owned(),
                word.to_uppercase(),
                mixed.clone(),
                format!("é{word}"),
                format!("{word}é"),
                format!("x{word}x{mixed}"),
                word.chars().skip(1).collect(),
                word.chars().take(word.len() - 1).collect(),
                format!("{}{word}", &word[..1]),
            ] {
                assert_eq!(possible(&text), naive(&text), "{text}");
            }
        }
        for text in ["", "a", "é", "ls -la src", "\u{0}\u{7f}"] {
            assert_eq!(possible(text), naive(text), "{text:?}");
        }
    }
}
