//! `doctor`, in networks of its own: each test that changes something has a namespace with a /run that goes with it,
//! and a /sys that cannot be written, so that the machine stays as it is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Ended, bare, has_strace, objects, run, taut};

/// Two interfaces with a route to the groups of discovery, and nothing else; `$taut` is the command. Ends with the first line that fails.
const NETWORK: &str = "set -eu
mount -t tmpfs tmpfs /run
mount -o bind,ro /sys /sys
ip link set lo up
ip link add dds0 type veth peer name dds1
ip address add 198.18.0.1/24 dev dds0
ip link set dds0 up
ip link set dds1 up
ip route add 239.255.0.0/16 dev dds0
";

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
    let possible = inside(NETWORK).code == Some(0);
    if !possible {
        println!("left out: it needs root, to make a network namespace");
    }
    possible.then(|| inside(&format!("{NETWORK}{lines}")))
}

/// The finding of this name among the lines of `doctor --json`.
fn finding(text: &str, name: &str) -> Value {
    let found =
        objects(text).into_iter().find(|object| object["kind"] == "finding" && object["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn loopback_carries_datagrams() {
    let ended = run(taut(183, "doctor --json"));
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    for name in ["multicast test on lo", "unicast test on lo"] {
        assert_eq!(finding(&ended.stdout, name)["state"], "good", "{}", ended.stdout);
    }
    let harmful = objects(&ended.stdout).iter().any(|object| object["state"] == "harmful");
    assert_eq!(ended.code, Some(if harmful { 2 } else { 0 }), "{}", ended.stdout);
}

#[test]
fn a_directory_that_participants_cannot_have() {
    let mut command = taut(183, "doctor --json");
    command.env("TAUT_LOCAL_DIRECTORY", "/nonexistent");
    let ended = run(command);
    assert_eq!(
        (ended.code, &finding(&ended.stdout, "local directory")["state"]),
        (Some(2), &"harmful".into())
    );
}

/// One that this process may have.
fn processor() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.split(['-', ',']).next().unwrap().parse().unwrap()
}

#[test]
fn processors_that_a_participant_cannot_have() {
    let own = processor();
    for (cpus, why) in [
        ("1000".to_owned(), "sched_setaffinity [1000]: EINVAL".to_owned()),
        (format!("{own},1000"), format!("sched_setaffinity [{own}, 1000]: the kernel leaves out [1000]")),
        (format!("{own},5000"), format!("sched_setaffinity [{own}, 5000]: ")),
    ] {
        let with = |arguments: &str| {
            let mut command = taut(79, arguments);
            command.env("TAUT_DRIVER_CPUS", &cpus);
            run(command)
        };
        assert_eq!(with("pub shapes --no-wait --count 1").code, Some(2), "no participant can be made");
        let ended = with("doctor --json");
        let found = finding(&ended.stdout, "processors of its own");
        assert_eq!((&found["state"], ended.code), (&Value::from("harmful"), Some(2)), "{found}");
        assert!(found["seen"].as_str().unwrap().starts_with(&why), "{found}");
    }
}

/// The command that is shown mends it. What goes with no deadline is refused before anything is tried.
#[test]
fn a_deadline_that_a_participant_cannot_have() {
    let with = |arguments: &str, variable: &str, value: &str| {
        let mut command = taut(58, arguments);
        command.env(variable, value).env("TAUT_DRIVER_DEADLINE", "200us/1ms/1ms");
        run(command)
    };
    let is_made = with("pub shapes --no-wait --count 1", "TAUT_DRIVER_CPUS", "").code == Some(0);
    let found = finding(&with("doctor --json", "TAUT_DRIVER_CPUS", "").stdout, "deadline of the driver");
    assert!(found["state"] == "good" || found["mend"]["command"].is_string(), "{found}");
    assert_eq!(found["state"] == "good", is_made, "{found}");
    for (variable, value) in [("TAUT_DRIVER_CPUS", "0"), ("TAUT_DRIVER_PRIORITY", "4")] {
        let told = ["config", "doctor", "ls"].map(|command| {
            let ended = with(command, variable, value);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{command} {variable}");
            ended.stderr
        });
        assert!(
            told[0].contains("driver_deadline and driver_") && told.iter().all(|one| *one == told[0]),
            "{told:?}"
        );
    }
}

#[test]
fn a_page_of_a_hundred_columns() {
    let mut command = taut(184, "doctor");
    // What is asked for and refused is told in the longest lines.
    command.env("TAUT_DRIVER_PRIORITY", "50").env("TAUT_LOCK_MEMORY", "true").env("TAUT_DRIVER_CPUS", "0");
    let ended = run(command);
    assert!(ended.stdout.starts_with("Domain 184 on lo (127.0.0.1): "), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "no terminal, no colours");
    for line in ended.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_port_that_is_dropped() {
    let Some(ended) = in_namespace(
        "nft add table inet t
nft add chain inet t in '{ type filter hook input priority 0; policy accept; }'
nft add rule inet t in udp dport 7400 drop
$taut --interface dds0 doctor --json || echo \"code $?\" >&2
$taut --interface dds0 --domain 1 doctor --json >&2",
    ) else {
        return;
    };
    assert!(ended.stderr.starts_with("code 2\n"), "{}", ended.stderr);
    let firewall = finding(&ended.stdout, "firewall");
    assert_eq!(firewall["state"], "harmful");
    assert_eq!(firewall["seen"], "rule 1 of inet t in drops UDP 7400 on dds0");
    assert_eq!(firewall["mend"]["command"], "nft insert rule inet t in udp dport 7400-7649 accept");
    assert_eq!(
        (&firewall["mend"]["fix"], &firewall["mend"]["undo"]),
        (&true.into(), &"taut doctor --undo".into())
    );
    let lost = finding(&ended.stdout, "multicast test on dds0");
    assert_eq!(
        (&lost["state"], &lost["seen"]),
        (&"harmful".into(), &"to 239.255.0.1:7400: not back within 200 ms".into())
    );
    assert_eq!(finding(&ended.stdout, "unicast test on dds0")["state"], "good");
    let other_domain = ended.stderr.split_once('\n').unwrap().1;
    assert_eq!(finding(other_domain, "firewall")["state"], "good", "{other_domain}");
}

/// `meets SECONDS` is whether a participant gets what another one sends within so long; `fix` and `undo` are the doctor's,
/// with the changes that they say.
const MEETING: &str = "export TAUT_DOMAIN=121 TAUT_INTERFACE=dds0
meets() {
  $taut sub string --topic t --count 1 --timeout $1 > /dev/null 2>&1 & sub=$!
  $taut pub string --topic t --count 1 --wait $1 > /dev/null 2>&1 || true
  if wait $sub; then echo met; else echo missed; fi
}
fix() { $taut doctor --fix --json > /run/fix || true; changes /run/fix; }
undo() { $taut doctor --undo --json > /run/undo || true; changes /run/undo; }
changes() { grep '\"kind\":\"change\"' $1 | grep -E '\"(rules of|routes by) ' || echo none; }
";

/// Of each change that is told among the lines: where it belongs, what was and what is there, and why it was left.
fn told(text: &str) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(change) if change["kind"] == "change" && change["left"].is_null() => {
            format!("{}: {} -> {}", word(&change["path"]), word(&change["from"]), word(&change["to"]))
        }
        Ok(change) if change["kind"] == "change" => {
            format!("{}: left: {}", word(&change["path"]), word(&change["left"]))
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect()
}

/// Two participants meet with it, and not before nor after. Domain 121 has the ports from 37650 on.
#[test]
fn a_firewall_that_drops_is_mended_and_taken_back() {
    let added = "rules of inet t in: none -> udp dport 37650-37899 accept";
    let taken = "rules of inet t in: udp dport 37650-37899 accept -> none";
    for (policy, rule) in [("drop", "tcp dport 22 accept"), ("accept", "udp dport 1024-65535 drop")] {
        let Some(ended) = in_namespace(&format!(
            "{MEETING}
nft add table inet t
nft add chain inet t in '{{ type filter hook input priority 0; policy {policy}; }}'
nft add rule inet t in {rule}
nft list ruleset > /run/before
meets 1
fix
meets 10
fix
undo
nft list ruleset | diff /run/before -
meets 1
undo"
        )) else {
            return;
        };
        let wanted = ["missed", added, "met", "none", taken, "missed", "none"];
        assert_eq!(told(&ended.stdout), wanted, "{policy}: {}{}", ended.stdout, ended.stderr);
    }
}

/// What was in front of the rule that drops stays there: a sender that is shut out is shut out still. What somebody has
/// removed is not missed, and what is not the doctor's stays.
#[test]
fn the_rules_of_others_hold_as_they_did() {
    let Some(ended) = in_namespace(&format!(
        "{MEETING}
nft add table ip t
nft add chain ip t in '{{ type filter hook input priority 0; policy accept; }}'
nft add chain ip t more
nft add rule ip t in ip saddr 192.0.2.1 drop
nft add rule ip t in jump more
nft add rule ip t more ip saddr 192.0.2.2 drop
nft add rule ip t more udp dport 37650-37899 drop
fix
nft list chain ip t in | grep -c comment || true
nft list chain ip t more | sed -n 's/^\t\t//p'
nft add rule ip t more udp dport 37650-37899 accept
nft flush chain ip t more
nft add rule ip t more udp dport 37650-37899 accept
undo
nft list chain ip t more | sed -n 's/^\t\t//p'"
    )) else {
        return;
    };
    let said = told(&ended.stdout);
    let comment = said[3].split_once(" accept comment ").expect("it has one").1;
    assert!(comment.starts_with("\"taut doctor --fix: 37650-37899 before "), "{comment}");
    let wanted = [
        "rules of ip t more: none -> udp dport 37650-37899 accept",
        "0",
        "ip saddr 192.0.2.2 drop",
        &format!("udp dport 37650-37899 accept comment {comment}"),
        "udp dport 37650-37899 drop",
        "rules of ip t more: left: it is gone",
        "udp dport 37650-37899 accept",
    ];
    assert_eq!(said, wanted, "{}", ended.stderr);
}

/// Of its owner's rules none is touched: what its owner is told is shown.
#[test]
fn a_firewall_that_is_somebodys() {
    let Some(ended) = in_namespace(&format!(
        "{MEETING}
nft add table inet firewalld
nft add chain inet firewalld filter_INPUT '{{ type filter hook input priority 10; policy drop; }}'
nft list ruleset > /run/before
fix
nft list ruleset | diff /run/before -
grep '\"name\":\"firewall\"' /run/fix >&2"
    )) else {
        return;
    };
    assert_eq!(ended.stdout, "none\n", "{}", ended.stderr);
    let found = finding(&ended.stderr, "firewall");
    assert_eq!((&found["state"], &found["mend"]["fix"]), (&"harmful".into(), &false.into()), "{found}");
    assert!(
        found["mend"]["command"].as_str().unwrap().starts_with("firewall-cmd --add-port=37650-37899/udp")
    );
}

/// A program that does not name the interface reaches the group by it, as long as it is there.
#[test]
fn a_missing_route_is_added_and_taken_back() {
    let Some(ended) = in_namespace(&format!(
        "{MEETING}
reaches() {{ if ip route get 239.255.0.1 > /dev/null 2>&1; then echo reached; else echo unreachable; fi; }}
shown() {{ ip route show table all 239.255.0.0/16 | sed 's/ *$//'; }}
ip route del 239.255.0.0/16
reaches
fix
shown
reaches
fix
undo
reaches
fix > /dev/null
ip route del 239.255.0.0/16
ip route add 239.255.0.0/16 dev dds0
undo
shown
ip route del 239.255.0.0/16
ip route add unreachable 224.0.0.0/4
fix
reaches
ip link del dds0
undo"
    )) else {
        return;
    };
    let (added, taken) = ("routes by dds0: none -> 239.255.0.0/16", "routes by dds0: 239.255.0.0/16 -> none");
    let gone = "routes by dds0: left: it is gone";
    let wanted = [
        "unreachable",
        added,
        "239.255.0.0/16 dev dds0 proto 74 scope link",
        "reached",
        "none",
        taken,
        "unreachable",
        gone,
        "239.255.0.0/16 dev dds0 scope link",
        added,
        "reached",
        gone,
    ];
    assert_eq!(told(&ended.stdout), wanted, "{}", ended.stderr);
}

#[test]
fn a_user_may_add_nothing() {
    let Some(ended) = in_namespace(&format!(
        "{MEETING}
ip route del 239.255.0.0/16
cp $taut /run/command
mkdir -m 777 /run/user
taut=\"setpriv --reuid 65534 --regid 65534 --clear-groups env XDG_RUNTIME_DIR=/run/user /run/command\"
fix
ls /run/user/taut
ip route show 239.255.0.0/16"
    )) else {
        return;
    };
    let why = "RTM_NEWROUTE 239.255.0.0/16 by dds0: EPERM: Operation not permitted; root may: use sudo";
    let wanted = [&format!("routes by dds0: left: {why}"), "doctor.lock"];
    assert_eq!(told(&ended.stdout), wanted, "{}", ended.stderr);
}

/// The command that is shown mends it.
#[test]
fn what_is_shown_helps() {
    let Some(ended) = in_namespace(
        "nft add table inet t
nft add chain inet t in '{ type filter hook input priority 0; policy drop; }'
ip link set dds0 multicast off
nft insert rule inet t in udp dport 7400-7649 accept
ip link set dds0 multicast on
$taut --interface dds0 doctor --json",
    ) else {
        return;
    };
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(finding(&ended.stdout, "firewall")["state"], "good");
    assert_eq!(finding(&ended.stdout, "multicast test on dds0")["state"], "good");
}

#[test]
fn multicast_that_is_off() {
    let Some(ended) = in_namespace(
        "ip link set dds0 multicast off
$taut doctor --json || true",
    ) else {
        return;
    };
    let found = finding(&ended.stdout, "multicast on dds0");
    assert_eq!((&found["state"], &found["seen"]), (&"harmful".into(), &"off".into()));
    assert_eq!(found["mend"]["command"], "ip link set dds0 multicast on");
}

#[test]
fn a_fix_is_taken_back() {
    let Some(ended) = in_namespace(
        "value() { cat /proc/sys/net/ipv4/igmp_max_memberships; }
echo 0 > /proc/sys/net/ipv4/igmp_max_memberships
$taut --interface dds0 doctor > /dev/null || echo \"code $?\"
$taut --interface dds0 doctor --fix --json > /run/fix || true
grep change /run/fix | grep igmp
value
ls /run/taut
$taut doctor --undo
value
ls /run/taut
$taut doctor --undo
echo 0 > /proc/sys/net/ipv4/igmp_max_memberships
$taut --interface dds0 doctor --fix > /dev/null || true
echo 7 > /proc/sys/net/ipv4/igmp_max_memberships
$taut doctor --undo
value",
    ) else {
        return;
    };
    let path = "/proc/sys/net/ipv4/igmp_max_memberships";
    let wanted = format!(
        "code 2\n{{\"kind\":\"change\",\"path\":\"{path}\",\"from\":\"0\",\"to\":\"20\",\"left\":null}}\n20\n\
         doctor.json\ndoctor.lock\n{path}: 20 -> 0\n0\ndoctor.lock\nnothing to undo\n\
         {path}: left as it is: somebody has set it to 7 since\n7\n"
    );
    assert_eq!((ended.stdout, ended.stderr.as_str()), (wanted, ""));
}

/// Killed over an earlier one, before and behind the record of what it writes, at the value itself, and before it has
/// recorded that this is written.
#[test]
fn a_second_fix_that_is_killed() {
    if !has_strace() {
        return;
    }
    let Some(ended) = in_namespace(
        "cd /run
setting=/proc/sys/net/ipv4/igmp_max_memberships
ip address add 198.18.1.1/24 dev dds1
for moment in rename:1 write:1 rename:2; do
    call=${moment%:*}
    echo 0 > $setting
    $taut --interface dds0 doctor --fix > done || true
    # As if that had needed less.
    sed -i 's/\"written\": \"20\"/\"written\": \"1\"/' /run/taut/doctor.json
    echo 1 > $setting
    if [ $call = write ]; then of=\"-P $setting\"; else of=; fi
    strace -f -o trace $of -e trace=$call -e inject=$call:signal=KILL:when=${moment#*:} \
        $taut --interface dds0 --interface dds1 doctor --fix > killed 2>&1 && exit 3
    echo \"$call at $(cat $setting)\"
    $taut doctor --undo > undone
    cat $setting
    test ! -e /run/taut/doctor.json
done",
    ) else {
        return;
    };
    let wanted = "rename at 1\n0\nwrite at 1\n0\nrename at 20\n0\n";
    assert_eq!((ended.stdout.as_str(), ended.code), (wanted, Some(0)), "{}", ended.stderr);
}

/// --undo names what is recorded elsewhere, and forgets it if it is told to; what this namespace has stays recorded.
#[test]
fn a_namespace_that_is_gone() {
    let Some(ended) = in_namespace(
        "cd /run
setting=/proc/sys/net/ipv4/igmp_max_memberships
unshare --net sh -c \"ip link set lo up
    readlink /proc/self/ns/net > gone
    echo 0 > $setting
    $taut --interface lo doctor --fix\" > done 2>&1 || true
grep -c cookie taut/doctor.json > /dev/null
gone=$(cat gone)
$taut doctor --undo | grep igmp | sed \"s/net:.[0-9]*./GONE/g\"
$taut doctor --forget \"$gone\" 2> /dev/null || echo \"code $?\"
$taut doctor --undo --forget $(readlink /proc/self/ns/net) 2>&1 | grep -c 'undo without --forget'
$taut doctor --undo --forget \"$gone\" --json | grep igmp | sed \"s/net:.[0-9]*./GONE/g\"
test ! -e taut/doctor.json
$taut doctor --undo --forget \"$gone\" | sed \"s/net:.[0-9]*./GONE/g\"
for wrong in gone net: 'net:[]' 'net:[1x]' 4026532288; do
    $taut doctor --undo --forget \"$wrong\" 2>&1 | grep -c 'is no name of a network namespace'
done",
    ) else {
        return;
    };
    let path = "/proc/sys/net/ipv4/igmp_max_memberships";
    let wanted = format!(
        "{path}: left as it is: it belongs to the network namespace GONE: undo it there, or, if that is gone, forget it \
         by `taut doctor --undo --forget 'GONE'`\ncode 2\n1\n{{\"kind\":\"change\",\"path\":\"{path}\",\"from\":\"20\",\
         \"to\":\"0\",\"left\":\"forgotten, as it belongs to the network namespace GONE\"}}\nnothing is recorded of GONE\nnothing to undo\n1\n1\n1\n1\n1\n"
    );
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (wanted.as_str(), ""));
}

/// Who is not root is told that there is something of root's, and not that there is nothing.
#[test]
fn a_fix_of_root_is_not_forgotten_by_a_user() {
    let Some(ended) = in_namespace(
        "value() { cat /proc/sys/net/ipv4/igmp_max_memberships; }
cp $taut /run/command
mkdir -m 777 /run/user
undo() { XDG_RUNTIME_DIR=/run/user setpriv --reuid 65534 --regid 65534 --clear-groups /run/command doctor --undo; }
undo
echo 0 > /proc/sys/net/ipv4/igmp_max_memberships
$taut --interface dds0 doctor --fix > /dev/null || true
undo || echo \"code $?\"
value
$taut doctor --undo > /dev/null
undo",
    ) else {
        return;
    };
    assert_eq!(ended.stdout, "nothing to undo\ncode 2\n20\nnothing to undo\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("sudo taut doctor --undo"), "{}", ended.stderr);
}

/// And no other flag with it: one that the interface has for a while is not made to stay, nor one that it had undone.
#[test]
fn the_flag_of_multicast_is_set_and_taken_back() {
    let Some(ended) = in_namespace(
        "shown() { ip -o link show dds0 | grep -o MULTICAST || echo off; }
shown
ip link set dds0 multicast off
shown
$taut --interface dds0 doctor --fix > /run/page || true
grep 'flags of' /run/page
shown
ip link set dds0 down
$taut doctor --undo
shown
ip -o link show dds0 | grep -c ',UP' || true
ip link set dds0 up
$taut --interface dds0 doctor --fix > /run/page || true
ip link del dds0
ip link add dds0 type veth peer name dds1
ip link set dds0 multicast on
$taut doctor --undo | grep 'flags of'
shown",
    ) else {
        return;
    };
    let wanted = "MULTICAST\noff\nflags of dds0: none -> MULTICAST\nMULTICAST\nflags of dds0: MULTICAST -> none\noff\n0\n\
                  flags of dds0: left as it is: it is gone\nMULTICAST\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (wanted, ""));
}

#[test]
fn another_network_keeps_its_value() {
    let Some(ended) = in_namespace(
        "echo 0 > /proc/sys/net/ipv4/igmp_max_memberships
$taut --interface dds0 doctor --fix > /dev/null || true
unshare --net $taut doctor --undo
cat /proc/sys/net/ipv4/igmp_max_memberships
$taut doctor --undo",
    ) else {
        return;
    };
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let path = "/proc/sys/net/ipv4/igmp_max_memberships";
    assert!(
        lines[0].starts_with(&format!("{path}: left as it is: it belongs to the network namespace net:["))
    );
    assert_eq!(lines[1..], ["20", &format!("{path}: 20 -> 0")]);
}

/// /sys is the host's, and so are its interrupts.
#[test]
fn the_interrupts_of_another_network() {
    let Some(ended) = in_namespace(
        "$taut --interface dds0 doctor --json > found || true
cat found",
    ) else {
        return;
    };
    let found = finding(&ended.stdout, "interrupts");
    assert_eq!((&found["state"], &found["mend"]), (&"not_looked".into(), &Value::Null), "{found}");
    assert!(
        found["seen"].as_str().unwrap().starts_with("/sys is that of another network namespace"),
        "{found}"
    );
}

/// Without the rights of root each check says what it lacks, and none fails.
#[test]
fn a_user_without_privileges() {
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    if !Command::new("setpriv").args(nobody).arg("true").status().is_ok_and(|status| status.success()) {
        println!("left out: it needs root and setpriv");
        return;
    }
    // The user may not enter the directory that the command was built in.
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("taut");
    std::fs::copy(env!("CARGO_BIN_EXE_taut"), &program).unwrap();
    let as_nobody = |arguments: &str, runtime: Option<&Path>| {
        let plain = bare(arguments);
        let mut command = Command::new("setpriv");
        command.args(nobody).arg(&program).args(plain.get_args()).current_dir("/");
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        match runtime {
            Some(runtime) => command.env("XDG_RUNTIME_DIR", runtime),
            None => command.env_remove("XDG_RUNTIME_DIR"),
        };
        command
    };
    let ended = run(as_nobody("doctor --json --measure --interface lo", None));
    assert!(matches!(ended.code, Some(0 | 2)) && ended.stderr.is_empty(), "{}", ended.stderr);
    let firewall = finding(&ended.stdout, "firewall");
    assert_eq!(firewall["state"], "not_looked", "{firewall}");
    assert!(firewall["seen"].as_str().unwrap().contains("nft"), "{firewall}");
    let waking = finding(&ended.stdout, "waking a thread");
    assert_ne!(waking["state"], "good", "{waking}");
    assert!(waking["seen"].as_str().unwrap().contains("open /dev/cpu_dma_latency: "), "{waking}");
    let priority = finding(&ended.stdout, "real-time priority");
    assert!(
        priority["seen"].as_str().unwrap().starts_with("sched_setscheduler SCHED_FIFO 1: "),
        "{priority}"
    );
    let throttle = finding(&ended.stdout, "real-time throttle");
    assert!(throttle["seen"].as_str().unwrap().contains("not measured: sched_setscheduler"), "{throttle}");
    let standing = finding(&ended.stdout, "standing still");
    assert!(standing["seen"].as_str().unwrap().ends_with("as SCHED_FIFO is not granted"), "{standing}");
    for name in ["multicast test on lo", "unicast test on lo"] {
        assert_eq!(finding(&ended.stdout, name)["state"], "good", "{name} needs no privilege");
    }

    let undo = run(as_nobody("doctor --undo", None));
    assert_eq!((undo.code, undo.stdout.as_str()), (Some(2), ""));
    assert!(
        undo.stderr.contains("XDG_RUNTIME_DIR is not set; use `sudo taut doctor --undo`"),
        "{}",
        undo.stderr
    );
    let undo = run(as_nobody("nic undo lo", None));
    assert_eq!((undo.code, undo.stdout.as_str()), (Some(2), ""));
    assert!(undo.stderr.contains("XDG_RUNTIME_DIR is not set; use `sudo taut nic undo`"), "{}", undo.stderr);
    let runtime = directory.path().join("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o777)).unwrap();
    let undo = run(as_nobody("doctor --undo", Some(&runtime)));
    assert_eq!((undo.code, undo.stdout.as_str()), (Some(0), "nothing to undo\n"), "{}", undo.stderr);
}

/// What may not be written is said with the call, and nothing else is changed for it.
#[test]
fn a_refused_fix() {
    let Some(ended) = in_namespace(
        "mount -o bind,ro /proc/sys /proc/sys
$taut --interface dds0 --config /run/taut.toml doctor --fix --json > /dev/null || true
echo 'receive_buffer = 1073741824' > /run/taut.toml
$taut --interface dds0 --config /run/taut.toml doctor --fix --json || echo \"code $?\"
ls /run/taut",
    ) else {
        return;
    };
    let change =
        ended.stdout.lines().find(|line| line.contains("rmem_max") && line.contains("change")).unwrap();
    let change: Value = serde_json::from_str(change).unwrap();
    let why = change["left"].as_str().unwrap();
    assert!(
        why.starts_with("write /proc/sys/net/core/rmem_max: Read-only file system (os error 30); "),
        "{why}"
    );
    assert!(ended.stdout.ends_with("code 1\ndoctor.lock\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("1 of 1 value could not be changed"), "{}", ended.stderr);
}

/// What is told of memory for frames is what a participant meets: at the usual limit it is refused without CAP_IPC_LOCK.
#[test]
fn what_it_takes_to_go_past_the_kernel() {
    for (more, state, told) in [
        ("", "harmful", "29360128 B of frames are above the limit of locked memory"),
        (",+ipc_lock", "good", "published 1 sample"),
    ] {
        let Some(ended) = in_namespace(&format!(
            "restricted=\"prlimit --memlock=8388608:8388608 \
             setpriv --inh-caps=-all --bounding-set=-all,+net_admin,+net_raw,+bpf{more}\"
export TAUT_XDP_INTERFACE=dds0
$restricted $taut --interface dds0 doctor --json || true
$restricted $taut --interface dds0 pub string --topic t --count 1 --no-wait || true"
        )) else {
            return;
        };
        assert_eq!(finding(&ended.stdout, "privileges of XDP")["state"], "good");
        let memory = finding(&ended.stdout, "memory of frames");
        assert_eq!(memory["state"], state, "{memory}");
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
        if state == "harmful" {
            assert_eq!(memory["seen"], "mlock: at most 8 MiB, frames take 28 MiB");
        }
    }
}

/// Runs the doctor and a participant on an interface that is so, and takes both at their word.
fn refused_by_xdp(lines: &str, settings: &str) -> Option<(Vec<Value>, String)> {
    let ended = in_namespace(&format!(
        "{lines}
export TAUT_INTERFACE=dds0 TAUT_XDP_INTERFACE=dds0 {settings}
$taut doctor --json || true
$taut pub string --topic t --count 1 --no-wait || true"
    ))?;
    let mut found = objects(&ended.stdout);
    found.retain(|object| {
        object["family"] == "bypass" && object["name"].as_str().unwrap().ends_with(" of XDP")
    });
    Some((found, ended.stderr))
}

/// What a participant would be refused for is told before: of an interface that is not fit, what of it is not.
#[test]
fn an_interface_that_is_not_fit_for_xdp() {
    let wide = "ip link set dds1 mtu 62000; ip link set dds0 mtu 62000";
    for (lines, settings, name, seen, told) in [
        ("", "", "", "", "published 1 sample"),
        (
            "",
            "TAUT_XDP_INTERFACE=none7 TAUT_XDP_QUEUES=9",
            "interface of XDP",
            "there is no none7 here",
            "there is no interface none7 here",
        ),
        ("ip link set dds0 down", "", "interface of XDP", "dds0 is down", "dds0 is down"),
        (
            "",
            "TAUT_INTERFACE=lo",
            "interface of XDP",
            "dds0 has no address that the participant uses",
            "has no address that the participant uses",
        ),
        (
            "",
            "TAUT_XDP_QUEUES=9",
            "queues of XDP",
            "xdp_queues names queue 9, and dds0 has 1 queue, from 0 on",
            "dds0 has no queue 9",
        ),
        (wide, "", "MTU of XDP", "62000 B on dds0, at most 61326", "frames of an MTU of 62000 B on dds0"),
    ] {
        let Some((found, participant)) = refused_by_xdp(lines, settings) else { return };
        let bad: Vec<_> = found.iter().filter(|finding| finding["state"] != "good").collect();
        assert!(participant.contains(told), "{settings}: {participant}");
        if name.is_empty() {
            assert_eq!((bad.len(), found.len()), (0, 5), "{found:?}");
            continue;
        }
        assert_eq!(bad.len(), 1, "{found:?}");
        assert_eq!((&bad[0]["name"], &bad[0]["seen"]), (&name.into(), &seen.into()));
        assert_eq!(bad[0]["state"], "harmful");
        assert!(!bad[0]["mend"]["command"].as_str().unwrap().is_empty());
    }
}

/// One program has an interface: another participant's, too.
#[test]
fn an_interface_that_has_a_program_of_xdp() {
    let Some((found, participant)) = refused_by_xdp(
        "TAUT_XDP_INTERFACE=dds0 $taut --interface dds0 sub string --topic t > /dev/null 2>&1 &
other=$!
trap 'kill $other; wait $other || true' EXIT
until ip link show dds0 | grep -q ' prog/xdp '; do kill -0 $other; done",
        "",
    ) else {
        return;
    };
    let bad: Vec<_> = found.iter().filter(|finding| finding["state"] != "good").collect();
    assert_eq!((bad.len(), &bad[0]["name"]), (1, &"program of XDP".into()), "{found:?}");
    let seen = bad[0]["seen"].as_str().unwrap();
    assert!(seen.starts_with("program ") && seen.ends_with(" is attached to dds0"), "{seen}");
    assert_ne!(seen, "program 0 is attached to dds0");
    assert_eq!(bad[0]["state"], "harmful");
    assert!(participant.contains("another XDP program is attached to dds0"), "{participant}");
}
