//! What `--fix` adds to what the kernel has, and `--undo` takes away: a route, a rule of a firewall.
//!
//! Each bears a sign of `taut doctor`: whatever a record says, nothing without that sign is taken away.

use serde::{Deserialize, Serialize};

use super::firewall::Rule;
use super::route::Route;

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addition {
    Route(Route),
    Rule(Rule),
}

impl Addition {
    /// Where it belongs, for people.
    pub fn place(&self) -> String {
        match self {
            Addition::Route(route) => format!("routes by {}", route.interface),
            Addition::Rule(rule) => format!("rules of {}", rule.chain()),
        }
    }

    /// What it says, for people.
    pub fn says(&self) -> String {
        match self {
            Addition::Route(_) => Route::destination(),
            Addition::Rule(rule) => rule.says(),
        }
    }

    /// Adds it, if it is not there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn add(&self) -> Result<(), String> {
        match self {
            Addition::Route(route) => route.add(),
            Addition::Rule(rule) => rule.add(),
        }
    }

    /// Takes it away. Returns whether it was there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn remove(&self) -> Result<bool, String> {
        match self {
            Addition::Route(route) => route.remove(),
            Addition::Rule(rule) => rule.remove(),
        }
    }
}
