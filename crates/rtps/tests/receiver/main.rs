//! What the message receiver makes of what a message says, and of who it says that it is from.

mod changes;
mod common;
mod ends;
mod found_again;
mod lost;
mod matching;
mod peers;
mod restarts;
mod room;
mod vendors;
