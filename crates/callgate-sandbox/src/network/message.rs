//! DNS messages: just enough of RFC 1035 to read one question and to answer it.

use std::net::IpAddr;

use super::name::{Host, HostName};

/// The longest question that is read. A query needs 12 bytes, a name of at most 255, and a little for EDNS.
pub(super) const LONGEST_QUERY: usize = 1232;

/// The most addresses in an answer: with the longest name they fit into the 512 bytes that every client takes.
const MOST_ADDRESSES: usize = 8;

/// How long clients may keep an answer, in seconds.
const LIFETIME: u32 = 30;

const HEADER: usize = 12;
const CLASS_IN: u16 = 1;
const TYPE_OPT: u16 = 41;

/// A query that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    id: u16,
    recursion_desired: bool,
    /// The bytes of the question, which the answer repeats in the letters of the client.
    question: Vec<u8>,
    /// The host that is asked for; `None` if this cannot be a host.
    pub(super) host: Option<HostName>,
    /// The name as it can be shown.
    pub(super) shown: String,
    pub(super) kind: RecordKind,
    class: u16,
    extended: bool,
}

/// What is asked of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    A,
    Aaaa,
    Pointer,
    Other,
}

/// The outcome of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Done = 0,
    Malformed = 1,
    Failed = 2,
    NotFound = 3,
    NotImplemented = 4,
    Refused = 5,
}

/// Why a message is not a query that can be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread {
    /// Nobody waits for an answer: it is too short for a query, or an answer itself.
    Silent,
    /// The answer says what is wrong.
    Answer(Vec<u8>),
}

impl Query {
    /// Reads a message.
    pub(super) fn read(message: &[u8]) -> Result<Self, Unread> {
        let mut reader = Reader { bytes: message };
        let header = (|| {
            Some([
                reader.number()?,
                reader.number()?,
                reader.number()?,
                reader.number()?,
                reader.number()?,
                reader.number()?,
            ])
        })();
        let Some([id, flags, questions, answers, authorities, additional]) = header else {
            return Err(Unread::Silent);
        };
        if flags & 0x8000 != 0 {
            return Err(Unread::Silent);
        }
        let recursion_desired = flags & 0x0100 != 0;
        let refuse = |code| Unread::Answer(head(id, flags & 0x7800, recursion_desired, code, 0, 0, 0));
        if flags & 0x7800 != 0 {
            return Err(refuse(Code::NotImplemented));
        }
        if questions != 1 || answers != 0 || authorities != 0 || message.len() > LONGEST_QUERY {
            return Err(refuse(Code::Malformed));
        }
        let Some((labels, kind, class)) = (|| Some((reader.labels()?, reader.number()?, reader.number()?)))() else {
            return Err(refuse(Code::Malformed));
        };
        let length = message.len().saturating_sub(HEADER).saturating_sub(reader.bytes.len());
        let question = message.get(HEADER..).and_then(|rest| rest.get(..length)).unwrap_or_default().to_vec();
        let extended = additional > 0 && reader.byte() == Some(0) && reader.number() == Some(TYPE_OPT);
        let kind = match kind {
            1 => RecordKind::A,
            12 => RecordKind::Pointer,
            28 => RecordKind::Aaaa,
            _ => RecordKind::Other,
        };
        Ok(Self { id, recursion_desired, question, host: host(&labels), shown: shown(&labels), kind, class, extended })
    }

    /// Whether the question is about the internet's names, the only ones there are.
    pub(super) fn is_internet(&self) -> bool {
        self.class == CLASS_IN
    }

    /// The answer with `addresses`, as far as they are of the kind that was asked for.
    pub(super) fn answer(&self, code: Code, addresses: &[IpAddr]) -> Vec<u8> {
        let mut records = Vec::new();
        let mut count = 0_u16;
        let wanted = addresses.iter().filter(|address| match self.kind {
            RecordKind::A => address.is_ipv4(),
            RecordKind::Aaaa => address.is_ipv6(),
            RecordKind::Pointer | RecordKind::Other => false,
        });
        for address in wanted.take(MOST_ADDRESSES) {
            let (kind, data) = match address {
                IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
                IpAddr::V6(address) => (28, address.octets().to_vec()),
            };
            // The name is the one of the question, at the end of the header.
            records.extend_from_slice(&[0xc0, 12]);
            records.extend_from_slice(&kind.to_be_bytes());
            records.extend_from_slice(&CLASS_IN.to_be_bytes());
            records.extend_from_slice(&LIFETIME.to_be_bytes());
            records.extend_from_slice(&u16::try_from(data.len()).unwrap_or_default().to_be_bytes());
            records.extend_from_slice(&data);
            count = count.saturating_add(1);
        }
        let mut message = head(self.id, 0, self.recursion_desired, code, 1, count, u16::from(self.extended));
        message.extend_from_slice(&self.question);
        message.extend_from_slice(&records);
        if self.extended {
            message.push(0);
            message.extend_from_slice(&TYPE_OPT.to_be_bytes());
            message.extend_from_slice(&u16::try_from(LONGEST_QUERY).unwrap_or_default().to_be_bytes());
            message.extend_from_slice(&[0; 6]);
        }
        message
    }
}

fn head(
    id: u16,
    opcode: u16,
    recursion_desired: bool,
    code: Code,
    questions: u16,
    answers: u16,
    extra: u16,
) -> Vec<u8> {
    let flags = 0x8080 | opcode | (u16::from(recursion_desired) << 8) | code as u16;
    [id, flags, questions, answers, 0, extra].iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn host(labels: &[&[u8]]) -> Option<HostName> {
    // A label can hold any byte, also a dot, which is not one of the name's.
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !labels.iter().all(|label| label.iter().all(plain)) {
        return None;
    }
    match Host::new(&shown(labels)) {
        Ok(Host::Name(name)) => Some(name),
        Ok(Host::Address(_)) | Err(_) => None,
    }
}

fn shown(labels: &[&[u8]]) -> String {
    let text = |label: &&[u8]| -> String {
        label
            .iter()
            .map(|byte| if byte.is_ascii_graphic() { char::from(byte.to_ascii_lowercase()) } else { '?' })
            .collect()
    };
    if labels.is_empty() { ".".to_owned() } else { labels.iter().map(text).collect::<Vec<_>>().join(".") }
}

struct Reader<'message> {
    bytes: &'message [u8],
}

impl<'message> Reader<'message> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// The labels of a name. A question has nothing in front that a pointer could lead to, so there are none.
    fn labels(&mut self) -> Option<Vec<&'message [u8]>> {
        let mut labels = Vec::new();
        let mut total = 0_usize;
        loop {
            let length = usize::from(self.byte()?);
            if length == 0 {
                return Some(labels);
            }
            total = total.checked_add(length)?.checked_add(1)?;
            if length > 63 || total > 254 {
                return None;
            }
            let (label, rest) = self.bytes.split_at_checked(length)?;
            self.bytes = rest;
            labels.push(label);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A query as clients send it.
    pub(in crate::network) fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend_from_slice(label.as_bytes());
        }
        message.push(0);
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        message
    }

    /// The code and the number of answers of a message.
    pub(in crate::network) fn outcome(message: &[u8]) -> (u8, u8) {
        (message[3] & 15, message[7])
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let message = query("Registry.Example.COM", 1);
        let read = Query::read(&message).unwrap();
        assert_eq!(read.host.as_ref().map(HostName::as_str), Some("registry.example.com"));
        let addresses = ["9.9.9.9".parse().unwrap(), "2606:4700::1".parse().unwrap()];
        let answer = read.answer(Code::Done, &addresses);
        let mut expected = message.clone();
        expected[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1]);
        expected.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 9, 9, 9, 9]);
        assert_eq!(answer, expected);
    }

    #[test]
    fn extensions_are_answered_with_one() {
        let mut message = query("a.example", 28);
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        let answer = Query::read(&message).unwrap().answer(Code::Done, &["::5".parse().unwrap()]);
        assert_eq!(answer[11], 1);
        assert_eq!(answer[answer.len() - 11..], [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_longest_answer_fits_everywhere() {
        let label = "a".repeat(61);
        let mut message = query(&[label.as_str(); 4].join("."), 28);
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        let query = Query::read(&message).unwrap();
        assert!(query.host.is_some());
        assert!(query.answer(Code::Done, &["2606:4700::1".parse().unwrap(); 20]).len() <= 512);
    }

    #[test]
    fn what_is_no_question() {
        let code = |message: &[u8]| match Query::read(message) {
            Err(Unread::Answer(answer)) => Some(outcome(&answer).0),
            Err(Unread::Silent) => None,
            Ok(query) => panic!("{query:?}"),
        };
        let good = query("a.example", 1);
        let with = |at: usize, byte: u8| {
            let mut message = good.clone();
            message[at] = byte;
            message
        };
        assert_eq!(code(&good[..11]), None);
        assert_eq!(code(&with(2, 0x81)), None, "an answer");
        assert_eq!(code(&with(2, 0x29)), Some(4), "an update");
        assert_eq!(code(&with(5, 2)), Some(1), "two questions");
        assert_eq!(code(&with(7, 1)), Some(1), "an answer in a question");
        assert_eq!(code(&with(12, 0xc0)), Some(1), "a pointer");
        assert_eq!(code(&with(12, 60)), Some(1), "a label that ends behind the message");
        assert_eq!(code(&good[..good.len() - 1]), Some(1));
        assert_eq!(code(&[&good[..], &[0; LONGEST_QUERY]].concat()), Some(1));
    }

    #[test]
    fn labels_are_not_text() {
        let mut message = query("axevil.example", 1);
        let at = message.iter().position(|byte| *byte == b'x').unwrap();
        for byte in [b'.', 0, b' ', b'/', 0xfc] {
            message[at] = byte;
            let query = Query::read(&message).unwrap();
            assert_eq!(query.host, None, "{byte}");
            assert!(query.shown.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        assert_eq!(Query::read(&query("0x7f.1", 1)).unwrap().host, None);
        assert_eq!(Query::read(&query("", 2)).unwrap().shown, ".");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(query) = Query::read(&bytes) {
                prop_assert!(query.answer(Code::Refused, &[]).len() <= bytes.len() + 11);
            }
        }

        #[test]
        fn nearly_good_messages_are_read(at in 0_usize..40, byte: u8, cut in 0_usize..40, tail in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut message = query("registry.example.com", 28);
            if let Some(place) = message.get_mut(at) {
                *place = byte;
            }
            message.truncate(message.len().saturating_sub(cut.saturating_sub(20)));
            message.extend_from_slice(&tail);
            if let Ok(query) = Query::read(&message) {
                let answer = query.answer(Code::Done, &["2606:4700::1".parse().unwrap(); 20]);
                prop_assert!(answer.len() <= 512);
                if let Some(host) = query.host {
                    prop_assert_eq!(host.as_str(), query.shown.as_str());
                }
            }
        }
    }
}
