//! What a driver that has rules is asked for. There is none without a card: this program has the call instead of DPDK.

mod common;

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Mutex;

use common::{memif, open};
use taut_dpdk::Flow;

/// struct rte_flow_item of rte_flow.h.
#[repr(C)]
struct Item {
    kind: c_int,
    spec: *const u8,
    last: *const u8,
    mask: *const u8,
}

/// struct rte_flow_action, with struct rte_flow_action_queue.
#[repr(C)]
struct Action {
    kind: c_int,
    queue: *const u16,
}

/// Values of enum rte_flow_item_type and of enum rte_flow_action_type.
const END: c_int = 0;
const ETH: c_int = 6;
const VLAN: c_int = 7;
const IPV4: c_int = 8;
const IPV6: c_int = 9;
const UDP: c_int = 11;
const TO_QUEUE: c_int = 6;

/// The types of a rule's items, with the first four bytes of what they are to be and of what of it counts, and the queue.
type Rule = (Vec<(c_int, Option<[[u8; 4]; 2]>)>, u16);

static ASKED: Mutex<Vec<Rule>> = Mutex::new(Vec::new());

/// Takes any rule.
// SAFETY: the name and the arguments are those of DPDK's function, which is not called then.
#[unsafe(no_mangle)]
extern "C" fn rte_flow_create(
    _port: u16,
    attr: *const [u32; 3],
    pattern: *const Item,
    actions: *const Action,
    _error: *mut c_void,
) -> *mut c_void {
    let bytes = |at: *const u8| {
        // SAFETY: what it points to has four bytes at least.
        unsafe { at.cast::<[u8; 4]>().read_unaligned() }
    };
    // SAFETY: group, priority and bits of a rule.
    let [group, priority, bits] = unsafe { attr.read() };
    assert_eq!((group, priority, bits), (0, 0, 1), "of what comes");
    let mut items = Vec::new();
    for at in 0.. {
        // SAFETY: there is one more, as none before was the last.
        let Item { kind, spec, last, mask } = unsafe { pattern.add(at).read() };
        assert!(last.is_null() && spec.is_null() == mask.is_null());
        if kind == END {
            break;
        }
        items.push((kind, (!spec.is_null()).then(|| [bytes(spec), bytes(mask)])));
    }
    // SAFETY: there are two.
    let [Action { kind, queue }, end] = unsafe { [actions.read(), actions.add(1).read()] };
    assert_eq!((kind, end.kind), (TO_QUEUE, END));
    // SAFETY: the number of a queue.
    ASKED.lock().unwrap().push((items, unsafe { queue.read() }));
    ptr::without_provenance_mut(8)
}

#[test]
fn rules_say_what_is_meant() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut device = open(&memif(0, "server", &directory.path().join("socket"))).unwrap();
    let udp = (UDP, Some([[0, 0, 0x1c, 0xea], [0, 0, 0xff, 0xff]]));
    let anything = |kind| (kind, None);
    let port = |is_ipv6, is_tagged| Flow::UdpPort { port: 7_402, is_ipv6, is_tagged };
    for (flow, queue, items) in [
        (port(false, false), 1, vec![anything(ETH), anything(IPV4), udp]),
        (port(true, false), 1, vec![anything(ETH), anything(IPV6), udp]),
        (port(false, true), 3, vec![anything(ETH), anything(VLAN), anything(IPV4), udp]),
        (Flow::Priority(6), 1, vec![anything(ETH), (VLAN, Some([[0xc0, 0, 0, 0], [0xe0, 0, 0, 0]]))]),
    ] {
        device.steer(flow, queue).unwrap();
        assert_eq!(ASKED.lock().unwrap().pop(), Some((items, queue)), "{flow}");
    }
}
