//! Which functions run, together in the program: `cargo xtask layout`.
//!
//! Owns `layout/functions.ld`, a script of the linker that puts the functions that ran in Taut's adapter of `taut
//! perf` before all others: first those that run for each sample, then those that ran until there was a participant,
//! then those of its entities without a peer, then those of discovery.
//! The kernel maps a program's code by 64 KiB around what runs, so what never runs costs memory when it
//! lies in between ([ADR 36](../../docs/adr/0036-what-runs-lies-together.md)). The names are found by
//! callgrind; traffic goes through the loopback interface.

mod names;
mod play;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::programs::{build, text_of, valgrind};

const FILE: &str = "layout/functions.ld";
const PACKAGE: &str = "taut-perf-peer-taut";
const SECTION: &str = ".text.runs";
/// What the C library begins a program with would lie behind all that, alone in its pages.
const BEGINNING: &str = "    *crt1.o(.text .text.*)\n    *crtbegin*.o(.text .text.*)\n";
/// So would this, of which every `main` of Rust reads a byte where there are lines for a debugger, among what is read when a
/// panic unwinds.
const SCRIPTS: &str =
    "SECTIONS\n{\n  .debug_gdb_scripts : { *(.debug_gdb_scripts) }\n}\nINSERT BEFORE .rodata;\n";
/// Of the functions that run at least so many must be in the file. More is red after each new function,
/// less lets a good part of what runs lie anywhere.
const COVERED_PERCENT: usize = 90;

/// Finds what runs and stores it.
pub fn write(root: &Path) -> Result<bool, String> {
    let program = build(root, PACKAGE)?;
    let begun = play::begun(&valgrind()?, &program)?;
    let alone = &play::alone(&valgrind()?, &program)? - &begun;
    let mut for_each = BTreeSet::new();
    let mut with_peer = BTreeSet::new();
    for transport in ["udp", "shm"] {
        let ran = play::with_peer(&valgrind()?, &program, transport)?;
        for_each.extend(ran.for_each);
        with_peer.extend(ran.functions);
    }
    let with_peer = &(&with_peer - &begun) - &alone;
    let [begun, alone, with_peer] = [&begun, &alone, &with_peer].map(|group| group - &for_each);
    let path = root.join(FILE);
    fs::write(&path, script(&[&for_each, &begun, &alone, &with_peer]))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!(
        "layout: {FILE} has {} functions that run for each sample, {} more that run until there is a participant, {} more \
         that run alone, {} more with a peer",
        for_each.len(),
        begun.len(),
        alone.len(),
        with_peer.len()
    );
    Ok(true)
}

/// Whether the file names what runs now, and the linker has heeded it.
pub fn check(root: &Path) -> Result<bool, String> {
    let program = build(root, PACKAGE)?;
    let path = root.join(FILE);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let stored: BTreeSet<&str> = text.lines().filter_map(pattern).collect();
    let now = play::alone(&valgrind()?, &program)?;
    let known = now.iter().filter(|name| stored.contains(name.as_str())).count();
    let percent = known * 100 / now.len().max(1);
    let sections = text_of(std::process::Command::new("readelf").arg("-SW").arg(&program))?;
    let is_heeded = sections.contains(SECTION);
    println!("layout: {FILE} names {known} of {} functions that run without a peer", now.len());
    if percent < COVERED_PERCENT {
        println!("layout: that is {percent} %, less than {COVERED_PERCENT} %: run cargo xtask layout");
    }
    if !is_heeded {
        println!(
            "layout: {} has no section {SECTION}: is RUSTFLAGS set, or another linker than LLD and GNU ld in use?",
            program.display()
        );
    }
    Ok(percent >= COVERED_PERCENT && is_heeded)
}

/// The linker's script: groups of functions in their order.
fn script(groups: &[&BTreeSet<String>]) -> String {
    let mut text = format!(
        "/* The functions that run, made by `cargo xtask layout`; see docs/adr/0036-what-runs-lies-together.md. */\n\
         SECTIONS\n{{\n  {SECTION} :\n  {{\n{BEGINNING}"
    );
    for name in groups.iter().copied().flatten() {
        text += &format!("    *(.text*.{name})\n");
    }
    text + "  }\n}\nINSERT BEFORE .text;\n" + SCRIPTS
}

/// The function's pattern in a line of the script.
fn pattern(line: &str) -> Option<&str> {
    line.trim().strip_prefix("*(.text*.")?.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_is_written() {
        let groups = [["b", "a"], ["d", "c"]].map(|names| names.map(String::from).into());
        let text = script(&[&groups[0], &groups[1]]);
        assert_eq!(text.lines().filter_map(pattern).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    }
}
