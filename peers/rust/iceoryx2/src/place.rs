//! Where the files of a trial are, and how they go.
//!
//! iceoryx2 keeps a service in files: who is killed leaves them to the next process that opens the same
//! place. Each trial has a place of its own, below `/dev/shm` like the memory itself, so trials do not see
//! each other; when the driver is gone, everything of that place is removed.

use std::path::Path;

use iceoryx2::prelude::*;
use iceoryx2::service::Service;
use taut_perf_kit::{Control, Options, Stop};

/// Where Linux keeps shared memory.
const MEMORY: &str = "/dev/shm";

/// A full buffer of keep-all holds at most so much: more than a burst of a demand of 1,024 samples of
/// 64 KiB; too high and a run of large samples fills the memory of the machine.
const KEEP_ALL_BYTES: usize = 64 << 20;

/// And at most so many samples: each costs a place in every connection's ring.
const KEEP_ALL_SAMPLES: usize = 1_024;

/// Joins the domain; sees to its files when the driver is gone.
pub fn node<S: Service>(options: &Options, control: &Control) -> Result<Node<S>, Stop> {
    let name = name(options)?;
    let config = config(options, &name)?;
    control.at_loss(move || remove(&name));
    join(&config)
}

/// Another node of this process.
pub fn another<S: Service>(options: &Options) -> Result<Node<S>, Stop> {
    join(&config(options, &name(options)?)?)
}

/// Leaves the domain, after all that was of the node. Who is the last of it removes what iceoryx2 keeps
/// for the next one.
pub fn leave<S: Service>(node: Node<S>, options: &Options) -> Result<(), Stop> {
    let config = node.config().clone();
    drop(node);
    let mut others = 0;
    Node::<S>::list(&config, |state| {
        others += usize::from(matches!(state, NodeState::Alive(_)));
        CallbackProgression::Continue
    })
    .map_err(wrong)?;
    if others == 0 { clear(options) } else { Ok(()) }
}

/// Removes what iceoryx2 keeps of the domain.
pub fn clear(options: &Options) -> Result<(), Stop> {
    remove(&name(options)?);
    Ok(())
}

fn join<S: Service>(config: &Config) -> Result<Node<S>, Stop> {
    let node = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled).config(config);
    node.create::<S>().map_err(wrong)
}

fn name(options: &Options) -> Result<String, Stop> {
    // Two drivers may use one domain in two networks of one machine: there is only one shared memory.
    let network = std::fs::read_link("/proc/self/ns/net")?;
    let network: String = network.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    Ok(format!("perf_iceoryx2_{network}_{}", options.domain))
}

fn config(options: &Options, name: &str) -> Result<Config, Stop> {
    let mut config = Config::default();
    config
        .global
        .set_root_path(&iceoryx2::prelude::Path::new(format!("{MEMORY}/{name}").as_bytes()).map_err(wrong)?);
    config.global.prefix = FileName::new(format!("{name}_").as_bytes()).map_err(wrong)?;
    let data = &mut config.defaults.publish_subscribe;
    data.max_subscribers = options.remotes.max(options.nodes);
    data.max_publishers = options.nodes;
    data.max_nodes = 2 * options.remotes.max(options.nodes) + 2;
    data.subscriber_max_buffer_size = depth(options);
    data.enable_safe_overflow = options.depth().is_some();
    data.backpressure_strategy = if options.reliable() {
        BackpressureStrategy::RetryUntilDelivered
    } else {
        BackpressureStrategy::DiscardData
    };
    let waiting = &mut config.defaults.event;
    waiting.max_listeners = options.remotes.max(options.nodes);
    waiting.max_nodes = 2 * options.remotes.max(options.nodes) + 2;
    Ok(config)
}

fn depth(options: &Options) -> usize {
    let all = (KEEP_ALL_BYTES / options.size.max(1)).clamp(4, KEEP_ALL_SAMPLES);
    options.depth().unwrap_or(all).max(1)
}

/// Removes what a place has left, which may be nothing.
fn remove(name: &str) {
    let Ok(entries) = std::fs::read_dir(MEMORY) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let Some(rest) = file.to_str().and_then(|file| file.strip_prefix(name)) else { continue };
        // Somebody else may have removed it just now.
        if rest.is_empty() {
            let _ = std::fs::remove_dir_all(Path::new(MEMORY).join(&file));
        } else if rest.starts_with('_') {
            let _ = std::fs::remove_file(Path::new(MEMORY).join(&file));
        }
    }
}

/// Its errors say their kind, some without being an `Error` of the standard library.
pub fn wrong(error: impl std::fmt::Debug) -> Stop {
    Stop::Failed(format!("{error:?}"))
}
