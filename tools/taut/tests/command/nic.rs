//! `nic`, on a veth pair with four queues in a network of its own, which goes with the test.

use std::process::Command;

use serde_json::json;

use crate::common::{Ended, bare, has_strace, objects, run};

/// The pair, a /run and a /sys of this network, and a file; `$taut` is the command. `now` tells what the kernel says
/// of nic0, of XPS whether the first processor sends by queue 1. Ends with the first line that fails.
const NETWORK: &str = "set -eu
mount -t tmpfs tmpfs /run
mount -t sysfs sysfs /sys
cd /run
ip link add nic0 numtxqueues 4 numrxqueues 4 type veth peer name nic1 numtxqueues 4 numrxqueues 4
ip link set nic0 up
ip link set nic1 up
cat > nic.toml << 'END'
interface = \"nic0\"
queues = 2
critical_queues = [1]
cpus = [0]
domains = [0]
participants = 1
pcp = 6
END
queues=/sys/class/net/nic0/queues
now() {
    echo \"$(ls -d $queues/tx-* | wc -l) tx $(ls -d $queues/rx-* | wc -l) rx\"
    echo \"XPS $(tr -d '0,' < $queues/tx-1/xps_cpus)\"
    tc qdisc show dev nic0 | cut -d ' ' -f 2,4,5 | sort
}
";

/// What `now` tells of the pair as it was made, and as the file wants it.
const BEFORE: &str = "4 tx 4 rx\nXPS \nnoqueue root refcnt\n";
const AFTER: &str = "2 tx 2 rx\nXPS 1\nmq root \npfifo parent 7a00:1\npfifo parent 7a00:2\n";

/// Runs lines of a shell in namespaces of their own; `None` where they cannot be made, as for a user who is not root.
fn in_namespace(lines: &str) -> Option<Ended> {
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", script]).env("taut", env!("CARGO_BIN_EXE_taut"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TAUT_")) {
            command.env_remove(name);
        }
        command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").current_dir("/");
        Ended::from(command.output().unwrap())
    };
    // Root of a user namespace may make the pair, and may not write XPS.
    let possible = inside(&format!("{NETWORK}echo 0 > $queues/tx-0/xps_cpus")).code;
    if possible != Some(0) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "it needs root");
        println!("LEFT OUT: it needs root, to make a network namespace and to write XPS");
    }
    (possible == Some(0)).then(|| inside(&format!("{NETWORK}{lines}")))
}

/// The names of the steps that went so: `done`, `cannot`, `as it is`, `failed`.
fn steps<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let begin = format!("  {word:<10}");
    let items = text.lines().filter_map(|line| line.strip_prefix(&begin));
    items.map(|rest| rest.split("  ").next().unwrap_or(rest)).collect()
}

#[test]
fn what_is_applied_is_taken_back() {
    let Some(ended) = in_namespace(
        "now
$taut nic apply nic.toml > done
now
$taut nic status nic.toml > status
$taut nic apply nic.toml | tail -n 1
$taut nic undo nic.toml > undone
now
ls /run/taut
$taut nic undo nic.toml
echo ---
cat done
echo ---
cat undone",
    ) else {
        return;
    };
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    let parts: Vec<&str> = ended.stdout.split("---\n").collect();
    let wanted = format!(
        "{BEFORE}{AFTER}nothing was changed: all that can be done is done; `taut nic undo nic0` takes back what was done \
         before\n{BEFORE}nic.lock\nnothing to undo\n"
    );
    assert_eq!(parts[0], wanted);
    assert_eq!(steps(parts[1], "done"), ["channels", "qdisc", "XPS of queue 0", "XPS of queue 1"]);
    assert_eq!(
        steps(parts[1], "cannot"),
        [
            "receive ring",
            "coalescing",
            "UDP ports 7401, 7411, VLAN tag with PCP 6",
            "all others (RSS)",
            "interrupts",
            "time stamps"
        ]
    );
    let refused = "because netlink ETHTOOL_MSG_COALESCE_GET: the driver has no such setting\n";
    assert!(parts[1].contains(refused), "{}", parts[1]);
    let no_table = "because ioctl ETHTOOL_GRXFHINDIR: the driver has no such setting\n            lost    others come to \
                    the critical queue, too, and critical frames wait behind them\n";
    assert!(parts[1].contains(no_table), "{}", parts[1]);
    let undone: Vec<&str> = parts[2].lines().collect();
    assert!(undone[0].starts_with("XPS of queue 1: processor 0 -> any processor"), "{undone:?}");
    assert_eq!(undone[2], "qdisc: mq with a pfifo for each of 2 queues -> the kernel's own");
    assert_eq!(undone[3..], ["channels: 2 rx, 2 tx -> 4 rx, 4 tx"]);
}

/// Others pass through the directory, to the socket of netd.
#[test]
fn the_place_of_records_is_open_whatever_the_umask() {
    let Some(ended) = in_namespace("umask 077\n$taut nic apply nic.toml > done\nstat -c %a /run/taut") else {
        return;
    };
    assert_eq!(ended.stdout, "755\n", "{}", ended.stderr);
}

/// The file asks for fewer queues than there are.
#[test]
fn the_processors_of_queues_that_go_come_back_with_them() {
    let Some(ended) = in_namespace(
        "echo 1 > $queues/tx-3/xps_cpus
$taut nic apply nic.toml > done
[ ! -e $queues/tx-3 ]
$taut nic undo nic0 > undone
tr -d '0,' < $queues/tx-3/xps_cpus
ls /run/taut",
    ) else {
        return;
    };
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("1\nnic.lock\n", ""));
}

/// XPS is refused by a /sys that cannot be written; what was done before it is taken back.
#[test]
fn a_step_that_fails() {
    let Some(ended) = in_namespace(
        "mount -o bind,ro /sys /sys
$taut nic apply nic.toml > done || echo \"code $?\"
now
grep -c '\"item\"' /run/taut/nic.json
$taut nic undo nic0
now
ls /run/taut
echo ---
cat done",
    ) else {
        return;
    };
    let (told, done) = ended.stdout.split_once("---\n").unwrap();
    let wanted = format!(
        "code 1\n{}2\nqdisc: mq with a pfifo for each of 2 queues -> the kernel's own\n\
         channels: 2 rx, 2 tx -> 4 rx, 4 tx\n{BEFORE}nic.lock\n",
        AFTER.replace("XPS 1", "XPS ")
    );
    assert_eq!(told, wanted);
    assert_eq!(
        ended.stderr,
        "taut: XPS of queue 0 failed, the steps behind it were not tried, 2 before it are done; `taut nic undo nic0` \
         takes them back\n"
    );
    assert_eq!(steps(done, "failed"), ["XPS of queue 0"]);
    let why =
        "because write /sys/class/net/nic0/queues/tx-0/xps_cpus: Read-only file system; a container may not";
    assert!(done.contains(why), "{done}");
}

/// A veth with a program of XDP keeps as many queues as its other end sends by.
#[test]
fn a_participant_has_the_queues() {
    let Some(ended) = in_namespace(
        "ip addr add 10.9.0.1/24 dev nic0
TAUT_XDP_INTERFACE=nic0 TAUT_XDP_NETD=off $taut sub string --topic a > /dev/null &
child=$!
tries=0
while ! ip -o link show nic0 | grep -q prog/xdp; do tries=$((tries + 1)); [ $tries -lt 10000 ]; done
$taut nic apply nic.toml 2> /dev/null > done || grep CHANNELS_SET done
kill $child
wait $child || true
$taut nic apply nic.toml 2>&1 | tail -n 1",
    ) else {
        return;
    };
    let (refused, then) = ended.stdout.split_once('\n').unwrap();
    assert!(refused.contains("Invalid argument; end what has a program of XDP there"), "{refused}");
    assert_eq!(then, "4 done; `taut nic undo nic0` takes it back\n", "{}", ended.stderr);
}

/// A process that is killed in the middle has recorded what it did.
#[test]
fn a_record_outlives_its_process() {
    let Some(ended) = in_namespace(
        "$taut nic apply nic.toml > done &
child=$!
tries=0
while [ ! -s /run/taut/nic.json ]; do tries=$((tries + 1)); [ $tries -lt 1000000 ]; done
# It may have ended by itself meanwhile.
kill -9 $child 2> /dev/null || true
wait $child || true
$taut nic undo nic0 > undone
now",
    ) else {
        return;
    };
    assert_eq!((ended.stdout.as_str(), ended.code), (BEFORE, Some(0)), "{}", ended.stderr);
}

/// An apply that is killed over an earlier one leaves what was first to take back: at a rename of the records, and at the
/// messages to the kernel around the first of these.
#[test]
fn a_second_apply_that_is_killed() {
    if !has_strace() {
        return;
    }
    let Some(ended) = in_namespace(
        "sed 's/queues = 2/queues = 3/' nic.toml > nic3.toml
now > before
for moment in rename:1 rename:2 rename:3 sendto:8 sendto:9 sendto:10 sendto:11; do
    call=${moment%:*}
    $taut nic apply nic.toml > done
    strace -f -o trace -e trace=$call -e inject=$call:signal=KILL:when=${moment#*:} $taut nic apply nic3.toml \
        > killed 2>&1 && exit 3
    $taut nic undo nic0 > undone
    now > then
    cmp before then || { echo $moment; cat undone; exit 4; }
done",
    ) else {
        return;
    };
    assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(0)), "{}", ended.stderr);
}

/// A rename takes nothing away from what was set, and the records stay as long as the interface is there.
#[test]
fn an_interface_that_was_renamed() {
    let Some(ended) = in_namespace(
        "rename() { ip link set $1 down; ip link set $1 name $2; ip link set $2 up; }
$taut nic apply nic.toml > done
rename nic0 lan0
$taut nic undo lan0 > undone
wc -l < undone
rename lan0 nic0
now
$taut nic apply nic.toml > done
rename nic0 lan0
$taut nic undo nic.toml > undone
wc -l < undone
rename lan0 nic0
now
$taut nic apply nic.toml > done
rename nic0 lan0
ip link add nic0 type veth peer name nic7
$taut nic undo nic0
ip link del nic0
rename lan0 nic0
$taut nic undo nic0 > undone
wc -l < undone
$taut nic apply nic.toml > done
rename nic0 lan0
ip link del lan0
here=$(readlink /proc/self/ns/net)
$taut nic undo nic0 | sed \"s/net:.[0-9]*./HERE/\" | tail -n 1
$taut nic undo nic0 --forget $here
$taut nic undo nic0 --forget $here 2>&1 | cut -d ' ' -f 3-7
$taut nic undo nic0 2>&1 || echo \"code $?\"
ls /run/taut",
    ) else {
        return;
    };
    let absent = "taut: there is no network interface nic0: `ip link` lists them\ncode 2\n";
    let left = "channels: left as it is: its interface is not here: undo it when it is back, or, if that is gone, forget it \
                by `taut nic undo nic0 --forget 'HERE'`\n";
    let wanted = format!(
        "4\n{BEFORE}4\n{BEFORE}nothing to undo\n4\n{left}forgotten: 4 steps\nis the network namespace that\n\
         {absent}nic.lock\n"
    );
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (wanted.as_str(), ""));
}

#[test]
fn where_nothing_was_done_undo_leaves_nothing() {
    let Some(ended) = in_namespace(
        "$taut nic undo lo\n$taut doctor --undo\ntest ! -e /run/taut\n$taut nic plan lo | grep -c '  told ' || true",
    ) else {
        return;
    };
    assert_eq!(ended.stdout, "nothing to undo\nnothing to undo\n0\n", "{}", ended.stderr);
}

/// Records of a namespace that is gone: undo forgets those whose number this one has, and others when it is told to.
#[test]
fn a_namespace_that_is_gone() {
    let Some(ended) = in_namespace(
        "here=$(readlink /proc/self/ns/net)
$taut nic apply nic.toml > done
grep cookie /run/taut/nic.json > cookies
sed -i 's/\"cookie\": [0-9]*/\"cookie\": 18446744073709551615/' /run/taut/nic.json
$taut nic undo nic0
ls /run/taut
now
ip link set nic0 down
sed -i /cpus/d nic.toml
unshare --net --mount sh -c 'mount -t sysfs sysfs /sys
    ip link add nic0 numtxqueues 4 numrxqueues 4 type veth peer name nic1
    readlink /proc/self/ns/net > gone
    $taut nic apply nic.toml' > done
grep cookie /run/taut/nic.json >> cookies
sort -u cookies | wc -l
$taut nic undo nic0 | sed \"s/$(cat gone | tr -d '[]')/GONE/; s/net:.[0-9]*./GONE/g\" | head -n 1
$taut nic undo nic0 --forget $here 2>&1 | cut -d ' ' -f 3-7
$taut nic undo nic0 --forget elsewhere 2>&1 | cut -d ' ' -f 2-8
$taut nic undo nic1 --forget \"$(cat gone)\" 2>&1 | sed \"s/net:.[0-9]*./GONE/g\"
ip link set nic0 name lan0
$taut nic undo nic0 | sed \"s/net:.[0-9]*./GONE/g\" | tail -n 1
$taut nic undo nic0 --forget \"$(cat gone)\"
ls /run/taut",
    ) else {
        return;
    };
    let left = "it belongs to the network namespace GONE: undo it there, or, if that is gone, forget it by `taut nic undo \
                nic0 --forget 'GONE'`";
    let wanted = format!(
        "forgotten: 4 steps\nnothing to undo\nnic.lock\n{AFTER}2\nqdisc: left as it is: {left}\nis the network namespace that\n\
         elsewhere is no name of a network\nnothing is recorded of nic1 in GONE\nnothing to undo\n\
         channels: left as it is: {left}\nforgotten: 2 steps\nnic.lock\n"
    );
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (wanted.as_str(), ""));
}

/// An object for each step, and none where nothing is recorded.
#[test]
fn what_is_forgotten_is_told_as_json() {
    let Some(ended) = in_namespace(
        "$taut nic apply nic.toml > done
$taut nic undo nic0 > undone
sed -i /cpus/d nic.toml
unshare --net --mount sh -c 'mount -t sysfs sysfs /sys
    ip link add nic0 numtxqueues 4 numrxqueues 4 type veth peer name nic9
    readlink /proc/self/ns/net > gone
    $taut nic apply nic.toml' > done
cat gone
ip link set nic0 name lan0
$taut nic undo nic0 --forget \"$(cat gone)\" --json
$taut nic undo lan0 --forget \"$(cat gone)\" --json",
    ) else {
        return;
    };
    assert_eq!((ended.stderr.as_str(), ended.code), ("", Some(0)), "{}", ended.stdout);
    let (gone, forgotten) = ended.stdout.split_once('\n').unwrap();
    let of = |item: &str, from: &str, to: &str| {
        let forgotten = json!({"item": item, "from": from, "to": to, "namespace": gone});
        json!({"kind": "forgotten", "forgotten": forgotten})
    };
    let channels = of("channels", "2 rx, 2 tx", "4 rx, 4 tx");
    let qdisc = of("qdisc", "mq with a pfifo for each of 2 queues", "the kernel's own");
    assert_eq!(objects(forgotten), [channels, qdisc]);
}

#[test]
fn what_others_have_set_stays() {
    let Some(ended) = in_namespace(
        "tc qdisc add dev nic0 root handle 1: htb
$taut nic plan nic.toml | grep -A 2 ' qdisc '
$taut nic apply nic.toml > done
tc qdisc show dev nic0 | cut -d ' ' -f 2,3
echo 2 > $queues/tx-1/xps_cpus 2> /dev/null || echo 0 > $queues/tx-1/xps_cpus
$taut nic undo nic0 | grep 'left as it is' | cut -d ' ' -f 1-14
tc qdisc show dev nic0 | cut -d ' ' -f 2,3",
    ) else {
        return;
    };
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("  cannot    qdisc"), "{lines:?}");
    assert!(lines[2].contains("because htb 1: was made by somebody else"), "{lines:?}");
    assert_eq!([lines[3], lines[5]], ["htb 1:", "htb 1:"]);
    assert!(lines[4].starts_with("XPS of queue 1: left as it is: "), "{lines:?}");
}

#[test]
fn a_plan_changes_nothing_and_status_compares() {
    let Some(ended) = in_namespace(
        "now
$taut nic plan nic.toml --json > plan
$taut nic plan nic0 > /dev/null
now
ls /run/taut 2> /dev/null || true
$taut nic status nic.toml > /dev/null || echo \"code $?\"
$taut nic facts nic1 > nic1.json
sed -i s/nic0/nic1/ nic.toml
$taut nic plan nic.toml --facts nic1.json | head -n 1
echo ---
cat plan",
    ) else {
        return;
    };
    let (told, plan) = ended.stdout.split_once("---\n").unwrap();
    let wanted = format!("{BEFORE}{BEFORE}code 2\nnic1 (no device): critical queue 1 of 2, on processor 0\n");
    assert_eq!((told, ended.stderr.as_str()), (wanted.as_str(), ""));
    let steps = objects(plan);
    assert_eq!(steps[0]["step"]["item"], "channels");
    assert_eq!(steps[0]["step"]["able"]["change"]["channels"]["tx"], 2);
}

/// The files of /sys are those of the namespace that it was mounted in.
#[test]
fn a_foreign_sys() {
    let foreign = "because /sys is that of another network namespace";
    // The second has interfaces of the same names and numbers.
    for (one, other) in [("nic9", "nic8"), ("nic0", "nic1")] {
        let Some(ended) = in_namespace(&format!(
            "of() {{ cat /sys/class/net/$1/ifindex; }}
unshare --net sh -c \"ip link add {one} index $(of nic0) type veth peer name {other} index $(of nic1)
$taut nic plan {one}\" | grep -A 2 ' XPS '"
        )) else {
            return;
        };
        assert!(ended.stdout.contains(foreign), "{one}: {} {}", ended.stdout, ended.stderr);
    }
}

/// Where XPS cannot be looked at nothing is done that takes it away, and nothing is forgotten that was done to it.
#[test]
fn what_waits_for_its_own_sys() {
    let Some(ended) = in_namespace(
        "foreign() { unshare --mount sh -c 'umount /sys; \"$@\"' foreign \"$@\"; }
echo 1 > $queues/tx-1/xps_cpus
foreign $taut nic apply nic.toml > refused 2> told || echo \"code $?\"
now
echo 0 > $queues/tx-1/xps_cpus
$taut nic apply nic.toml > done
foreign $taut nic undo nic0 > left 2> told || echo \"code $?\"
cat told
$taut nic undo nic0 > undone
now
echo ---
cat refused left
echo ---
[ ! -e /dev/net/tun ] || ip tuntap add tap9 mode tap
[ ! -e /dev/net/tun ] || foreign $taut nic plan tap9 | head -n 1",
    ) else {
        return;
    };
    let parts: Vec<&str> = ended.stdout.split("---\n").collect();
    let as_it_was = BEFORE.replace("XPS ", "XPS 1");
    let wanted = format!("code 1\n{as_it_was}code 1\ntaut: 4 of 4 steps could not be taken back\n{BEFORE}");
    assert_eq!((parts[0], ended.stderr.as_str()), (wanted.as_str(), ""), "{}", parts[1]);
    assert_eq!(steps(parts[1], "failed"), ["channels"]);
    let told = parts[1].lines().filter(|line| line.contains("/sys is that of another network namespace"));
    assert!(told.count() >= 5, "{}", parts[1]);
    assert!(parts[2].is_empty() || parts[2].starts_with("tap9 (tun): "), "its driver: {}", parts[2]);
}

/// An interface that is in another namespace for a while keeps its records, also when it is named.
#[test]
fn an_interface_that_comes_back() {
    let Some(ended) = in_namespace(
        "sed 's/nic0/nic1/; /cpus/d' nic.toml > nic1.toml
$taut nic apply nic1.toml > done
index=$(cat /sys/class/net/nic1/ifindex)
unshare --net sh -c 'echo $$ > other; exec sleep 1000' > /dev/null &
child=$!
trap 'kill $child' EXIT
here=$(readlink /proc/self/ns/net)
tries=0
while [ ! -s other ] || [ $(readlink /proc/$child/ns/net) = $here ]; do
    tries=$((tries + 1)); [ $tries -lt 100000 ]
done
ip link set nic1 netns $child
$taut nic undo nic0
$taut nic undo nic1 | cut -d : -f 1-3
grep -c '\"item\"' /run/taut/nic.json
nsenter --net=/proc/$child/ns/net ip link set nic1 netns $$
[ $(cat /sys/class/net/nic1/ifindex) = $index ]
$taut nic undo nic1 | cut -d : -f 1
$taut nic apply nic1.toml > done
ip link del nic1
$taut nic undo nic1 --forget $here --json | grep -c forgotten
ls /run/taut",
    ) else {
        return;
    };
    let left =
        ["qdisc", "channels"].map(|item| format!("{item}: left as it is: its interface is not here\n"));
    let wanted = format!("nothing to undo\n{}2\nqdisc\nchannels\n2\nnic.lock\n", left.concat());
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (wanted.as_str(), ""));
}

/// The settings that the plan tells are taken by a participant, and mean what the file says.
#[test]
fn the_settings_that_go_with_a_plan() {
    let directory = tempfile::tempdir().unwrap();
    let facts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/nic/facts/i226.json");
    let file = directory.path().join("nic.toml");
    let wanted = "interface = \"enp2s0\"\ncritical_queues = [2, 3]\ncpus = [1, 3]\nlayer = 2\npcp = 6\n";
    std::fs::write(&file, wanted).unwrap();
    let mut command = bare(&format!("nic plan {} --json --facts {facts}", file.display()));
    command.current_dir("/");
    let steps = objects(&run(command).stdout);
    let step = steps.iter().find(|step| step["step"]["item"] == "settings of Taut").unwrap();
    let settings = directory.path().join("taut.toml");
    std::fs::write(&settings, step["step"]["then"].as_str().unwrap().replace("; ", "\n")).unwrap();
    let config = taut::Config::load_from(&settings).unwrap();
    let cpus: Vec<_> = config.driver_cpus.iter().map(|cpu| u32::try_from(*cpu).unwrap()).collect();
    assert_eq!((config.xdp_interface.as_str(), config.xdp_queues.as_slice()), ("enp2s0", &[2, 3][..]));
    assert_eq!((config.xdp_layer, config.xdp_pcp, cpus), (taut::XdpLayer::Bare, Some(6), vec![1, 3]));
}
