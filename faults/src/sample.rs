//! What the processes send each other: numbered, and with a check of all of it.

use crc::{CRC_32_ISCSI, Crc, Table};
use taut::DdsType;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// One sample. The payload repeats its number, so that two of them differ everywhere.
#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
pub struct Numbered {
    pub writer: u64,
    pub number: u64,
    pub crc: u32,
    pub payload: Vec<u8>,
}

impl Numbered {
    pub fn new(writer: u64, number: u64, len: usize) -> Numbered {
        let payload = vec![number as u8; len];
        let crc = check(writer, number, &payload);
        Numbered { writer, number, crc, payload }
    }

    pub fn is_right(&self) -> bool {
        self.crc == check(self.writer, self.number, &self.payload)
    }
}

fn check(writer: u64, number: u64, payload: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    digest.update(&writer.to_le_bytes());
    digest.update(&number.to_le_bytes());
    digest.update(payload);
    digest.finalize()
}
