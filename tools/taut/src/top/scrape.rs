//! `taut top --listen`: whoever asks by HTTP gets what [`super::prometheus`] tells.
//!
//! All connections are looked at in turn and none is waited for, so that one who says nothing holds up nobody. Each is
//! bounded in bytes and in time, and so is their number.
//! Nothing of HTTP but `GET` and `HEAD` of `/metrics`, which Prometheus and who looks after it ask for (RFC 9112).

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::failure::Failure;

/// How long a wait for somebody goes on before the caller looks at other things, in ms. Ctrl-C is answered so much later.
const LOOK_MS: u8 = 100;
/// What one who asks has for asking, and for taking the answer. Lower and a slow network is cut off, higher and one that
/// does neither keeps its place for longer.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest request: Prometheus sends some 300 bytes. What is longer is refused, and not kept.
const MAX_REQUEST: usize = 8 << 10;
/// Connections at a time; when one more comes, the oldest is closed. Lower and those that say nothing push out one whose
/// request is still on its way, higher takes more descriptors of the 1,024 that a process has as a rule.
const CONNECTIONS: usize = 64;

/// Where it listens.
pub struct Scrapes {
    listener: TcpListener,
    /// Oldest first.
    asking: VecDeque<Asking>,
    /// As the user asks for it.
    pub url: String,
}

/// Tells what is asked for.
pub type Metrics<'m> = &'m mut dyn FnMut() -> Result<String, Failure>;

impl Scrapes {
    pub fn new(at: SocketAddr) -> Result<Scrapes, Failure> {
        let refused = |error| {
            Failure::Wrong(format!(
                "--listen {at}: {error}; choose an address of this machine and a free port"
            ))
        };
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let url = format!("http://{}/metrics", listener.local_addr().map_err(refused)?);
        Ok(Scrapes { listener, asking: VecDeque::new(), url })
    }

    /// Answers those who have asked, and takes those who come; waits for one of them for up to [`LOOK_MS`].
    pub fn serve(&mut self, metrics: Metrics<'_>) -> Result<(), Failure> {
        self.wait()?;
        self.answer(metrics)?;
        // Behind the answers: nobody has to go whose request is there.
        self.accept()
    }

    fn answer(&mut self, metrics: Metrics<'_>) -> Result<(), Failure> {
        let now = Instant::now();
        for mut one in std::mem::take(&mut self.asking) {
            if now < one.end && one.go_on(metrics)? {
                self.asking.push_back(one);
            }
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), Failure> {
        let mut awaited = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        awaited.extend(self.asking.iter().map(|one| PollFd::new(one.stream.as_fd(), one.awaits())));
        match poll(&mut awaited, PollTimeout::from(LOOK_MS)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(Failure::System(format!("poll at {}: {error}", self.url))),
        }
    }

    /// Takes those that have come, as many as there is room for.
    fn accept(&mut self) -> Result<(), Failure> {
        for _ in 0..CONNECTIONS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // It has gone before it was accepted.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) =>
                {
                    continue;
                }
                Err(error) => return Err(Failure::System(format!("accept at {}: {error}", self.url))),
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.asking.len() == CONNECTIONS {
                self.asking.pop_front();
            }
            self.asking.push_back(Asking::new(stream));
        }
        Ok(())
    }
}

/// One connection.
struct Asking {
    stream: TcpStream,
    request: Vec<u8>,
    /// What is still to be sent of the answer; empty until all of the request has come.
    answer: Vec<u8>,
    /// Then it is over.
    end: Instant,
}

impl Asking {
    fn new(stream: TcpStream) -> Asking {
        Asking { stream, request: Vec::new(), answer: Vec::new(), end: Instant::now() + LONGEST }
    }

    fn awaits(&self) -> PollFlags {
        if self.answer.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLOUT }
    }

    /// Goes on as far as that takes no wait. `false` if there is no more to do, or the other end has gone: that it does not
    /// take its answer is no concern of ours.
    fn go_on(&mut self, metrics: Metrics<'_>) -> Result<bool, Failure> {
        if self.answer.is_empty() {
            match self.hear() {
                Ok(Some(request)) => self.answer = respond(&request, metrics)?.into_bytes(),
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
            }
            self.end = Instant::now() + LONGEST;
        }
        Ok(self.send().is_ok() && !self.answer.is_empty())
    }

    /// The first line of a request that has come whole, empty if it is too long; `None` if there is more to come.
    fn hear(&mut self) -> io::Result<Option<String>> {
        let mut part = [0; 1 << 10];
        while !self.request.windows(4).any(|window| window == b"\r\n\r\n") {
            let len = match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            self.request.extend_from_slice(&part[..len]);
            if self.request.len() > MAX_REQUEST {
                return Ok(Some(String::new()));
            }
        }
        let text = str::from_utf8(&self.request).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.answer.is_empty() {
            match self.stream.write(&self.answer) {
                Ok(len) => drop(self.answer.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The answer to a request with this first line.
fn respond(request: &str, metrics: Metrics<'_>) -> Result<String, Failure> {
    Ok(match request.split(' ').collect::<Vec<_>>()[..] {
        [method @ ("GET" | "HEAD"), target, _] => {
            let answer = match path(target) {
                "/metrics" => answer("200 OK", "", &metrics()?),
                _ => answer("404 Not Found", "", "there is /metrics only\n"),
            };
            if method == "GET" { answer } else { head(answer) }
        }
        [""] => answer("431 Request Header Fields Too Large", "", "8 KiB at most\n"),
        _ => answer("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET is all that there is\n"),
    })
}

/// What a target asks for, without its parameters: a path, or a URL as a proxy asks. RFC 9112 §3.2.
fn path(target: &str) -> &str {
    let target = target.split('?').next().unwrap_or_default();
    match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            rest.find('/').map_or("/", |path| &rest[path..])
        }
        _ => target,
    }
}

/// `fields` are those of this status, each with its end of line.
fn answer(status: &str, fields: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {len}\r\n\
         {fields}Connection: close\r\n\r\n{body}"
    )
}

/// The answer to HEAD: that to GET, without its body. RFC 9110 §9.3.2.
fn head(mut answer: String) -> String {
    answer.truncate(answer.find("\r\n\r\n").map_or(0, |end| end + 4));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_asked_is_answered_before_others_need_its_place() {
        let mut scrapes = Scrapes::new(([127, 0, 0, 1], 0).into()).unwrap();
        let address = scrapes.listener.local_addr().unwrap();
        let mut serve = || scrapes.serve(&mut || Ok("told".to_owned())).unwrap();
        let connect = || TcpStream::connect(address).unwrap();
        let (mut silent, mut first) = (connect(), connect());
        serve();
        first.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let others: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
        serve();
        let mut answer = String::new();
        first.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("told"), "{answer}");
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "the oldest has gone");
        others[0].set_nonblocking(true).unwrap();
        let waits = (&others[0]).read(&mut [0]).unwrap_err();
        assert_eq!(waits.kind(), ErrorKind::WouldBlock, "those that have come are kept");
    }
}
