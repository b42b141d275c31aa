//! The program in front of the kernel's stack: what is meant for this process goes to its AF_XDP socket,
//! all else passes. Assembled here, loaded by bpf(2), attached by a link that goes with the process.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::frame::Framing;

// From linux/bpf.h and linux/if_link.h: the kernel's interface, which does not change.
const MAP_CREATE: i64 = 0;
const MAP_UPDATE_ELEM: i64 = 2;
const PROG_LOAD: i64 = 5;
const LINK_CREATE: i64 = 28;
const MAP_TYPE_XSKMAP: u64 = 17;
const PROG_TYPE_XDP: u64 = 6;
const ATTACH_XDP: u64 = 37;
const NATIVE: u64 = 1 << 2;
const HAS_FRAGS: u64 = 1 << 5;
const PASS: i32 = 2;
const REDIRECT_MAP: i32 = 51;

// Operations of instructions, see linux/bpf_common.h: class, size or source, mode or operation.
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const ADD_NUMBER: u8 = 0x07;
const JUMP_ABOVE: u8 = 0x2d;
const JUMP_NOT_NUMBER: u8 = 0x55;
const LOAD_NUMBER: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// One instruction, as the kernel reads it.
const fn op(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    code as u64
        | (to as u64) << 8
        | (from as u64) << 12
        | (offset as u16 as u64) << 16
        | (number as u32 as u64) << 32
}

/// Redirects frames of this framing to this port.
fn assemble(framing: Framing, port: u16, map: RawFd) -> Vec<u64> {
    let (data, data_end, field) = (2, 3, 5);
    // r1 is the context: the beginning and the end of the frame stand first, the queue at 16.
    let mut code = vec![
        op(LOAD_WORD, data, 1, 0, 0),
        op(LOAD_WORD, data_end, 1, 4, 0),
        op(MOVE, 4, data, 0, 0),
        op(ADD_NUMBER, 4, 0, 0, framing.header() as i32),
    ];
    let mut jumps = vec![code.len()];
    code.push(op(JUMP_ABOVE, 4, data_end, 0, 0));
    for (place, bytes) in framing.marks(port) {
        let (load, value) = match bytes {
            [byte, None] => (LOAD_BYTE, i32::from(byte.unwrap_or_default())),
            [first, second] => {
                let half = [first.unwrap_or_default(), second.unwrap_or_default()];
                (LOAD_HALF, i32::from(u16::from_ne_bytes(half)))
            }
        };
        code.push(op(load, field, data, place as i16, 0));
        jumps.push(code.len());
        code.push(op(JUMP_NOT_NUMBER, field, 0, 0, value));
    }
    code.extend([
        op(LOAD_WORD, 2, 1, 16, 0),
        // A number of 64 bits, whose source says that it is the descriptor of a map.
        op(LOAD_NUMBER, 1, 1, 0, map),
        0,
        op(MOVE_NUMBER, 3, 0, 0, PASS),
        op(CALL, 0, 0, 0, REDIRECT_MAP),
        op(EXIT, 0, 0, 0, 0),
    ]);
    let pass = code.len();
    code.extend([op(MOVE_NUMBER, 0, 0, 0, PASS), op(EXIT, 0, 0, 0, 0)]);
    for jump in jumps {
        code[jump] |= ((pass - jump - 1) as u64) << 16;
    }
    code
}

/// The attributes of bpf(2): as many bytes as any command used here reads.
type Attributes = [u64; 16];

/// # Safety
///
/// Addresses in `attributes` are valid for what the command reads through them.
unsafe fn bpf(command: i64, attributes: &Attributes) -> Result<RawFd> {
    // SAFETY: the attributes are alive and as long as is said; their addresses are the caller's promise.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of::<Attributes>()) };
    if done < 0 { Err(Error::last_os_error()) } else { Ok(done as RawFd) }
}

/// The program on an interface, until this is dropped or the process ends.
pub struct Program {
    map: OwnedFd,
    link: Option<OwnedFd>,
    framing: Framing,
    port: u16,
}

impl Program {
    /// With an empty map: not on any interface yet.
    pub fn new(framing: Framing, port: u16) -> Result<Program> {
        let mut attributes = [0; 16];
        // Type and size of keys; size of values and number of entries: one queue.
        attributes[..2].copy_from_slice(&[MAP_TYPE_XSKMAP | 4 << 32, 4 | 1 << 32]);
        // SAFETY: no addresses.
        let map = unsafe { bpf(MAP_CREATE, &attributes) }?;
        // SAFETY: a descriptor that was just made for us and that nobody else closes.
        let map = unsafe { OwnedFd::from_raw_fd(map) };
        Ok(Program { map, link: None, framing, port })
    }

    /// Sends the frames of queue 0 to this socket from now on.
    pub fn attach(&mut self, socket: &OwnedFd, interface: u32) -> Result<()> {
        let (queue, value) = (0_u32, socket.as_raw_fd() as u32);
        let mut attributes = [0; 16];
        attributes[0] = self.map.as_raw_fd() as u64;
        attributes[1] = &raw const queue as u64;
        attributes[2] = &raw const value as u64;
        // SAFETY: key and value are four bytes each, as the map was made, and alive.
        unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }?;

        let code = assemble(self.framing, self.port, self.map.as_raw_fd());
        let license = c"Dual Apache-2.0/MIT";
        let mut attributes = [0; 16];
        attributes[0] = PROG_TYPE_XDP | (code.len() as u64) << 32;
        attributes[1] = code.as_ptr() as u64;
        attributes[2] = license.as_ptr() as u64;
        // The flags are the second half of the word behind the log: a native program may have any MTU.
        attributes[5] = HAS_FRAGS << 32;
        // The attach type is the second half of the word behind the name and the interface.
        attributes[8] = ATTACH_XDP << 32;
        // SAFETY: so many instructions and a string with its end, both alive.
        let program = unsafe { bpf(PROG_LOAD, &attributes) }?;
        // SAFETY: as for the map. The link holds the program; our descriptor of it is closed.
        let program = unsafe { OwnedFd::from_raw_fd(program) };

        let mut attributes = [0; 16];
        attributes[0] = program.as_raw_fd() as u64 | u64::from(interface) << 32;
        attributes[1] = ATTACH_XDP | NATIVE << 32;
        // SAFETY: no addresses.
        let link = unsafe { bpf(LINK_CREATE, &attributes) }?;
        // SAFETY: as for the map.
        self.link = Some(unsafe { OwnedFd::from_raw_fd(link) });
        Ok(())
    }
}
