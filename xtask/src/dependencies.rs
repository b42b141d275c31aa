//! Every crate that Taut uses has a line in `docs/dependencies.md` that says why.

use std::collections::BTreeSet;
use std::path::Path;

use crate::report::Finding;
use crate::workspace::Workspace;

/// Where the lines are.
pub const FILE: &str = "docs/dependencies.md";
/// The section that lists crates, as ``- `name`: why``.
const HEADING: &str = "## Crates";

/// Compares the manifests with the text of the page.
pub fn check(workspace: &Workspace, page: &str) -> Vec<Finding> {
    let of_members = workspace.members.iter().flat_map(|m| m.dependencies.iter().map(|d| d.name.as_str()));
    let all = of_members.chain(workspace.shared_dependencies.iter().map(String::as_str));
    let used: BTreeSet<&str> = all.filter(|name| !workspace.has(name)).collect();
    let listed: Vec<(usize, &str)> = listed(page);
    let path = Path::new(FILE);
    let mut findings = Vec::new();
    for name in &used {
        if !listed.iter().any(|(_, other)| other == name) {
            findings.push(Finding::error(path, 0, format!("{name} has no line that says why it is used")));
        }
    }
    for (line, name) in listed {
        if !used.contains(name) {
            findings.push(Finding::error(path, line, format!("{name} is not used any more")));
        }
    }
    findings
}

/// The names in the section, with their lines; an entry without a reason does not count.
fn listed(page: &str) -> Vec<(usize, &str)> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    section
        .filter_map(|(index, line)| {
            let (name, why) = line.strip_prefix("- `")?.split_once("`: ")?;
            (!why.trim().is_empty()).then_some((index + 1, name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, Member, Use};

    fn messages(page: &str) -> Vec<String> {
        let dependency = |name: &str| Dependency { name: name.to_string(), for_what: Use::Product };
        let member = Member {
            name: "own".to_string(),
            directory: "own".into(),
            dependencies: vec![dependency("syn"), dependency("own")],
            sources: Vec::new(),
            feature_tests: Vec::new(),
        };
        let workspace = Workspace { members: vec![member], shared_dependencies: vec!["toml".to_string()] };
        check(&workspace, page).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn all_and_only_what_is_used() {
        let full =
            "# D\n## Crates\n\n- `syn`: parses.\n- `toml`: reads.\n\n## Programs\n- `tshark`: decodes.\n";
        assert!(messages(full).is_empty());
        assert_eq!(messages(&full.replace("- `toml`: reads.", "")).len(), 1, "one is missing");
        assert_eq!(messages(&full.replace("reads.", "")).len(), 1, "one has no reason");
        let stale = full.replace("- `toml`", "- `old`: was.\n- `toml`");
        assert_eq!(messages(&stale), ["old is not used any more"]);
    }
}
