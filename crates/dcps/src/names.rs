//! Instances by names other than their handles. RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8.
//!
//! A key hash depends on the version of XCDR in which the key is hashed, and peers differ in which they take. A handle
//! is the hash in one version, whatever version samples come in; what says no key but only its hash may say the other.
//! Nobody pays for these names until somebody has used one.

use std::collections::BTreeMap;

use taut_base::InstanceHandle;

use crate::instance::Instance;
use crate::sample_info::PayloadKind;
use crate::type_support::KeyHash;

/// The names of a reader's instances where these are not the handles.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// How a key is hashed otherwise; `None` if there is no other way.
    hash: Option<KeyHash>,
    /// As many as instances at most.
    known: Option<BTreeMap<InstanceHandle, u32>>,
}

impl Names {
    pub fn new(hash: Option<KeyHash>) -> Names {
        Names { hash, known: None }
    }

    fn of(&self, instance: &Instance) -> Option<InstanceHandle> {
        let key_only = match instance.key_kind {
            PayloadKind::Empty => return None,
            PayloadKind::Data => false,
            PayloadKind::Key => true,
        };
        let name = (self.hash?)(&instance.key, key_only)?;
        (name != instance.handle).then_some(name)
    }

    /// The instance of this name. *Cost*: O(log n), but the first time O(n log n) and a hash of each key.
    pub fn find<'a>(
        &mut self,
        name: InstanceHandle,
        all: impl Iterator<Item = (u32, &'a Instance)>,
    ) -> Option<u32> {
        self.hash?;
        if self.known.is_none() {
            let named = all.filter_map(|(index, instance)| Some((self.of(instance)?, index)));
            self.known = Some(named.collect());
        }
        self.known.as_ref()?.get(&name).copied()
    }

    /// An instance is new.
    #[inline]
    pub fn add(&mut self, index: u32, instance: &Instance) {
        if self.known.is_some()
            && let Some(name) = self.of(instance)
            && let Some(known) = &mut self.known
        {
            known.insert(name, index);
        }
    }

    /// An instance is forgotten.
    #[inline]
    pub fn remove(&mut self, instance: &Instance) {
        if self.known.is_some()
            && let Some(name) = self.of(instance)
            && let Some(known) = &mut self.known
        {
            known.remove(&name);
        }
    }
}
