//! All checks in a row, and what they print.

use std::fs;
use std::path::Path;

use crate::layers::{self, Layers};
use crate::purity::{self, Impurity};
use crate::report::{self, Finding, Severity};
use crate::workspace::{Member, Workspace, read_toml};
use crate::{dependencies, lines, markers, sizes, steps, unsafe_code};

/// Runs all checks; true if none found an error.
pub fn run(root: &Path) -> Result<bool, String> {
    let workspace = Workspace::load(root)?;
    let layers = Layers::parse(&read_toml(&root.join(layers::FILE))?)?;
    let read = |file: &str| fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"));

    let mut findings = layers.check(&workspace);
    findings.extend(dependencies::check(&workspace, &read(dependencies::FILE)?));
    findings.extend(steps::check(&workspace, &read(steps::FILE)?));
    for member in &workspace.members {
        findings.extend(check_member(member, &layers));
    }
    println!("{}", purity_table(&workspace, &layers));
    println!("{}", lines::table(&workspace));
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    println!("tidy: {errors} errors, {} warnings", findings.len() - errors);
    Ok(errors == 0)
}

/// The table of lines alone.
pub fn print_lines(root: &Path) -> Result<(), String> {
    print!("{}", lines::table(&Workspace::load(root)?));
    Ok(())
}

fn check_member(member: &Member, layers: &Layers) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &member.sources {
        findings.extend(sizes::check(source));
        findings.extend(markers::check(source));
        findings.extend(unsafe_code::check(source, layers.allows_unsafe(&member.name)));
        if !layers.is_pure(&member.name) {
            continue;
        }
        for found in purity::uses(source).into_iter().filter(|found| !layers.allows(&member.name, found.what))
        {
            let message = format!("{}: {} is not for this floor", found.word, found.what.name());
            findings.push(Finding::error(&source.path, found.line, message));
        }
    }
    findings
}

/// Counts per crate; what layers.toml allows stands in parentheses.
fn purity_table(workspace: &Workspace, layers: &Layers) -> String {
    let names = Impurity::ALL.iter().map(|what| what.name().to_string());
    let mut rows =
        vec![["purity".to_string(), "floor".to_string()].into_iter().chain(names).collect::<Vec<_>>()];
    for member in workspace.members.iter().filter(|member| layers.is_pure(&member.name)) {
        let uses: Vec<Impurity> =
            member.sources.iter().flat_map(purity::uses).map(|found| found.what).collect();
        let mut row = vec![member.name.clone(), layers.floor(&member.name).unwrap_or_default().to_string()];
        row.extend(Impurity::ALL.iter().map(|what| {
            let count = uses.iter().filter(|used| *used == what).count();
            if layers.allows(&member.name, *what) { format!("({count})") } else { count.to_string() }
        }));
        rows.push(row);
    }
    report::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn member(name: &str, text: &str) -> Member {
        let sources = vec![Source::parse(Path::new("a.rs"), text).unwrap()];
        Member {
            name: name.to_string(),
            directory: name.into(),
            dependencies: Vec::new(),
            sources,
            feature_tests: Vec::new(),
        }
    }

    #[test]
    fn the_whole_of_a_crate_is_checked() {
        let layers = "[floors]\nlow = 0\nport-x = 3\nhigh = 4\n[only]\n[beside]\n[purity]\nbelow = 4\n\
                      [purity.allow]\n'port-*' = ['socket']\n[unsafe]\ncrates = []";
        let layers = Layers::parse(&layers.parse().unwrap()).unwrap();
        let text = "//! A.\nuse std::net::UdpSocket;\nstatic L: Mutex<()> = Mutex::new(());\n";
        let lines = |name| -> Vec<usize> {
            check_member(&member(name, text), &layers).iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("low"), [2, 3, 3]);
        assert_eq!(lines("port-x"), [3, 3], "a port may have sockets but no locks");
        assert_eq!(lines("high"), [0; 0], "the executor may");
        assert_eq!(check_member(&member("high", "//! A.\nfn a() { unsafe { dbg!(1) } }"), &layers).len(), 2);
        let workspace = Workspace { members: vec![member("port-x", text)], shared_dependencies: Vec::new() };
        let table = purity_table(&workspace, &layers);
        assert!(
            table.lines().any(|l| l.split_whitespace().eq(["port-x", "3", "0", "0", "2", "(1)", "0", "0"])),
            "{table}"
        );
    }
}
