//! What is known of a user's type below the public API: its name and how to find a key in its bytes.

use taut_base::InstanceHandle;

/// Finds the instance in a payload; the flag says that the payload is a serialized key. `None` if the
/// bytes are not a sample of the type.
pub type KeyHash = fn(payload: &[u8], key_only: bool) -> Option<InstanceHandle>;

/// A type, erased. Made by the public API from the user's type.
#[derive(Clone, Debug)]
pub struct TypeSupport {
    /// Its registered name.
    pub type_name: String,
    /// How to find the instance; `None` for a type without a key.
    pub key_hash: Option<KeyHash>,
}
