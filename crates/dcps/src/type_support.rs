//! What is known of a user's type below the public API: its name and how to find a key in its bytes.

use std::fmt;
use std::sync::Arc;

use taut_base::InstanceHandle;

/// Finds the instance in a payload, in whatever version that is; the flag says that it is a serialized key. `None` if
/// the bytes are not a sample of the type, as far as it reads them: what lies behind the key may be anything. What it
/// finds is [never NIL](instance_handle).
pub type KeyHash = fn(payload: &[u8], key_only: bool) -> Option<InstanceHandle>;

/// Takes the key out of a serialized sample: a serialized key, that no longer needs the buffer the sample came in.
/// `None` if the bytes are no sample of the type.
pub type KeyOf = fn(payload: &[u8]) -> Option<Vec<u8>>;

/// The instance whose key is all zeros, which so is its hash: the digest of no bytes, that is, of no key.
const ZEROS: InstanceHandle =
    InstanceHandle([212, 29, 140, 217, 143, 0, 178, 4, 233, 128, 9, 152, 236, 248, 66, 126]);

/// The handle of the instance that a key hash names: the hash, but never NIL. That stands before all instances, so that who
/// asks for the next one would get it again and again, and for none where one is looked for.
#[inline]
pub fn instance_handle(key_hash: InstanceHandle) -> InstanceHandle {
    if key_hash == InstanceHandle::NIL { ZEROS } else { key_hash }
}

/// The handle of the only instance of a topic without a key: not [NIL](instance_handle) either.
pub const ONLY_INSTANCE: InstanceHandle = InstanceHandle([u8::MAX; 16]);

/// Which samples a reader lets in, by their payloads. One that is no sample of the type is let in, for who
/// decodes it to tell.
#[derive(Clone)]
pub struct ContentFilter(Arc<Passes>);

type Passes = dyn Fn(&[u8]) -> bool + Send + Sync;

impl ContentFilter {
    /// A filter that asks `passes`.
    pub fn new(passes: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> ContentFilter {
        ContentFilter(Arc::new(passes))
    }

    /// Does a sample with this payload pass?
    pub fn passes(&self, payload: &[u8]) -> bool {
        (self.0)(payload)
    }
}

impl fmt::Debug for ContentFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentFilter")
    }
}

/// A type, erased. Made by the public API from the user's type.
#[derive(Clone, Debug, Default)]
pub struct TypeSupport {
    /// Its registered name.
    pub type_name: String,
    /// How to find the instance; `None` for a type without a key.
    pub key_hash: Option<KeyHash>,
    /// How peers may hash the same key otherwise: what comes without a key, but with its hash, is looked for by both. `None`
    /// if they cannot.
    pub other_key_hash: Option<KeyHash>,
    /// How to take the key out of a long sample; without it an instance keeps the whole.
    pub key_of: Option<KeyOf>,
    /// Which samples a reader of it lets in; all without one.
    pub filter: Option<ContentFilter>,
}
