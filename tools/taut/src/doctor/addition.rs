//! What `--fix` adds to what the kernel has, and `--undo` takes away: a route, a rule of a firewall, a flag.
//!
//! Routes and rules bear a sign of `taut doctor`: whatever a record says, none without that sign is taken away.

use serde::{Deserialize, Serialize};
use taut_netlink::Errno;

use super::firewall::Rule;
use super::flag::Flag;
use super::route::Route;
use crate::store::is_root;

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addition {
    Route(Route),
    Rule(Rule),
    Flag(Flag),
}

/// What to do where the kernel refuses it.
pub fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM if !is_root() => "root may: use sudo",
        Errno::EPERM => "a container may not: do it on the host",
        _ => "this kernel does not let it be changed",
    }
}

impl Addition {
    /// Where it belongs, for people.
    pub fn place(&self) -> String {
        match self {
            Addition::Route(route) => format!("routes by {}", route.interface),
            Addition::Rule(rule) => format!("rules of {}", rule.chain()),
            Addition::Flag(flag) => format!("flags of {}", flag.interface),
        }
    }

    /// What it says, for people.
    pub fn says(&self) -> String {
        match self {
            Addition::Route(_) => Route::destination(),
            Addition::Rule(rule) => rule.says(),
            Addition::Flag(_) => Flag::NAME.to_owned(),
        }
    }

    /// Adds it, if it is not there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn add(&self) -> Result<(), String> {
        match self {
            Addition::Route(route) => route.add(),
            Addition::Rule(rule) => rule.add(),
            Addition::Flag(flag) => flag.add(),
        }
    }

    /// Takes it away. Returns whether it was there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn remove(&self) -> Result<bool, String> {
        match self {
            Addition::Route(route) => route.remove(),
            Addition::Rule(rule) => rule.remove(),
            Addition::Flag(flag) => flag.remove(),
        }
    }
}
