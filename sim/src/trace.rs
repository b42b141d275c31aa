//! A datagram in one line, for `--trace`.

use std::fmt::Write;

use taut_wire::{Submessage, Submessages};

/// The submessages behind a message's header.
pub fn line(rest: &[u8]) -> String {
    let mut out = String::new();
    for submessage in Submessages::new(rest) {
        if !out.is_empty() {
            out.push_str(" | ");
        }
        match submessage {
            Ok(submessage) => describe(&mut out, &submessage),
            Err(reason) => {
                let _ = write!(out, "malformed: {reason}");
            }
        }
    }
    out
}

fn describe(out: &mut String, submessage: &Submessage<'_>) {
    let _ = match submessage {
        Submessage::Data(d) => write!(out, "DATA {}>{} {}", d.writer_id, d.reader_id, d.writer_sn.0),
        Submessage::DataFrag(d) => write!(
            out,
            "DATA_FRAG {}>{} {}.{}",
            d.writer_id, d.reader_id, d.writer_sn.0, d.fragment_starting_num
        ),
        Submessage::Heartbeat(h) => write!(
            out,
            "HEARTBEAT {}>{} {}..{} count {}{}{}",
            h.writer_id,
            h.reader_id,
            h.first_sn.0,
            h.last_sn.0,
            h.count,
            if h.final_flag { " final" } else { "" },
            if h.liveliness_flag { " alive" } else { "" },
        ),
        Submessage::AckNack(a) => {
            let missing = a.reader_sn_state.iter().count();
            let (base, last) = if a.final_flag {
                (a.reader_sn_state.base().0, " final")
            } else {
                (a.reader_sn_state.base().0, "")
            };
            write!(
                out,
                "ACKNACK {}>{} {base} misses {missing} count {}{last}",
                a.reader_id, a.writer_id, a.count
            )
        }
        Submessage::NackFrag(n) => write!(
            out,
            "NACK_FRAG {}>{} {} from {} count {}",
            n.reader_id,
            n.writer_id,
            n.writer_sn.0,
            n.fragment_number_state.base(),
            n.count
        ),
        Submessage::Gap(g) => write!(
            out,
            "GAP {}>{} {}..{} and {}",
            g.writer_id,
            g.reader_id,
            g.gap_start.0,
            g.gap_list.base().0,
            g.gap_list.iter().count()
        ),
        Submessage::InfoDestination(prefix) => write!(out, "DST {prefix}"),
        Submessage::InfoTimestamp(_) => write!(out, "TS"),
        Submessage::InfoSource(info) => write!(out, "SRC {}", info.prefix),
        other => write!(out, "{}", format!("{other:?}").split([' ', '(']).next().unwrap_or_default()),
    };
}
