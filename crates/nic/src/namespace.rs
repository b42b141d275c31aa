//! Which network namespace a record is of: the one of this process, another, or one that is gone.
//!
//! Whoever records what it has changed, and takes it back, asks here; `taut doctor` does so, too.

use serde::{Deserialize, Serialize};

/// A network namespace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name in /proc, as `net:[4026531840]`: another may have it once this one is gone.
    #[serde(rename = "namespace")]
    pub name: String,
    /// Its number that no other has before the next boot; `None` where the kernel has none, and in records of a version
    /// that kept none, whose name has to do.
    pub cookie: Option<u64>,
}

impl Namespace {
    /// Is it this one, as far as can be told?
    ///
    /// ```
    /// let of = |cookie| taut_nic::Namespace { name: "net:[1]".into(), cookie };
    /// assert!(of(None).is(&of(Some(7))) && !of(Some(3)).is(&of(Some(7))));
    /// ```
    pub fn is(&self, other: &Namespace) -> bool {
        self.name == other.name && !self.is_gone_by(other)
    }

    /// Is it gone, since this one has its name?
    ///
    /// ```
    /// let of = |cookie| taut_nic::Namespace { name: "net:[1]".into(), cookie };
    /// assert!(of(Some(3)).is_gone_by(&of(Some(7))) && !of(None).is_gone_by(&of(Some(7))));
    /// ```
    pub fn is_gone_by(&self, other: &Namespace) -> bool {
        let cookies = self.cookie.zip(other.cookie);
        self.name == other.name && cookies.is_some_and(|(cookie, other)| cookie != other)
    }

    /// Why what is recorded of it is left as it is by one who is elsewhere, and what to do; `undo` is what they typed.
    ///
    /// ```
    /// let namespace = taut_nic::Namespace { name: "net:[1]".into(), cookie: None };
    /// assert!(namespace.left_elsewhere("taut nic undo eth0").ends_with("`taut nic undo eth0 --forget 'net:[1]'`"));
    /// ```
    pub fn left_elsewhere(&self, undo: &str) -> String {
        let name = &self.name;
        let forget = format!("{undo} --forget '{name}'");
        format!(
            "it belongs to the network namespace {name}: undo it there, or, if that is gone, forget it by `{forget}`"
        )
    }
}
