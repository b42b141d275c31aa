//! The data path of a warm port allocates nothing, by count of the allocator. Without the harness of tests, whose thread
//! allocates, too, when it gets to it.

mod common;

use common::{free_domain, on_loopback, open};
use taut_mem::CountingAllocator;
use taut_port::{Port, Receive, Traffic};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    a_warm_port_allocates_nothing();
}

fn a_warm_port_allocates_nothing() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let to = [port.user_unicast()[0], port.user_multicast()[0]];
    let many: Vec<&[u8]> = vec![b"p"; 80];
    let mut heard = 0;
    let mut round = |port: &mut taut_port_udp::UdpPort| {
        for _ in 0..10 {
            port.send(&to, &[b"header", b"payload"]);
            port.send(&to, &many);
        }
        // Loopback delivers within the call of the sender.
        heard += port.receive(Traffic::User, 100, &mut |frame| assert!(!frame.bytes.is_empty()));
    };
    (0..10).for_each(|_| round(&mut port));
    let (buffers, before) = (port.stats().buffers_allocated, CountingAllocator::of_process());
    (0..100).for_each(|_| round(&mut port));
    assert_eq!(CountingAllocator::of_process() - before, 0, "allocations in 100 rounds");
    assert_eq!(port.stats().buffers_allocated, buffers);
    assert_eq!(heard, 110 * 40);
}
