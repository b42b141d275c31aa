//! Every target plays its seeds, and what was found once.
#![forbid(unsafe_code)]

use std::path::Path;

use taut_fuzz::TARGETS;

#[test]
fn seeds_are_played() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().for_each(|seed| (target.play)(seed));
        (target.play)(&[]);
    }
}

/// What was found stays a test: a file of `finds/TARGET/` for each.
#[test]
fn what_was_found_is_no_more() {
    let finds = Path::new(env!("CARGO_MANIFEST_DIR")).join("finds");
    // Without one there is no such directory.
    for directory in std::fs::read_dir(&finds).into_iter().flatten() {
        let directory = directory.expect("it can be read").path();
        let name = directory.file_name().and_then(|name| name.to_str()).expect("a target's name");
        let target = taut_fuzz::target(name).unwrap_or_else(|| panic!("{name} is no target"));
        for find in std::fs::read_dir(&directory).expect("it can be read") {
            let path = find.expect("it can be read").path();
            println!("{}", path.display());
            (target.play)(&std::fs::read(&path).expect("it can be read"));
        }
    }
}
