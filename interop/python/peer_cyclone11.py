"""The peer of Cyclone DDS 11: one writer or one reader, driven by a waitset.

The types are those of ../types.idl, written by hand: the IDL compiler of the
wheel does not start. Cyclone checks them against the other side's when that one
announces its types, so a slip here shows as an endpoint that never matches.
"""

import os
import sys
import time
from dataclasses import dataclass

from cyclonedds.core import DDSException, DDSStatus, InstanceState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final, key
from cyclonedds.idl.types import bounded_str, float64, int32, int64, sequence, uint8, uint32, uint64
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic

import peer_common as common


@dataclass
@final
class Plain(IdlStruct, typename="interop.Plain"):
    seq: uint32
    payload: sequence[uint8]


@dataclass
@final
class Keyed(IdlStruct, typename="interop.Keyed"):
    id: uint32
    key("id")
    seq: uint32
    payload: sequence[uint8]


@dataclass
@final
class Metric(IdlStruct, typename="telemetry.Metric"):
    name: bounded_str[64]
    key("name")
    seq: uint64
    sent_unix_ns: int64
    value: float64
    unit: bounded_str[16]


@dataclass
@final
class ShapeType(IdlStruct, typename="ShapeType"):
    color: bounded_str[128]
    key("color")
    x: int32
    y: int32
    shapesize: int32


TYPES = {"plain": Plain, "keyed": Keyed, "shape": ShapeType, "metric": Metric}


def number_of(text):
    """The instance number in a key such as COLOR-3."""
    return int(text.rpartition("-")[2])


def make(options, octets, seq):
    """Sample `seq`."""
    ident = seq % options.instances
    if options.type == "plain":
        return Plain(seq, octets.of(seq))
    if options.type == "keyed":
        return Keyed(ident, seq, octets.of(seq))
    if options.type == "shape":
        return ShapeType(f"COLOR-{ident}", seq, ident, seq + ident)
    return Metric(f"metric-{ident}", seq, time.time_ns(), seq * 0.5, "unit")


def ident_of(sample):
    """The instance a sample, or a key alone, belongs to."""
    if isinstance(sample, Keyed):
        return sample.id
    if isinstance(sample, ShapeType):
        return number_of(sample.color)
    if isinstance(sample, Metric):
        return number_of(sample.name)
    return 0


def count_one(tally, octets, sample):
    """Puts one taken sample into the tally."""
    state = {InstanceState.NotAliveDisposed: "disposed", InstanceState.NotAliveNoWriters: "no_writers"}.get(
        sample.sample_info.instance_state
    )
    if isinstance(sample, InvalidSample):
        if state:
            tally.state(ident_of(sample.key_sample), state)
        return
    ident = ident_of(sample)
    if isinstance(sample, (Plain, Keyed)):
        right = bytes(sample.payload) == octets.of(sample.seq)
        tally.sample(ident, sample.seq, len(sample.payload), right)
    elif isinstance(sample, ShapeType):
        tally.sample(ident, sample.x, 0, sample.y == ident and sample.shapesize == sample.x + ident)
    else:
        tally.sample(ident, sample.seq, 0, sample.value == sample.seq * 0.5 and sample.unit == "unit")
    if state and sample.sample_info.sample_rank == 0 and not isinstance(sample, Plain):
        tally.state(ident, state)


def endpoint_qos(options):
    """The policies a writer and a reader have in common."""
    depth = options.history
    kept = Policy.History.KeepLast(depth) if depth else Policy.History.KeepAll
    policies = [
        Policy.Reliability.Reliable(10_000_000_000) if options.reliable else Policy.Reliability.BestEffort,
        Policy.Durability.TransientLocal if options.transient_local else Policy.Durability.Volatile,
        kept,
    ]
    if options.transient_local:
        policies.append(Policy.DurabilityService(0, kept, -1, -1, -1))
    return Qos(*policies)


def group_qos(options):
    """The policies of a publisher or subscriber."""
    return Qos(Policy.Partition([options.partition])) if options.partition else Qos()


def left(end):
    """Nanoseconds until a monotonic time, at least 1: 0 would mean no wait at all."""
    return max(1, int((end - time.monotonic()) * 1e9))


def wait_on(waitset, end):
    """Waits for an event or for the end."""
    waitset.wait(left(end))


def wait_matched(writer, waitset, enough, end, matched):
    """Waits until `enough` says yes to the number of matched readers."""
    while True:
        matched.update(writer.get_publication_matched_status().current_count)
        if enough(matched.count):
            return True
        if time.monotonic() >= end:
            return False
        wait_on(waitset, end)


def write_all(options, writer):
    """Writes the samples, then ends the instances if asked to."""
    octets = common.Octets(options.size)
    pacer = common.Pacer(options.rate)
    for seq in range(options.count):
        pacer.wait()
        writer.write(make(options, octets, seq))
    for ident in range(options.instances):
        if options.final == "dispose":
            writer.dispose(make(options, octets, ident))
        elif options.final == "unregister":
            writer.unregister_instance(make(options, octets, ident))
    common.emit("sent", count=options.count)


def publish(options, participant, topic):
    """The whole life of a publisher."""
    end = time.monotonic() + options.timeout
    # Without the first policy unregistering would dispose as well. Without the
    # second this version writes XCDR2, which a peer that announces nothing lacks.
    qos = endpoint_qos(options) + Qos(
        Policy.WriterDataLifecycle(autodispose=False),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    )
    writer = DataWriter(Publisher(participant, qos=group_qos(options)), topic, qos=qos)
    writer.set_status_mask(DDSStatus.PublicationMatched)
    waitset = WaitSet(participant)
    waitset.attach(writer)
    matched = common.Matched()
    if not wait_matched(writer, waitset, lambda n: n >= options.wait_matched, end, matched):
        return common.EXIT_TIMED_OUT
    if options.hold:
        common.hold()
    write_all(options, writer)
    if options.wait_matched == 0 and not wait_matched(writer, waitset, lambda n: n >= 1, end, matched):
        return common.EXIT_TIMED_OUT
    everything = True
    if options.reliable:
        try:
            everything = writer.wait_for_acks(left(end))
        except DDSException as error:
            if error.code != DDSException.DDS_RETCODE_TIMEOUT:
                raise
            everything = False
        common.emit("acknowledged", all=everything)
    wait_matched(writer, waitset, lambda n: n == 0, time.monotonic() + options.linger, matched)
    return common.EXIT_COMPLETE if everything else common.EXIT_TIMED_OUT


def subscribe(options, participant, topic):
    """The whole life of a subscriber."""
    end = time.monotonic() + options.timeout
    reader = DataReader(Subscriber(participant, qos=group_qos(options)), topic, qos=endpoint_qos(options))
    reader.set_status_mask(DDSStatus.SubscriptionMatched | DDSStatus.DataAvailable)
    waitset = WaitSet(participant)
    waitset.attach(reader)
    octets = common.Octets(options.size)
    tally = common.Tally(options)
    matched = common.Matched()
    lingering = False
    while True:
        reader.take_status(DDSStatus.DataAvailable)
        matched.update(reader.get_subscription_matched_status().current_count)
        samples = reader.take(32)
        for sample in samples:
            count_one(tally, octets, sample)
        if not samples and not lingering and (tally.complete() or (matched.left and matched.count == 0)):
            lingering = True
            end = time.monotonic() + options.linger
        if time.monotonic() >= end:
            return tally.finish()
        if not samples:
            wait_on(waitset, end)


def main():
    """One domain on one interface, with multicast on it."""
    options = common.parse(sys.argv[1:], tuple(TYPES))
    config = (
        f'<General><Interfaces><NetworkInterface name="{options.interface}" multicast="true"/></Interfaces>'
        f"<Transport>{'udp6' if 'INTEROP_IPV6' in os.environ else 'udp'}</Transport>"
        "<AllowMulticast>true</AllowMulticast></General>"
        "<Discovery><SPDPInterval>1s</SPDPInterval></Discovery>"
    )
    domain = Domain(options.domain, config)
    participant = DomainParticipant(options.domain)
    if options.late:
        common.hold()
    topic = Topic(participant, options.topic, TYPES[options.type])
    code = (publish if options.role == "pub" else subscribe)(options, participant, topic)
    # Only a domain that is deleted announces its departure.
    del topic
    participant._delete(participant._ref)
    domain._delete(domain._ref)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
