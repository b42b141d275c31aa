//! What a participant has for its neighbours: where they find it, how they know its host, the bell that they see.

use std::path::PathBuf;

use taut_base::{GuidPrefix, Result};
use taut_lock::Mutex;
use taut_mem::Region;
use taut_port_shm::{Listener, Memory, Policy, host_id};

use crate::lanes::neighbours::PAGE;

/// The name of the property that announces the identity of the host.
pub(crate) const HOST_PROPERTY: &str = "taut.local";

/// What a participant has for its neighbours.
pub(crate) struct Own {
    pub listener: Mutex<Listener>,
    pub host: String,
    pub host_id: [u8; 16],
    pub bell: Memory,
    pub policy: Policy,
    pub directory: Option<PathBuf>,
}

/// Bytes as a property has them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Own {
    /// Opens the rendezvous of a participant.
    pub fn open(prefix: GuidPrefix, directory: Option<PathBuf>, allowed_gids: Vec<u32>) -> Result<Own> {
        let host_id = host_id()?;
        let bell = Memory::create("bell", PAGE)?;
        bell.commit(0, PAGE)?;
        let listener = Mutex::new(Listener::bind(prefix, directory.as_deref())?);
        let host = hex(&host_id);
        Ok(Own { listener, host, host_id, bell, policy: Policy { allowed_gids }, directory })
    }

    /// What is announced for neighbours to know each other by.
    pub fn property(&self) -> (String, String) {
        (HOST_PROPERTY.to_owned(), self.host.clone())
    }

    /// The bell that neighbours see.
    pub fn bell(&self) -> Region {
        self.bell.region()
    }
}
