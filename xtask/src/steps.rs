//! Tests that only a feature brings are run by a step of `scripts/test.sh`: `cargo test` says nothing of those that it
//! leaves out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::report::Finding;
use crate::source::Source;
use crate::workspace::{Member, Workspace};

/// Where the steps are.
pub const FILE: &str = "scripts/test.sh";

/// A target with tests that are not there without features.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FeatureTests {
    /// The file that says so.
    pub path: PathBuf,
    /// The name of the target in `tests/`; `None`: unit tests.
    pub target: Option<String>,
    /// All that are needed.
    pub features: Vec<String>,
}

/// Compares manifests and sources with the text of the script.
pub fn check(workspace: &Workspace, script: &str) -> Vec<Finding> {
    let runs: Vec<Run> = script.lines().flat_map(runs).collect();
    let mut findings = Vec::new();
    for member in &workspace.members {
        let of_sources = member.sources.iter().filter_map(|source| of_source(member, source));
        let all: BTreeSet<FeatureTests> = member.feature_tests.iter().cloned().chain(of_sources).collect();
        for tests in all {
            if !runs.iter().any(|run| run.runs(&member.name, &tests)) {
                let target = tests.target.as_ref().map_or("--lib".into(), |name| format!("--test {name}"));
                let features = tests.features.join(",");
                let message = format!(
                    "no step of {FILE} runs `cargo test -p {} --features {features} {target}`: add it to one",
                    member.name
                );
                findings.push(Finding::error(&tests.path, 0, message));
            }
        }
    }
    findings
}

/// What of a file is there with a feature only.
fn of_source(member: &Member, source: &Source) -> Option<FeatureTests> {
    let path = source.path.strip_prefix(&member.directory).ok()?;
    let mut parts = path.components().map(|part| part.as_os_str());
    let target = match parts.next()?.to_str()? {
        "tests" => Some(Path::new(parts.next()?).file_stem()?.to_string_lossy().into_owned()),
        "src" => None,
        _ => return None,
    };
    let needs = (0..source.tokens.len()).filter_map(|index| gate(source, index));
    let is_tested = |(_, end): &(String, usize)| match target {
        Some(_) => true,
        None => module(source, *end).is_some_and(|module| {
            let is_its =
                |other: &&Source| other.path.with_extension("") == module || other.path.starts_with(&module);
            member.sources.iter().filter(is_its).any(|other| !other.test_lines().is_empty())
        }),
    };
    let features: BTreeSet<String> = needs.filter(is_tested).map(|(feature, _)| feature).collect();
    let features: Vec<String> = features.into_iter().collect();
    (!features.is_empty()).then(|| FeatureTests { path: source.path.clone(), target, features })
}

/// The feature of a `#[cfg(feature = "…")]` that begins there, and the token behind it.
fn gate(source: &Source, index: usize) -> Option<(String, usize)> {
    const WORDS: [&str; 6] = ["#", "[", "cfg", "(", "feature", "="];
    let value = index + WORDS.len();
    (source.reads(index, &WORDS) && source.reads(value + 1, &[")", "]"]))
        .then(|| (source.text(value).trim_matches('"').to_string(), value + 3))
}

/// Where the module is that is declared there, its file without an extension.
fn module(source: &Source, index: usize) -> Option<PathBuf> {
    let at = (index..index + 5).find(|at| source.text(*at) == "mod")?;
    (source.text(at + 2) == ";").then(|| source.modules().join(source.text(at + 1)))
}

/// One `cargo test` of a step.
#[derive(Default)]
struct Run<'a> {
    packages: Vec<&'a str>,
    features: Vec<&'a str>,
    targets: Vec<&'a str>,
    /// All tests of the targets, and all targets unless some are named.
    is_lib: bool,
    is_filtered: bool,
}

/// All of a line.
fn runs(line: &str) -> Vec<Run<'_>> {
    let commands = line.split(['|', ';']).flat_map(|part| part.split("&&"));
    let words = commands.map(|command| command.split_whitespace().collect::<Vec<_>>());
    words.filter_map(|words| run(words.as_slice())).collect()
}

fn run<'a>(words: &[&'a str]) -> Option<Run<'a>> {
    let start = words.windows(2).position(|pair| pair == ["cargo", "test"])? + 2;
    let mut run = Run::default();
    let mut words = words[start..].iter();
    while let Some(word) = words.next() {
        match *word {
            "-p" | "--package" => run.packages.extend(words.next()),
            "--features" => run.features.extend(words.next().into_iter().flat_map(|list| list.split(','))),
            "--test" => run.targets.extend(words.next()),
            "--lib" => run.is_lib = true,
            "--quiet" | "--release" | "--offline" | "--workspace" => {}
            // Another target, a filter, or nothing that is known here: it runs less, as far as can be told.
            _ => run.is_filtered = true,
        }
    }
    Some(run)
}

impl Run<'_> {
    fn runs(&self, package: &str, tests: &FeatureTests) -> bool {
        let is_named = match &tests.target {
            Some(target) => self.targets.contains(&target.as_str()),
            None => self.is_lib,
        };
        let is_whole = self.targets.is_empty() && !self.is_lib;
        let has = |feature: &String| self.features.contains(&feature.as_str());
        !self.is_filtered
            && self.packages.contains(&package)
            && tests.features.iter().all(has)
            && (is_whole || is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Member {
        let parse = |path: &str, text: &str| Source::parse(Path::new(path), text).unwrap();
        let sources = vec![
            parse(
                "c/src/lib.rs",
                "#[cfg(feature = \"fast\")] mod tested; #[cfg(feature = \"slow\")] mod bare;",
            ),
            parse("c/src/tested.rs", "#[cfg(test)] mod tests { #[test] fn a() {} }"),
            parse("c/src/bare.rs", "#[cfg(feature = \"slow\")] fn a() {}"),
            parse("c/tests/some.rs", "#[cfg(feature = \"fast\")] #[test] fn a() {}"),
            parse("c/tests/without.rs", "#[cfg(not(feature = \"fast\"))] #[test] fn a() {}"),
        ];
        let path = PathBuf::from("c/Cargo.toml");
        let features = vec!["fast".to_string()];
        let feature_tests = vec![FeatureTests { path, target: Some("all".into()), features }];
        Member { name: "c".into(), directory: "c".into(), dependencies: Vec::new(), sources, feature_tests }
    }

    /// The targets that no step runs.
    fn missing(script: &str) -> Vec<String> {
        let workspace = Workspace { members: vec![member()], shared_dependencies: Vec::new() };
        let findings = check(&workspace, script).into_iter();
        let word = |finding: Finding| finding.message.split('`').nth(1).map(|command| command.to_string());
        findings.filter_map(word).map(|command| command.rsplit("fast ").next().unwrap().to_string()).collect()
    }

    #[test]
    fn each_target_is_named_with_its_features() {
        let all = ["--test all", "--lib", "--test some"];
        assert_eq!(missing(""), all);
        assert_eq!(missing("a | - | 9 | | cargo test --quiet -p c --features slow,fast"), [""; 0]);
        assert_eq!(
            missing("cargo test -p d && cargo test -p c --features fast --test all"),
            ["--lib", "--test some"]
        );
        assert_eq!(missing("cargo test -p c --features fast --lib --test some"), ["--test all"]);
        for less in [
            "cargo test --workspace",
            "cargo test -p c",
            "cargo test -p d --features fast",
            "cargo test -p c --features slow",
            "cargo test -p c --features fast filter::",
            "cargo test -p c --features fast --bins",
            "cargo clippy -p c --features fast && cargo test -p c",
        ] {
            assert_eq!(missing(less), all, "{less}");
        }
    }
}
