//! Has the linker put the functions that run together; see `docs/adr/0036-what-runs-lies-together.md`. The
//! build script of programs.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=../../layout");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../layout/functions.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", functions.display());
    }
}
