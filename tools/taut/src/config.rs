//! `taut config`: the settings in force, in the form of a configuration file.

use serde_json::json;

use crate::args::Network;
use crate::failure::{End, Failure};
use crate::output;

/// Runs the command.
pub fn run(network: &Network, json: bool) -> Result<End, Failure> {
    for setting in network.config()?.settings() {
        if json {
            output::json(&json!({
                "name": setting.name,
                "variable": setting.variable,
                "value": setting.value,
                "allowed": setting.allowed,
                "meaning": setting.meaning,
            }))?;
        } else {
            output::line(&format!("{} = {}", setting.name, setting.value))?;
        }
    }
    Ok(End::Done)
}
