//! Lines per crate.

use crate::report;
use crate::workspace::{Member, Workspace};

/// Lines of one crate; blank ones are not counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Lines {
    code: usize,
    comments: usize,
    tests: usize,
}

fn count(member: &Member) -> Lines {
    let mut lines = Lines::default();
    for source in member.sources.iter().filter(|source| !source.generated) {
        let (code, tests) = (source.code_lines(), source.test_lines());
        lines.tests += code.intersection(&tests).count();
        lines.code += code.difference(&tests).count();
        lines.comments +=
            source.comment_lines().iter().filter(|l| !code.contains(l) && !tests.contains(l)).count();
    }
    lines
}

/// A row for each crate and one for all.
pub fn table(workspace: &Workspace) -> String {
    let row = |name: &str, lines: Lines| {
        vec![name.to_string(), lines.code.to_string(), lines.comments.to_string(), lines.tests.to_string()]
    };
    let mut rows = vec![["lines", "code", "comments", "tests"].map(str::to_string).to_vec()];
    let mut all = Lines::default();
    for member in &workspace.members {
        let lines = count(member);
        all.code += lines.code;
        all.comments += lines.comments;
        all.tests += lines.tests;
        rows.push(row(&member.name, lines));
    }
    rows.push(row("all", all));
    report::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use std::path::Path;

    #[test]
    fn each_line_once() {
        let text = "//! A.\n\nfn a() { // b\n}\n// c\n#[cfg(test)]\nmod tests {\n\n// d\n}\n";
        let sources = vec![Source::parse(Path::new("a.rs"), text).unwrap()];
        let member = Member {
            name: "a".to_string(),
            directory: "a".into(),
            dependencies: Vec::new(),
            sources,
            feature_tests: Vec::new(),
        };
        assert_eq!(count(&member), Lines { code: 2, comments: 2, tests: 3 });
    }
}
