//! `taut netd`: the process with the privileges of AF_XDP, for participants without any.
//!
//! What is allowed and done is `taut-netd`'s; here are the file, the words and the end, and that privileges are given up
//! before there is a second thread.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use taut_netd::{Policy, Server};

use crate::failure::{End, Failure};
use crate::{output, stop};

/// How long the loop waits before it looks whether it is to end: what nobody notices after Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// What it goes by.
#[derive(Args)]
pub struct NetdArguments {
    /// The file that says who may have which queues, for which domains
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Where participants connect; they find it by themselves if it is this one
    #[arg(long, value_name = "PATH", default_value = taut_netd::SOCKET)]
    socket: PathBuf,
}

/// Runs the command.
pub fn run(options: &NetdArguments) -> Result<End, Failure> {
    let name = options.policy.display().to_string();
    let text = std::fs::read_to_string(&options.policy).map_err(|error| {
        Failure::Wrong(format!("{name} cannot be read: {error}; correct its name or its rights"))
    })?;
    let policy = Policy::parse(&text, &name).map_err(Failure::Wrong)?;
    let rules = policy.rules();
    let mut server = Server::open(policy, &options.socket).map_err(Failure::Wrong)?;
    taut_netd::keep_least_privileges().map_err(Failure::System)?;
    stop::install()?;
    output::line(&format!("netd listens at {}; rules: {rules}", options.socket.display()))?;
    while !stop::requested() {
        server.turn(LOOK).map_err(Failure::System)?;
    }
    let counts = server.counts();
    output::line(&format!(
        "{} connected, {} granted, {} refused, {} dropped",
        counts.connected,
        counts.granted,
        counts.refused,
        counts.hostile + counts.stalled
    ))?;
    Ok(End::Done)
}
