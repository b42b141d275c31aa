//! Has the linker put the functions that run together; see `docs/adr/0036-what-runs-lies-together.md`. The
//! build script of programs.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=../../layout");
    // Other linkers than LLD and GNU ld do not read such a script, and without these names it names nothing.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !flags.contains("symbol-mangling-version=v0") || flags.contains("mold") || flags.contains("gold") {
        return;
    }
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../layout/functions.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", functions.display());
    }
}
