//! The interface of a VLAN that is not opened on its parent: by netd, or as somebody has that.
//!
//! Owns the sentences, and the look at the parent before netd is asked.

use taut_xdp::{Mode, Vlan, program_of};

use crate::port::Ground;

/// Why netd does not use the parent of a VLAN: who has a queue of that sends into all of its networks, and a rule names
/// one.
pub(crate) fn behind_driver(ground: &Ground) -> Option<String> {
    let name = &ground.interface.name;
    ground.vlan.as_ref().map(|_| {
        format!(
            "`taut netd` opens {name} behind its driver only, as it is of a VLAN: choose generic mode, or set xdp_netd to \
             \"off\" and be root"
        )
    })
}

/// Looks whether nobody takes on the parent of a VLAN what would come behind the driver, as a program without IP may.
///
/// *Errors*: one sentence: somebody has it.
pub(crate) fn leaves_parent(ground: &Ground) -> Result<(), String> {
    match &ground.vlan {
        Some(Ok(Vlan { parent, .. })) if ground.mode() == Mode::L2 => {
            let is_taken = program_of(parent.index).map_err(|error| error.to_string())?.is_some();
            if is_taken { Err(taken(&parent.name, &ground.interface.name)) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Another program has the parent. netd is no remedy: it leaves that to those who use it without a tag.
pub(crate) fn taken(parent: &str, interface: &str) -> String {
    format!(
        "another XDP program is attached to {parent}, which has one for itself and all of its VLANs: end its owner (`bpftool \
         net` names it), or choose generic mode if it leaves the frames of {interface}"
    )
}
