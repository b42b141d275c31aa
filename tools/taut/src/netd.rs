//! `taut netd`: the process with the privileges of AF_XDP, for participants without any.
//!
//! What is allowed and done is `taut-netd`'s; here are the file, which SIGHUP has it read again, the words and the end, and
//! that privileges are given up before there is a second thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use clap::Args;
use taut_netd::{Policy, Server};

use crate::failure::{End, Failure};
use crate::{file, output, stop};

/// How long the loop waits before it looks whether it is to end or to read the file again: what nobody notices after Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// What it goes by.
#[derive(Args)]
pub struct NetdArguments {
    /// The file that says who may have which queues, for which domains or without IP
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Where participants connect; they find it by themselves if it is this one
    #[arg(long, value_name = "PATH", default_value = taut_netd::SOCKET)]
    socket: PathBuf,
}

/// Runs the command.
pub fn run(options: &NetdArguments) -> Result<End, Failure> {
    let policy = read(&options.policy).map_err(Failure::Wrong)?;
    let rules = policy.rules();
    warn_of_doubts(&policy);
    // Before anybody can see that it is there.
    let hangup = stop::install_but_hangup()?;
    let mut server = Server::open(policy, &options.socket).map_err(Failure::Wrong)?;
    taut_netd::keep_least_privileges().map_err(Failure::System)?;
    output::line(&format!("netd listens at {}; rules: {rules}", options.socket.display()))?;
    let mut again = Again::default();
    while !stop::requested() {
        server.turn(LOOK).map_err(Failure::System)?;
        again.go_on(&mut server);
        if !again.is_on() && hangup.swap(false, Ordering::SeqCst) {
            again.begin(&options.policy);
        }
    }
    let counts = server.counts();
    output::line(&format!(
        "{} connected, {} granted, {} revoked, {} refused, {} dropped",
        counts.connected,
        counts.granted,
        counts.revoked,
        counts.refused,
        counts.hostile + counts.stalled
    ))?;
    Ok(End::Done)
}

/// Reads the file.
///
/// *Errors*: one sentence with the remedy.
fn read(path: &Path) -> Result<Policy, String> {
    let name = path.display().to_string();
    Policy::parse(&file::text(path)?, &name)
}

/// The file, as it is read again: in a thread of its own, as a file system takes its time, and so does who knows the users
/// by their names.
#[derive(Default)]
struct Again(Option<JoinHandle<Result<Policy, String>>>);

impl Again {
    fn is_on(&self) -> bool {
        self.0.is_some()
    }

    fn begin(&mut self, path: &Path) {
        let path = path.to_owned();
        match Builder::new().name("netd-read".into()).spawn(move || read(&path)) {
            Ok(thread) => self.0 = Some(thread),
            Err(error) => refuse(&format!("no thread to read the rules in: {error}; send SIGHUP again")),
        }
    }

    /// Has the server go by what was read, once it was.
    fn go_on(&mut self, server: &mut Server) {
        let Some(thread) = self.0.take_if(|thread| thread.is_finished()) else { return };
        match thread.join().unwrap_or_else(|_| Err("the thread that reads the rules has ended".into())) {
            Ok(policy) => {
                let line = format!("netd has read its rules again; rules: {}", policy.rules());
                warn_of_doubts(&policy);
                server.set_policy(policy);
                // That nobody reads it is no reason to end what others use.
                let _ = output::line(&line);
            }
            Err(why) => refuse(&why),
        }
    }
}

/// What the rules allow nobody as the machine is now.
fn warn_of_doubts(policy: &Policy) {
    let is_there = |interface: &str| nix::net::if_::if_nametoindex(interface).is_ok();
    policy.doubts(is_there).iter().for_each(|doubt| log::warn!("netd: {doubt}"));
}

/// The rules stay as they are.
fn refuse(why: &str) {
    log::warn!("netd: the rules stay as they are: {why}");
}
