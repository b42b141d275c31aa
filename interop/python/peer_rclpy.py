"""The peer of ROS 2: a talker or a listener of std_msgs/String.

The command line is that of the other peers as far as ROS knows the words:
`--topic chatter` is the ROS name, which is `rt/chatter` on the wire. The network
comes from the environment (RMW_IMPLEMENTATION, FASTDDS_BUILTIN_TRANSPORTS), so
the runner starts it in a namespace that has one interface.
"""

import sys
import time

import rclpy
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

import peer_common as common

PREFIX = "Hello World: "


def profile(options):
    """The QoS of both sides."""
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE if options.reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if options.transient_local else DurabilityPolicy.VOLATILE,
        history=HistoryPolicy.KEEP_LAST if options.history else HistoryPolicy.KEEP_ALL,
        depth=options.history or 1,
    )


def wait_matched(node, publisher, enough, end, matched):
    """Waits until `enough` says yes to the number of matched subscriptions."""
    while True:
        matched.update(publisher.get_subscription_count())
        if enough(matched.count):
            return True
        if time.monotonic() >= end:
            return False
        rclpy.spin_once(node, timeout_sec=0.02)


def publish(options, node):
    """The whole life of a talker."""
    end = time.monotonic() + options.timeout
    publisher = node.create_publisher(String, options.topic, profile(options))
    matched = common.Matched()
    if not wait_matched(node, publisher, lambda n: n >= options.wait_matched, end, matched):
        return common.EXIT_TIMED_OUT
    if options.hold:
        common.hold()
    pacer = common.Pacer(options.rate)
    for seq in range(options.count):
        pacer.wait()
        publisher.publish(String(data=f"{PREFIX}{seq}"))
    common.emit("sent", count=options.count)
    everything = True
    if options.reliable:
        left = max(0.0, end - time.monotonic())
        everything = publisher.wait_for_all_acked(rclpy.duration.Duration(seconds=left))
        common.emit("acknowledged", all=everything)
    wait_matched(node, publisher, lambda n: n == 0, time.monotonic() + options.linger, matched)
    return common.EXIT_COMPLETE if everything else common.EXIT_TIMED_OUT


def subscribe(options, node):
    """The whole life of a listener. Any text counts; one of a talker of ours is numbered."""
    end = time.monotonic() + options.timeout
    received = 0

    def heard(message):
        nonlocal received
        received += 1
        if not options.quiet:
            common.emit("sample", seq=received - 1, id=0, size=len(message.data), valid=True, ok=True, text=message.data)

    subscription = node.create_subscription(String, options.topic, heard, profile(options))
    matched = common.Matched()
    common.emit("ready", count=0)
    while received < options.count and time.monotonic() < end:
        matched.update(node.count_publishers(subscription.topic_name))
        if matched.left and matched.count == 0:
            break
        rclpy.spin_once(node, timeout_sec=0.02)
    common.emit("summary", received=received, distinct=received, out_of_order=0, duplicates=0, corrupt=0,
                disposed=0, no_writers=0)
    return common.EXIT_COMPLETE if received >= options.count else common.EXIT_TIMED_OUT


def main():
    """One node in one domain."""
    options = common.parse(sys.argv[1:], ("string",))
    rclpy.init(args=[], domain_id=options.domain)
    node = rclpy.create_node(f"interop_{options.role}")
    code = (publish if options.role == "pub" else subscribe)(options, node)
    node.destroy_node()
    rclpy.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main())
