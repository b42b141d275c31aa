//! `taut top --listen`: whoever asks by HTTP gets what [`super::prometheus`] tells.
//!
//! One connection at a time, each bounded in bytes and in time; those that come meanwhile wait in the system's queue.
//! Nothing of HTTP but `GET` and `HEAD` of `/metrics`, which Prometheus and who looks after it ask for (RFC 9112).

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::failure::Failure;

/// How long a wait for a connection goes on before the caller looks at other things. Ctrl-C is answered so much later.
const LOOK: Duration = Duration::from_millis(100);
/// What one who asks has for asking, and for taking the answer. Lower and a slow network is cut off, higher and one that
/// does neither keeps others out for longer.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest request: Prometheus sends some 300 bytes. What is longer is refused, and not kept.
const MAX_REQUEST: usize = 8 << 10;

/// Where it listens.
pub struct Scrapes {
    listener: TcpListener,
    /// As the user asks for it.
    pub url: String,
}

impl Scrapes {
    pub fn new(at: SocketAddr) -> Result<Scrapes, Failure> {
        let refused = |error| {
            Failure::Wrong(format!(
                "--listen {at}: {error}; choose an address of this machine and a free port"
            ))
        };
        let listener = TcpListener::bind(at).map_err(refused)?;
        SockRef::from(&listener).set_read_timeout(Some(LOOK)).map_err(refused)?;
        let url = format!("http://{}/metrics", listener.local_addr().map_err(refused)?);
        Ok(Scrapes { listener, url })
    }

    /// Answers the next who asks, if there is one within [`LOOK`].
    pub fn serve(&self, metrics: impl FnOnce() -> Result<String, Failure>) -> Result<(), Failure> {
        let mut stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => match error.kind() {
                // None in that time, or it has gone before it was accepted.
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {
                    return Ok(());
                }
                _ => return Err(Failure::System(format!("accept at {}: {error}", self.url))),
            },
        };
        let end = Instant::now() + LONGEST;
        let Some(request) = request(&mut stream, end) else { return Ok(()) };
        let answer = match request.split(' ').collect::<Vec<_>>()[..] {
            [method @ ("GET" | "HEAD"), target, _] => {
                let answer = match path(target) {
                    "/metrics" => answer("200 OK", "", &metrics()?),
                    _ => answer("404 Not Found", "", "there is /metrics only\n"),
                };
                if method == "GET" { answer } else { head(answer) }
            }
            [""] => answer("431 Request Header Fields Too Large", "", "8 KiB at most\n"),
            _ => answer("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET is all that there is\n"),
        };
        // Who does not take it is no concern of ours.
        let _ = send(&mut stream, answer.as_bytes(), Instant::now() + LONGEST);
        Ok(())
    }
}

/// The first line of a request that has come whole, empty if it is too long; `None` if it does not come in time.
fn request(stream: &mut TcpStream, end: Instant) -> Option<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 10];
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left(end)?)).ok()?;
        let len = stream.read(&mut part).ok().filter(|len| *len > 0)?;
        bytes.extend_from_slice(&part[..len]);
        if bytes.len() > MAX_REQUEST {
            return Some(String::new());
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    text.lines().next().map(str::to_owned)
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

fn send(stream: &mut TcpStream, mut bytes: &[u8], end: Instant) -> Option<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?)).ok()?;
        let len = stream.write(bytes).ok().filter(|len| *len > 0)?;
        bytes = &bytes[len..];
    }
    Some(())
}

fn left(end: Instant) -> Option<Duration> {
    Some(end.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}
