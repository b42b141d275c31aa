//! How each peer looks: name, colour, mark. The same in every chart and every report.
//!
//! Taut is always the one strong accent, the floor neutral. The others keep hues that differ in lightness
//! too, so that they stay apart for the colour-blind; marks and direct labels say the rest.

/// What a line's points look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Disc,
    Square,
    Diamond,
    Up,
    Down,
}

/// A known peer: adapter, name for readers, colour on light and on dark, mark.
type Known = (&'static str, &'static str, &'static str, &'static str, Mark);

/// The order is that of lists: the subject, the limit, then by how near to a DDS they are.
const KNOWN: [Known; 14] = [
    ("taut", "Taut", "#d6246e", "#ff5f9e", Mark::Disc),
    ("floor", "floor", "#868c95", "#8d949e", Mark::Disc),
    ("cyclonedds", "Cyclone DDS", "#0b62a8", "#5aa5e6", Mark::Square),
    ("cyclonedds11", "Cyclone DDS 11", "#4aa3df", "#a3d3f7", Mark::Diamond),
    ("fastdds", "Fast DDS", "#cf7400", "#f2a541", Mark::Up),
    ("hdds", "HDDS", "#00805f", "#35b98f", Mark::Down),
    ("rustdds", "RustDDS", "#7a4a2b", "#c08d68", Mark::Square),
    ("dust_dds", "dust_dds", "#a39200", "#ddcf45", Mark::Diamond),
    ("iceoryx2", "iceoryx2", "#6a4fc0", "#a48ff0", Mark::Up),
    ("zenoh", "Zenoh", "#0d8f9b", "#52d0da", Mark::Down),
    ("mosquitto", "MQTT", "#5a6b2f", "#aabf6c", Mark::Square),
    ("mqtt", "MQTT", "#5a6b2f", "#aabf6c", Mark::Square),
    ("zeromq", "ZeroMQ", "#8c3f8f", "#d58ad8", Mark::Diamond),
    ("grpc", "gRPC", "#3f4fa0", "#8d9cf0", Mark::Up),
];

/// For peers that nobody knew here.
const OTHERS: [(&str, &str, Mark); 3] = [
    ("#55708a", "#9db7cf", Mark::Down),
    ("#8a6d55", "#cfb39d", Mark::Up),
    ("#4f7a5c", "#99c4a6", Mark::Diamond),
];

/// The adapter without its variant.
pub(crate) fn adapter(peer: &str) -> &str {
    peer.split_once(':').map_or(peer, |(adapter, _)| adapter)
}

/// The name for readers, with the variant.
pub(crate) fn name(peer: &str) -> String {
    let (adapter, variant) = peer.split_once(':').unwrap_or((peer, ""));
    let known = KNOWN.iter().find(|known| known.0 == adapter).map_or(adapter, |known| known.1);
    if variant.is_empty() { known.to_string() } else { format!("{known} {variant}") }
}

/// Where it stands in lists; who is not known comes last, by name.
pub(crate) fn order(peer: &str) -> (usize, &str) {
    (KNOWN.iter().position(|known| known.0 == adapter(peer)).unwrap_or(KNOWN.len()), peer)
}

/// The classes that give an element the peer's colour, and a dashed line to a variant.
pub(crate) fn class(peer: &str) -> String {
    let dash = if peer.contains(':') { " v" } else { "" };
    match KNOWN.iter().position(|known| known.0 == adapter(peer)) {
        Some(at) => format!("k{at}{dash}"),
        None => format!("k{}{dash}", KNOWN.len() + other(peer)),
    }
}

/// The shape of its points.
pub(crate) fn mark(peer: &str) -> Mark {
    let known = KNOWN.iter().find(|known| known.0 == adapter(peer));
    known.map_or_else(|| OTHERS[other(peer)].2, |known| known.4)
}

/// By the letters of its name, so that it keeps its colour from report to report.
fn other(peer: &str) -> usize {
    adapter(peer).bytes().fold(0, |sum, byte| sum + usize::from(byte)) % OTHERS.len()
}

/// The colours as style rules: `--c` of each class, light and dark.
pub(crate) fn style() -> String {
    let pairs: Vec<(&str, &str)> = KNOWN
        .iter()
        .map(|known| (known.2, known.3))
        .chain(OTHERS.iter().map(|other| (other.0, other.1)))
        .collect();
    let rules = |pick: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        pairs.iter().enumerate().map(|(at, pair)| format!(".k{at}{{--c:{}}}", pick(pair))).collect()
    };
    format!("{}@media(prefers-color-scheme:dark){{{}}}", rules(|pair| pair.0), rules(|pair| pair.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_looks_like_its_adapter_but_dashed() {
        assert_eq!(name("fastdds:data-sharing"), "Fast DDS data-sharing");
        assert_eq!(class("fastdds:data-sharing"), format!("{} v", class("fastdds")));
        assert_eq!(mark("fastdds:shm"), mark("fastdds"));
    }

    #[test]
    fn who_is_not_known_has_a_place_too() {
        assert_eq!(name("nats"), "nats");
        assert!(order("nats") > order("grpc"));
        assert!(style().contains(&format!(".{}{{--c:", class("nats"))));
    }
}
