//! A rule that lets the ports of a domain through, in front of what drops them: nft(8), libnftables-json(5).
//!
//! What is asked of `nft` goes to it as JSON on its standard input: names of tables and chains are never words of a command.
//! nftables speaks netlink, too, but what it says there are programs for the kernel that `nft` alone writes and reads well.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An accept for the ports of a domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    pub family: String,
    pub table: String,
    pub chain: String,
    pub ports: (u16, u16),
    /// The handle of the rule that it goes in front of; `None`: it is the last one, as the chain's policy drops.
    pub before: Option<u64>,
}

impl Rule {
    /// The chain, as people write it.
    pub fn chain(&self) -> String {
        format!("{} {} {}", self.family, self.table, self.chain)
    }

    /// What it says, as people write it.
    pub fn says(&self) -> String {
        format!("udp dport {} accept", super::range(self.ports))
    }

    /// What is typed to add it; `is_first`: in front of all that there is.
    pub fn command(&self, is_first: bool) -> String {
        let (chain, says) = (self.chain(), self.says());
        match self.before {
            None => format!("nft add rule {chain} {says}"),
            Some(_) if is_first => format!("nft insert rule {chain} {says}"),
            Some(handle) => format!("nft insert rule {chain} position {handle} {says}"),
        }
    }

    /// The comment that it bears, by which it is known again: no other rule of its chain has it.
    fn comment(&self) -> String {
        let ports = super::range(self.ports);
        let place = self.before.map_or_else(|| "at the end".to_owned(), |handle| format!("before {handle}"));
        format!("taut doctor --fix: {ports} {place}")
    }

    /// Adds it.
    ///
    /// *Errors*: a sentence with the remedy: no nft, no privilege, rules that have changed meanwhile, or it is there and
    /// does not help.
    pub fn add(&self) -> Result<(), String> {
        if !self.handles(&super::rules()?).is_empty() {
            return Err("it is there already, and what drops is elsewhere: `nft list ruleset`".to_owned());
        }
        self.run(&self.addition())
    }

    /// Takes it away, and no other one. Returns whether it was there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn remove(&self) -> Result<bool, String> {
        let handles = self.handles(&super::rules()?);
        let delete = |handle: &u64| {
            let Rule { family, table, chain, .. } = self;
            json!({"delete": {"rule": {"family": family, "table": table, "chain": chain, "handle": handle}}})
        };
        if !handles.is_empty() {
            self.run(&handles.iter().map(delete).collect())?;
        }
        Ok(!handles.is_empty())
    }

    fn addition(&self) -> Value {
        let ports = json!({"range": [self.ports.0, self.ports.1]});
        let left = json!({"payload": {"protocol": "udp", "field": "dport"}});
        let mut rule = json!({
            "family": self.family,
            "table": self.table,
            "chain": self.chain,
            "expr": [{"match": {"op": "==", "left": left, "right": ports}}, {"accept": null}],
            "comment": self.comment(),
        });
        let verb = if let Some(handle) = self.before {
            rule["handle"] = handle.into();
            "insert"
        } else {
            "add"
        };
        json!([{verb: {"rule": rule}}])
    }

    /// Where it is among the rules in force.
    fn handles(&self, rules: &Value) -> Vec<u64> {
        let comment = self.comment();
        let is = |rule: &&Value| {
            let words = [("family", &self.family), ("table", &self.table), ("chain", &self.chain)];
            let mut words = words.into_iter().chain([("comment", &comment)]);
            words.all(|(name, word)| rule.get(name).and_then(Value::as_str) == Some(word))
        };
        let all = rules.get("nftables").and_then(Value::as_array).into_iter().flatten();
        let own = all.filter_map(|object| object.get("rule")).filter(is);
        own.filter_map(|rule| rule.get("handle").and_then(Value::as_u64)).collect()
    }

    /// Has nft do this, all or nothing.
    fn run(&self, commands: &Value) -> Result<(), String> {
        let failed = |why: &str| {
            format!("nft, for {}: {why}; look at `nft -a list chain {}`", self.chain(), self.chain())
        };
        let text = json!({"nftables": commands}).to_string();
        let said = nft(&text).map_err(|error| failed(&error.to_string()))?;
        said.map_or(Ok(()), |said| Err(failed(&said)))
    }
}

/// Gives nft a text of JSON. Returns what it says if it does not do that.
fn nft(text: &str) -> io::Result<Option<String>> {
    let mut command = Command::new("nft");
    command.args(["-j", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // One that ends before it has read it says why.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes()));
    let ended = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let first = said.lines().next().unwrap_or("it ended without a word").trim().to_owned();
    Ok((!ended.status.success()).then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(before: Option<u64>) -> Rule {
        let [family, table, chain] = ["inet", "t", "in"].map(str::to_owned);
        Rule { family, table, chain, ports: (7_400, 7_649), before }
    }

    #[test]
    fn what_is_typed() {
        assert_eq!(rule(None).command(true), "nft add rule inet t in udp dport 7400-7649 accept");
        assert_eq!(rule(Some(7)).command(true), "nft insert rule inet t in udp dport 7400-7649 accept");
        assert_eq!(
            rule(Some(7)).command(false),
            "nft insert rule inet t in position 7 udp dport 7400-7649 accept"
        );
    }

    /// Of others' rules none is taken away, whatever they say.
    #[test]
    fn it_is_known_by_its_comment() {
        let (own, last) = (rule(Some(7)), rule(None));
        let listed = |chain: &str, handle: u64, comment: Option<String>| {
            let rule = json!({"family": "inet", "table": "t", "chain": chain, "handle": handle, "expr": []});
            let mut object = json!({"rule": rule});
            if let Some(comment) = comment {
                object["rule"]["comment"] = comment.into();
            }
            object
        };
        let rules = json!({"nftables": [
            {"metainfo": {}},
            listed("in", 7, None),
            listed("in", 8, Some(own.comment())),
            listed("out", 9, Some(own.comment())),
            listed("in", 10, Some(last.comment())),
            listed("in", 11, Some("taut doctor".to_owned())),
        ]});
        assert_eq!((own.handles(&rules), last.handles(&rules)), (vec![8], vec![10]));
        let other = Rule { ports: (7_650, 7_899), ..own };
        assert_eq!(other.handles(&rules), [0; 0]);
    }
}
