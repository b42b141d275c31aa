//! The participant's side: has netd open an interface, and tells it where it receives.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use taut_xdp::AttachMode;

use super::asking::confused;
use super::{Asking, CROWDED, Connection, Message, Received};
use crate::queue::Queue;

/// How long netd may take to answer. It tries for a queue for a second, and a driver may set its queues up anew before,
/// which takes seconds. Longer holds up who makes a participant when netd has stopped.
const ANSWER: Duration = Duration::from_secs(15);
/// Answers of netd, and signals that may come in one wait, each of which begins it anew.
const SIGNALS: u32 = 100;

/// What a participant has by netd.
pub(crate) struct Client {
    connection: Connection,
    attached: AttachMode,
    why_not_native: String,
}

/// What has been heard of netd.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Heard {
    /// So many requests were refused.
    pub refused: u64,
    /// The last answer to where it is to receive, if there was one: why not.
    pub answer: Option<Result<(), String>>,
    /// It has ended, and its program with it.
    pub is_gone: bool,
}

impl Heard {
    /// Why it has gone: the last that it refused, if that was it.
    pub(crate) fn why_gone(&self) -> Cow<'static, str> {
        match &self.answer {
            Some(Err(why)) => format!("netd has hung up: {why}").into(),
            _ => "netd has ended".into(),
        }
    }
}

impl Client {
    pub(crate) fn new(connection: Connection, attached: AttachMode, why_not_native: String) -> Client {
        Client { connection, attached, why_not_native }
    }

    /// Has netd open the queues, and waits until it has. They receive after [`Client::receive_first`].
    pub(crate) fn take(mut asking: Asking) -> Result<(Client, Vec<Queue>), String> {
        for _ in 0..SIGNALS {
            let in_time = asking.connection().wait(ANSWER);
            if asking.hear()? {
                return asking.finish();
            }
            if !in_time {
                break;
            }
        }
        Err(no_answer_within(ANSWER))
    }

    /// Receives at these addresses and ports from now on, and waits until it is so.
    pub(crate) fn receive_first(&self, ends: &[SocketAddr]) -> Result<(), String> {
        if !self.receive(ends) {
            return Err("netd does not read what it is told: start it again".into());
        }
        answer_within(&self.connection, ANSWER)
    }

    /// The same without a wait: the answer is heard later. Whether netd was told.
    pub(crate) fn receive(&self, ends: &[SocketAddr]) -> bool {
        self.connection.send(&Message::Receive { ends: ends.to_vec() }, &[]).is_ok()
    }

    /// Takes what netd has said.
    pub(crate) fn hear(&self) -> Heard {
        let mut heard = Heard::default();
        loop {
            match self.connection.receive() {
                Received::Empty => return heard,
                Received::Message(Message::Receiving, _) => heard.answer = Some(Ok(())),
                Received::Message(Message::Refused { why }, _) => {
                    heard.refused += 1;
                    heard.answer = Some(Err(why));
                }
                Received::Gone | Received::Message(..) | Received::Crowded(_) | Received::Hostile(..) => {
                    heard.is_gone = true;
                    return heard;
                }
            }
        }
    }

    /// Readable when there is something to hear.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.connection.fd()
    }

    pub(crate) fn attached(&self) -> AttachMode {
        self.attached
    }

    pub(crate) fn why_not_native(&self) -> Option<String> {
        (!self.why_not_native.is_empty()).then(|| self.why_not_native.clone())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.hang_up();
    }
}

/// Waits until netd says that it is so.
fn answer_within(connection: &Connection, at_most: Duration) -> Result<(), String> {
    for _ in 0..SIGNALS {
        let in_time = connection.wait(at_most);
        match connection.receive() {
            Received::Empty if in_time => {}
            Received::Empty => break,
            Received::Message(Message::Receiving, _) => return Ok(()),
            Received::Message(Message::Refused { why }, _) => return Err(why),
            Received::Message(..) => return Err(confused()),
            Received::Gone => return Err("netd has ended meanwhile: start it again".into()),
            Received::Crowded(_) => return Err(CROWDED.into()),
            Received::Hostile(what, _) => return Err(format!("netd says {what}: use one version of Taut")),
        }
    }
    Err(no_answer_within(at_most))
}

fn no_answer_within(at_most: Duration) -> String {
    format!("netd has not answered within {at_most:?}: look at its log")
}
#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn a_netd_that_hangs_is_waited_for_once() {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (connection, at_most) = (Connection::of(own), Duration::from_millis(50));
        let begun = std::time::Instant::now();
        let text = answer_within(&connection, at_most).unwrap_err();
        assert!(text.contains("not answered within 50ms"), "{text}");
        assert!((1..100).contains(&(begun.elapsed().as_millis() / 50)), "{:?}", begun.elapsed());
        drop(other);
        assert!(answer_within(&connection, at_most).unwrap_err().contains("has ended"));
    }
}
