//! Errors of the caller's making; each maps one to one to a DDS return code (DCPS 1.4 §2.2.1.1).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What an operation of the public API refuses, with the remedy in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// `RETCODE_ERROR`: the operating system refused; the text names the call and the remedy.
    Error(String),
    /// `RETCODE_UNSUPPORTED`.
    Unsupported(String),
    /// `RETCODE_BAD_PARAMETER`: an argument is out of its range.
    BadParameter(String),
    /// `RETCODE_PRECONDITION_NOT_MET`.
    PreconditionNotMet(String),
    /// `RETCODE_OUT_OF_RESOURCES`: RESOURCE_LIMITS or a cap of the machine was reached.
    OutOfResources(String),
    /// `RETCODE_NOT_ENABLED`.
    NotEnabled,
    /// `RETCODE_IMMUTABLE_POLICY`: the policy cannot change once the entity is enabled.
    ImmutablePolicy(String),
    /// `RETCODE_INCONSISTENT_POLICY`: two policies of one QoS contradict each other.
    InconsistentPolicy(String),
    /// `RETCODE_ALREADY_DELETED`.
    AlreadyDeleted,
    /// `RETCODE_TIMEOUT`: the wait ended before what it waited for. The text says for whom, or where
    /// that is to be seen.
    Timeout(ErrorText),
    /// `RETCODE_NO_DATA`.
    NoData,
    /// `RETCODE_ILLEGAL_OPERATION`.
    IllegalOperation(String),
}

/// The text of an error that belongs to the data path, and so is made without an allocation: it is fixed, or who writes
/// it keeps the memory for the next one.
///
/// ```
/// let text = taut_base::ErrorText::Fixed("for nobody");
/// assert!(text.starts_with("for"));
/// ```
#[derive(Clone)]
pub enum ErrorText {
    /// Always the same.
    Fixed(&'static str),
    /// Written for this error.
    Kept(Arc<String>),
}

impl Deref for ErrorText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            ErrorText::Fixed(text) => text,
            ErrorText::Kept(text) => text,
        }
    }
}

impl PartialEq for ErrorText {
    fn eq(&self, other: &ErrorText) -> bool {
        **self == **other
    }
}

impl Eq for ErrorText {}

impl fmt::Debug for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// The result of an operation of the public API.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Error(text)
            | Error::Unsupported(text)
            | Error::BadParameter(text)
            | Error::PreconditionNotMet(text)
            | Error::OutOfResources(text)
            | Error::ImmutablePolicy(text)
            | Error::InconsistentPolicy(text)
            | Error::IllegalOperation(text) => f.write_str(text),
            Error::NotEnabled => f.write_str("the entity is not enabled"),
            Error::AlreadyDeleted => f.write_str("the entity was deleted before"),
            Error::Timeout(whom) => write!(f, "the time limit passed first: {whom}"),
            Error::NoData => f.write_str("there is no data"),
        }
    }
}

impl std::error::Error for Error {}
