//! Texts that are read as settings: the policy of `taut netd`, what is wanted of a NIC, names of PARTITION; and messages
//! of netd and of the kernel. The first byte chooses.

use taut_port_xdp::netd::Message;

use crate::byte;

pub fn play(mut bytes: &[u8]) {
    let choice = byte(&mut bytes);
    let text = String::from_utf8_lossy(bytes);
    match choice % 5 {
        0 => _ = taut_netd::Policy::parse(&text, "policy.toml"),
        1 => _ = taut_nic::NicConfig::parse(&text, "nic.toml"),
        2 => {
            let names: Vec<String> = text.split('\n').map(str::to_owned).collect();
            let (own, others) = names.split_at(names.len().div_ceil(2));
            let matches = taut_qos::partitions_match(own, others);
            assert_eq!(matches, taut_qos::partitions_match(others, own), "either side comes to the same");
        }
        3 => _ = Message::parse(bytes),
        _ => {
            let most = taut_netlink::attributes(bytes).map(|(_, value)| value.len() + 4).sum::<usize>();
            assert!(most <= bytes.len().next_multiple_of(4));
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "\x00[[allow]]\nuser = \"root\"\ninterface = \"eth0\"\nqueues = [3]\ndomains = [0, 1]\n",
        "\x01interface = \"eth0\"\n[[critical]]\nport = 7401\nqueue = 3\npriority = 5\ncpus = [3]\n",
        "\x02plant/*\nplant/[!a-c]?\nplant/hall\n\\*",
    ];
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    seeds.push(b"\x04\x08\x00\x01\x00abcd\x05\x00\x02\x00x\x00\x00\x00".to_vec());
    seeds
}
