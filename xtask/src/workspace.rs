//! The workspace as its manifests describe it: members, what they depend on, their sources.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::source::Source;
use crate::steps::FeatureTests;

/// Why a crate is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// By the product or its build script.
    Product,
    /// By tests, examples and benchmarks only.
    Tests,
}

/// One entry of a dependency table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// The package's name, whatever it is called locally.
    pub name: String,
    /// What for.
    pub for_what: Use,
}

/// One member.
#[derive(Debug)]
pub struct Member {
    /// The package's name.
    pub name: String,
    /// Its directory, from the root of the workspace.
    pub directory: PathBuf,
    /// All tables, those of single targets too.
    pub dependencies: Vec<Dependency>,
    /// All Rust files below the directory.
    pub sources: Vec<Source>,
    /// The targets in `tests/` that are built with features only.
    pub feature_tests: Vec<FeatureTests>,
}

/// The members, and the names in `[workspace.dependencies]`.
#[derive(Debug)]
pub struct Workspace {
    /// In the order of the manifest.
    pub members: Vec<Member>,
    /// Of `[workspace.dependencies]`.
    pub shared_dependencies: Vec<String>,
}

impl Workspace {
    /// Reads all manifests and sources below `root`.
    pub fn load(root: &Path) -> Result<Workspace, String> {
        let manifest = read_toml(&root.join("Cargo.toml"))?;
        let workspace =
            manifest.get("workspace").and_then(Value::as_table).ok_or("Cargo.toml has no [workspace]")?;
        let members =
            workspace.get("members").and_then(Value::as_array).ok_or("[workspace] has no members")?;
        let directories: Vec<PathBuf> = members.iter().filter_map(Value::as_str).map(PathBuf::from).collect();
        let shared = workspace.get("dependencies").and_then(Value::as_table);
        Ok(Workspace {
            members: directories
                .iter()
                .map(|directory| load_member(root, directory, &directories))
                .collect::<Result<_, _>>()?,
            shared_dependencies: shared.map(|table| table.keys().cloned().collect()).unwrap_or_default(),
        })
    }

    /// Is it a member's name?
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }
}

fn load_member(root: &Path, directory: &Path, members: &[PathBuf]) -> Result<Member, String> {
    let path = root.join(directory).join("Cargo.toml");
    let manifest = read_toml(&path)?;
    let name = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    let name = name.ok_or_else(|| format!("{} has no package name", path.display()))?.to_string();
    let mut files = Vec::new();
    rust_files(&root.join(directory), root, members, &mut files)?;
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(root.join(&file)).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut source = Source::parse(&file, &text)?;
        source.beside = is_beside(file.strip_prefix(directory).unwrap_or(&file));
        sources.push(source);
    }
    mark_test_modules(&mut sources);
    let (dependencies, feature_tests) =
        (dependencies(&manifest), feature_tests(&directory.join("Cargo.toml"), &manifest));
    Ok(Member { name, directory: directory.to_owned(), dependencies, sources, feature_tests })
}

/// The tests of a manifest that have `required-features`.
fn feature_tests(path: &Path, manifest: &Table) -> Vec<FeatureTests> {
    let tests = manifest.get("test").and_then(Value::as_array).into_iter().flatten();
    let of = |test: &Value| {
        let features = test.get("required-features")?.as_array()?.iter();
        Some(FeatureTests {
            path: path.to_owned(),
            target: Some(test.get("name")?.as_str()?.to_string()),
            features: features.filter_map(Value::as_str).map(str::to_string).collect(),
        })
    };
    tests.filter_map(of).collect()
}

/// Reads a TOML file.
pub fn read_toml(path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}

/// All dependencies of a manifest.
fn dependencies(manifest: &Table) -> Vec<Dependency> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let mut found: Vec<Dependency> = Vec::new();
    for table in std::iter::once(manifest).chain(targets.filter_map(Value::as_table)) {
        for (key, for_what) in [
            ("dependencies", Use::Product),
            ("build-dependencies", Use::Product),
            ("dev-dependencies", Use::Tests),
        ] {
            let entries = table.get(key).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(name, entry)| {
                let package = entry.get("package").and_then(Value::as_str).unwrap_or(name);
                Dependency { name: package.to_string(), for_what }
            }));
        }
    }
    found
}

/// Collects `.rs` files, from the root; leaves out hidden and built things and other members.
fn rust_files(at: &Path, root: &Path, members: &[PathBuf], files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(at).map_err(|error| format!("{}: {error}", at.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", at.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
        if path.is_dir() {
            let skip =
                name == "target" || name == "build" || name.starts_with('.') || members.contains(&relative);
            if !skip {
                rust_files(&path, root, members, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(relative);
        }
    }
    Ok(())
}

/// Tests, benchmarks, examples and build scripts: not the product. `path` starts at the crate.
fn is_beside(path: &Path) -> bool {
    let first = path.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    matches!(first.as_deref(), Some("tests" | "benches" | "examples" | "build.rs"))
}

/// Marks the files of modules that are declared under `#[cfg(test)]`, and what is below them.
fn mark_test_modules(sources: &mut [Source]) {
    let mut roots: Vec<PathBuf> = Vec::new();
    for source in sources.iter() {
        let own = source.modules();
        roots.extend(source.test_modules().into_iter().map(|name| own.join(name)));
    }
    for source in sources {
        source.beside |=
            roots.iter().any(|root| source.path.with_extension("") == *root || source.path.starts_with(root));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_count() {
        let manifest = "[dependencies]\na = '1'\n[dev-dependencies]\nb = { package = 'c', version = '1' }\n\
                        [target.'cfg(unix)'.dependencies]\nd.workspace = true\n[build-dependencies]\ne = '1'";
        let found = dependencies(&manifest.parse().unwrap());
        let names: Vec<(&str, Use)> = found.iter().map(|d| (d.name.as_str(), d.for_what)).collect();
        assert_eq!(names, [("a", Use::Product), ("e", Use::Product), ("c", Use::Tests), ("d", Use::Product)]);
    }

    #[test]
    fn tests_that_need_features() {
        let manifest = "[[test]]\nname = 'a'\nrequired-features = ['x', 'y']\n[[test]]\nname = 'b'";
        let found = feature_tests(Path::new("Cargo.toml"), &manifest.parse().unwrap());
        let found: Vec<_> =
            found.iter().map(|test| (test.target.as_deref(), test.features.join(","))).collect();
        assert_eq!(found, [(Some("a"), "x,y".to_string())]);
    }

    #[test]
    fn files_of_test_modules() {
        let parse = |path: &str, text: &str| Source::parse(Path::new(path), text).unwrap();
        let mut sources = [
            parse("x/src/lib.rs", "#[cfg(test)] mod pair; mod product;"),
            parse("x/src/pair.rs", "mod inner;"),
            parse("x/src/pair/inner.rs", ""),
            parse("x/src/product.rs", "#[cfg(test)] mod tests;"),
            parse("x/src/product/tests.rs", ""),
            parse("x/src/product/other.rs", ""),
        ];
        mark_test_modules(&mut sources);
        let beside: Vec<bool> = sources.iter().map(|source| source.beside).collect();
        assert_eq!(beside, [false, true, true, false, true, false]);
    }

    #[test]
    fn what_is_beside_the_product() {
        assert!(is_beside(Path::new("tests/a.rs")) && is_beside(Path::new("build.rs")));
        assert!(!is_beside(Path::new("src/tests.rs")));
    }
}
