//! The `taut` command as a user meets it. Each test is in a domain of its own on the loopback interface.

mod bad_input;
mod common;
mod doctor;
mod list_and_demo;
mod netd;
mod nic;
mod publish_subscribe;
mod top;
