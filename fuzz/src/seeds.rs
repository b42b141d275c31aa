//! Writes the seeds of a target into a directory: `taut-fuzz-seeds TARGET DIRECTORY`; without arguments the names of all targets.
#![forbid(unsafe_code)]

use std::path::Path;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory] = &arguments[..] else {
        taut_fuzz::TARGETS.iter().for_each(|target| println!("{}", target.name));
        return Ok(());
    };
    let target = taut_fuzz::target(name).ok_or_else(|| std::io::Error::other(format!("no target {name}")))?;
    std::fs::create_dir_all(directory)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(Path::new(directory).join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
