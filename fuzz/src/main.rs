//! The fuzzer: TAUT_FUZZ names the target, all else is libFuzzer's (`-help=1`).
#![no_main]

use std::sync::LazyLock;

use taut_fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TAUT_FUZZ").unwrap_or_default();
    taut_fuzz::target(&name).unwrap_or_else(|| panic!("TAUT_FUZZ names a target, and `{name}` is none"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.play)(bytes));
