//! Every bound of the protocol, named, with what goes wrong when it is too low or too high.

use taut_base::Duration;

/// Payload bytes of one fragment where the path takes a whole datagram. A loopback datagram holds 65,507 B;
/// below, room for the headers. Lower costs datagrams per sample; higher does not fit. The field on the wire
/// has 16 bits.
pub const FRAGMENT_SIZE: usize = 64_000;
/// Bytes of one RTPS message that Taut builds: the largest UDP/IPv4 payload is 65,507.
pub const MESSAGE_SIZE: usize = 65_000;
/// How many numbers the ACKNACKs and GAPs of a message may have, bits that are not set among them: 32 full sets. Each is noted,
/// or looked for, by itself and for each reader. Lower drops what peers indeed say, which they repeat; higher makes the step
/// longer that handles one datagram, of which one of 65 kB has room for 130,000.
pub const MESSAGE_NUMBERS: u32 = 8_192;
/// Of how many participants a message may tell what they have not said before: one, as a rule, or what one passes on for a few
/// others. Where the table is full each of them has another one leave. Lower drops what is repeated anyway, higher makes that
/// step longer: a message of 65 kB has room for 590.
pub const MESSAGE_ANNOUNCEMENTS: u32 = 8;
/// Payload bytes of the smallest fragments. IPv4 gets 548 bytes through everywhere; lower would have a lie about
/// a path make datagrams of headers.
pub const FRAGMENT_SIZE_MIN: usize = 512;
/// Bytes of a datagram around a fragment: header 20, INFO_DST 16, INFO_TS 12, DATA_FRAG 36, inline QoS up to 32.
pub const FRAGMENT_HEADERS: usize = 120;
/// Datagrams that leave in one call. Linux cuts what it is given into at most 64, before 5.16 with the headers
/// counted in; since 6.9 into 128.
pub const ROW: usize = 63;
/// The smallest datagram that a path is believed to need.
pub const DATAGRAM_MIN: usize = FRAGMENT_SIZE_MIN + FRAGMENT_HEADERS;
/// The largest serialized payload: a longer one is refused by `write`, and of what peers send lost. Lower refuses what peers
/// may send; the memory is only taken as the bytes arrive.
pub const SAMPLE_SIZE: u32 = 1 << 30;
/// Buffers for assembled samples that are kept for the next ones, and the largest that is. Lower makes
/// large samples pay for fresh memory each time (a page fault for every 4 KiB), higher holds more.
pub const SAMPLE_BUFFERS: usize = 8;
/// See [`SAMPLE_BUFFERS`].
pub const SAMPLE_BUFFER_SIZE: usize = 16 << 20;
/// Parts of one datagram that are gathered; Linux takes 1,024 (UIO_MAXIOV), a stack array holds these.
pub const MESSAGE_PARTS: usize = 96;

/// Unacknowledged changes that a KEEP_ALL writer may have under way. Higher holds more of the processor's cache
/// than there is, lower stalls.
pub const WINDOW_CHANGES: usize = 4_096;
/// The same in datagrams. Higher overruns the receive buffer of a peer (a small datagram takes about 0.8 kB of
/// the kernel's account), lower stalls.
pub const WINDOW_DATAGRAMS: usize = 1_024;
/// The same in bytes; at least one change is always let through.
pub const WINDOW_BYTES: usize = 16 << 20;
/// A heartbeat asks for an acknowledgement once this many changes are out since the last that did: half of the
/// window, so that it does not close on a peer that keeps up. Lower, and the thread that hears the answers meets the
/// one that writes more often (a quarter: 6 % less of 1 KiB over UDP); higher, and the writer waits for them.
pub const ACK_EVERY_CHANGES: usize = WINDOW_CHANGES / 2;
/// The same in datagrams.
pub const ACK_EVERY_DATAGRAMS: usize = WINDOW_DATAGRAMS / 2;
/// The same in bytes: a sixteenth, as samples that are acknowledged give back their memory, and an answer is little beside
/// 1 MiB. Lower has large samples answered one by one, higher holds more of what has arrived long ago.
pub const ACK_EVERY_BYTES: usize = WINDOW_BYTES / 16;

/// Bytes that a writer sends again before others have their turn; at least one change or fragment. Lower takes more
/// calls for a large repair, higher lets fresh changes wait longer behind it.
pub const REPAIR_TURN: usize = 64 << 10;

/// Changes that KEEP_LAST no longer keeps and that wait to be sent once. Lower drops what a burst has written
/// before the port had a chance, higher holds more of a burst that it cannot carry.
pub const UNSENT_CHANGES: usize = 1_024;

/// Changes that KEEP_LAST no longer keeps and that readers take all the same, each one at a time. Lower leaves some of
/// many slow readers without a whole one, higher holds more for them.
pub const KEPT_CHANGES: usize = 16;
/// The same in bytes; at least one change is kept.
pub const KEPT_BYTES: usize = WINDOW_BYTES;
/// How long a reader is sent changes apart from all others without having all, and how long one may be silent then. After
/// that it is tried again whether it keeps up. Lower fills its buffer more often with what it cannot take, higher keeps
/// one back for longer that had only lost much once.
pub const APART: Duration = Duration::from_millis(1_000);

/// Changes that a KEEP_LAST history drops at once, when all have acknowledged them. Lower leaves more of a deep one for later, and
/// below what a stream writes between two acknowledgements it always holds some; higher makes a step longer, in which a
/// reader that was stopped acknowledges all at once: a change takes some 50 ns.
pub const FORGOTTEN: usize = 4_096;

/// First heartbeat after the last write that nobody has acknowledged: while a stream goes on, those
/// that ride behind its data are enough. Lower disturbs a stream with pauses, higher lets a lost last
/// sample wait. At 10 ms it came just when a loop of 100 Hz writes again.
pub const HEARTBEAT_FIRST: Duration = Duration::from_millis(12);
/// A stream puts its heartbeat off when that is due within this, so that no timer of it comes due while it goes on. A
/// driver's alarm that has been set for it rings all the same, for nothing, and is set anew for when it is due by then. Lower
/// and that is sooner, so that it rings more often, or is the next timer of its processor; higher, and each write of a quick
/// stream moves a timer, not one a millisecond.
pub const HEARTBEAT_PUT_OFF: Duration = Duration::from_millis(11);
/// In a long row of single datagrams a heartbeat rides behind one at most this often. Lower costs both sides of a quick
/// exchange some 3 % of their time, higher lets what is lost in the midst of it wait.
pub const HEARTBEAT_RIDES: Duration = Duration::from_micros(200);
/// So many datagrams in a row have one each. Lower leaves what is lost at the end of a short burst to the timer, higher
/// is worth less to an exchange that lasts.
pub const HEARTBEAT_EACH: u32 = 16;
/// But a stream without pauses is asked for acknowledgements after this all the same. Lower disturbs it
/// more, higher holds its history longer.
pub const HEARTBEAT_IN_STREAM: Duration = Duration::from_millis(100);
/// Heartbeats back off to this while nobody answers.
pub const HEARTBEAT_MAX: Duration = Duration::from_millis(1_000);
/// And to this while a write waits for room, if nobody has answered: what is asked and answered may be lost, each time again.
/// Lower asks who is gone more often, higher has the write wait.
pub const HEARTBEAT_FOR_ROOM: Duration = Duration::from_millis(100);
/// So many times for each write that waits. Lower and one that waits for longer is told of room late, higher asks who is silent
/// for longer when nobody waits any more.
pub const ASKS_FOR_ROOM: u32 = 100;
/// How long the first answers to discovery are believed to take. Lower asks twice for what is being answered where many
/// start at once and are slow, higher leaves it unnoticed for longer that one of the first was lost.
pub const DISCOVERY_ANSWER: Duration = Duration::from_millis(20);
/// Discovery waits no longer for an answer. Lower asks twice on a machine that is this slow, higher lets losses pass for
/// slowness.
pub const DISCOVERY_PATIENCE: Duration = Duration::from_millis(50);
/// That an endpoint is gone is kept for so long though all that are matched know it. Lower leaves one that was cut off for
/// longer believing in the endpoint until this participant's lease is over, higher tells newcomers more that is over.
pub const GONE_KEPT: Duration = Duration::from_secs(100);
/// Of so many readers that were lost a durable writer knows for so long what they have heard. Fewer and one of many that come
/// back may believe in an instance that has ended, more has ends wait for those that do not.
pub const LOST: usize = 64;
/// Of so many writers that were lost a reader knows for so long how far they had come. Fewer and what one of many has written
/// comes again when it is back, more takes more memory, 56 B each.
pub const LOST_WRITERS: usize = 1_024;
/// Of so many instances that have ended a KEEP_LAST writer keeps the last changes for readers that have not acknowledged them.
/// Lower and of the instances of a large writer that goes slow readers hear of fewer, higher and one that takes nothing costs a
/// writer that makes up ever new instances more memory. A reader knows as many.
pub const ENDED: usize = 65_536;
/// Of so many participants that were lost it is kept for so long what they had said of themselves. Fewer and more of many that
/// come back are found when they announce themselves only, more takes more memory: what each has said.
pub const LOST_PEERS: usize = 64;
/// One that was lost is found by what it goes on to say for so long. Lower and one that is about to lose this side, as both were
/// cut off, is found by that and has to be found again; higher leaves one that has not without its samples for longer.
pub const LOST_PATIENCE: Duration = Duration::from_secs(3);
/// So many endpoints that are gone are kept at most where all that are matched know it.
pub const GONE: usize = 1_024;
/// And so many where one that has answered before does not know it. Lower has one that is slow believe in the first of them,
/// higher takes more memory for one that is not there any more.
pub const GONE_UNHEARD: usize = 16 * GONE;
/// Numbers already asked for are asked for again after this. Lower doubles repairs that are under
/// way, higher leaves a lost repair to wait.
pub const NACK_REPEAT: Duration = Duration::from_millis(10);
/// Requests back off to this while nothing arrives.
pub const NACK_REPEAT_MAX: Duration = HEARTBEAT_MAX;
/// A reader that has all and asks for a heartbeat all the same gets one at most this often. Lower lets
/// one that always asks keep both sides busy, higher delays one whose answer was lost.
pub const ANSWER_REPEAT: Duration = Duration::from_millis(100);
/// So often a reader is answered at once that asks for what it was sent and has not more than before. Lower has a repair wait
/// that was lost as often, higher sends more to one that throws it away.
pub const VAIN_ANSWERS: u32 = 2;
/// How long the answer waits after that. It doubles up to [`ANSWER_REPEAT`]. Lower sends more to one that throws it away, higher
/// has it wait for longer once it has room.
pub const VAIN_REST: Duration = Duration::from_millis(10);
/// Questions for a first heartbeat after which a reader counts as greeted even so. Lower takes one whose
/// greetings were lost for one that has heard them, higher keeps one that never sets the final flag waiting.
pub const DEAF_QUESTIONS: u32 = 16;

/// Changes that a reader holds per writer while an earlier one is missing; beyond, the last ones are asked for again.
pub const PENDING_CHANGES: usize = 2_048;
/// The same in bytes; at least one change is held. Lower has more of a stream of large samples sent again after a loss, higher
/// lets a writer fill this side's memory while nobody takes.
pub const PENDING_BYTES: usize = WINDOW_BYTES;
/// Intervals of irrelevant numbers kept per writer.
pub const GAP_INTERVALS: usize = 256;
/// Samples in assembly per writer.
pub const ASSEMBLIES: usize = 16;
/// Bytes of samples in assembly per writer; at least one sample is. Lower has more of long samples sent again after a loss,
/// higher lets a writer that leaves each unfinished fill this side's memory.
pub const ASSEMBLY_BYTES: usize = 64 << 20;
/// Questions for fragments that nothing comes of, in a row, after which the whole sample is asked for. Lower has all of a large
/// sample sent again whose answers are slow or lost, higher waits longer for one that its writer does not have any more.
pub const VAIN_QUESTIONS: u32 = 4;
/// Fragments below [`SMALL_FRAGMENT`] that wait for an earlier one, per sample; more are asked for again. Lower repeats
/// more of a writer that has such fragments, higher holds more for a byte each.
pub const SMALL_FRAGMENTS: usize = 256;
/// Bytes of a fragment that is kept in more than four times its length: in a buffer of [`KEPT`] bytes. Lower lets a peer fill
/// memory with few bytes, higher asks again for what some writer indeed sends so.
pub const SMALL_FRAGMENT: u16 = 512;
/// Bytes of a buffer for what outlives its frame, at least. Lower has it grow for what is longer, higher takes more for what is
/// short.
pub const KEPT: usize = 2_048;
/// How long a volatile reader holds what comes for all readers for a greeting once the writer's participant knows it.
/// Lower than a few heartbeats that get lost and it may take what was written before the match, higher and one whose
/// greeting never comes waits longer for its first samples.
pub const GREETING_PATIENCE: Duration = Duration::from_secs(1);
/// How long a best-effort reader takes nothing else while no more of its history comes. Lower and on a slow path fresh
/// changes overtake history, which is lost; higher and more of them are if the word that history is over gets lost.
pub const HISTORY_PATIENCE: Duration = Duration::from_secs(1);
/// History that is pushed to a reliable reader when it matches, before it has to ask.
pub const REPLAY_CHANGES: usize = 256;

/// Announcements of participants in assembly. Lower and of many that announce themselves in fragments at the same time some
/// are found later, higher has who makes them up take more memory.
pub const ANNOUNCEMENTS: usize = 64;
/// The largest announcement that is put together: a parameter of 64 KiB, and as much again for all others. Lower does not
/// find who has more to say, higher has who makes them up take more memory.
pub const ANNOUNCEMENT_SIZE: u32 = 1 << 17;
/// The same of what built-in writers say. Lower and an endpoint with a long type description is not found, higher has who makes
/// them up take more memory: sixteen for each of its built-in writers.
pub const DISCOVERY_SIZE: u32 = 1 << 20;
/// Changes of built-in writers that wait to be handled; more wait with their writers' proxies. Lower has a peer with many
/// endpoints send some of them again, higher has who makes them up take more memory.
pub const INBOX: usize = 4_096;
/// The longest announcement of a known participant that is kept as it came, so that it is not read again each time that it is
/// said: most have some hundred bytes. Lower reads more of them, which takes memory each time; higher has who makes up
/// participants take more memory. *Units*: bytes.
pub const SAID: usize = 4_096;
/// Participants that one participant knows.
pub const PEERS: usize = 4_096;
/// Endpoints of one peer.
pub const ENDPOINTS_PER_PEER: usize = 16_384;
/// Endpoints of all peers; those that have answered nothing yet have half of that. Lower and a domain has fewer, higher and
/// who makes up peers takes more memory, some 1 kB for each.
pub const ENDPOINTS: usize = 262_144;
/// Reasons why endpoints do not match; of more, who has most of them gives some up. Lower tells fewer, higher has who makes up
/// endpoints take more memory, some 200 B for each.
pub const REFUSALS: usize = 16_384;
/// A step in which comparing PARTITION has cost so much matches nothing more: of [`taut_qos::MAX_WORK`], which is the most of
/// one match. Each match counts as one that is gone through as a peer says that its writers are alive. Lower costs a step for each of those that have patterns, higher makes a step longer that samples may wait for.
pub const COMPARED_STEP: usize = 8_192;
/// Endpoints that a peer names, matches of them, and events that come of both, in one step. Lower costs a step for each, with a
/// look for samples behind it, higher makes a step longer that samples may wait for: a match takes some 10 us.
pub const INBOX_STEP: usize = 16;
/// The same with the datagram that brings them, if nothing is left of those before it: a driver receives some in one step. Lower
/// has more of them wait for a step of their own, higher makes that one longer.
pub const INBOX_AT_ONCE: usize = 8;
/// Matches that begin or end with a local endpoint, in one step. Lower costs a turn of the token for each, higher makes a step
/// longer that samples may wait for: a match takes some 2 us.
pub const LOCAL_STEP: usize = 16;
/// Peers that are looked at in one step, whether each is to be told directly that this participant is still there. Lower costs
/// more timers for each announcement, higher makes a step longer: a look takes some 0.2 us, more with many initial peers.
pub const TELL_STEP: usize = 32;
/// Changes that readers of this participant are given of a history in one step. Lower costs a turn of the token for each,
/// higher makes a step longer that samples may wait for: a change takes some 0.5 us.
pub const LOCAL_CHANGES: usize = 256;
/// Locators of one entity that are used.
pub const LOCATORS: usize = 16;
/// Matches or endpoints of a peer that one step is about where it is forgotten, or all its matches change. Lower costs a
/// timer for each, higher makes a step longer, of which a driver does as many in a row as it does timers.
pub const PEER_STEP: usize = 2;
/// Matches of a peer that are looked at in one step where it has announced itself, for writers that have said nothing, and
/// those that greet in one step where it has come to know this side's endpoints. Lower costs more timers for each
/// announcement, higher makes a step longer where many are to be asked, or to greet: a greeting takes less than 1 us.
pub const ASK_STEP: usize = 32;
/// All matches with a peer are gone through at most this often for what the peer says: that it is reached elsewhere, or
/// that it has forgotten this side. Lower lets a peer, or who takes its name, keep this side busy with a few bytes,
/// higher delays one that moves twice in a row.
pub const LOOK_REPEAT: Duration = Duration::from_millis(1_000);
/// A peer's writers that have said nothing are asked again, and the peer is told of this side if those are its built-in
/// ones, at most this often. Higher than the time between its first announcements delays one that has missed the first
/// answer; lower lets one that answers each announcement by its own, and never says what it has, keep both sides busy.
pub const ASK_REPEAT: Duration = Duration::from_millis(50);
/// The pause doubles up to this while a built-in writer that has been asked says nothing. Lower asks one that never will
/// the more often for as long as it lives, higher delays one that did not listen for that long.
pub const ASK_REPEAT_MOST: Duration = Duration::from_millis(3_000);
/// A participant that cannot say that it is there is told in answer to its announcement no more than so many times as many
/// bytes: of QUIC, for an address that nobody has shown to be his (RFC 9000 §8). Lower has those that announce little forget
/// this side, higher has somebody who makes them up send more to an address that he chooses.
pub const TOLD_BACK: usize = 3;
/// The longest lease of a participant whose built-in endpoints have answered nothing: the one of who names none (RTPS 2.5
/// table 9.14), three times the usual period of announcements. Lower forgets one that announces itself more seldom and is
/// slow to answer; higher has somebody who makes up participants that live for ever keep this one busy for longer.
pub const SILENT_LEASE: Duration = Duration::from_secs(100);
/// Such a one is sent so many datagrams of discovery for each of its announcements: it is asked ever more rarely, so those of
/// some seconds. Lower has one that is slow to answer, and announces itself seldom, find this side's endpoints later; higher
/// has somebody who makes it up send more to an address that he chooses.
pub const SILENT_ASKED: u32 = 12;
/// A lease whose end is noticed so much later than it came has ended while nobody looked: what the peer has said meanwhile
/// may still lie in a socket. Lower gives others their grace whose timers are late by as much as any step takes, higher
/// has a process that was stopped for that little forget who said that it lives just then.
pub const LEASE_LATE: Duration = Duration::from_millis(1);
/// So long what lies in the sockets then has to be received. Lower is less than a full buffer takes on a slow machine,
/// higher believes for longer in who ended meanwhile.
pub const LEASE_GRACE: Duration = Duration::from_millis(250);
/// One that announces itself from two addresses behind a router is sent to at the one that was heard first, until nothing has come
/// from there for so long, or for its lease. Lower has its matches go to and fro between the two, higher sends for longer to where
/// it was.
pub const SOURCE_KEPT: Duration = Duration::from_millis(100_000);
/// A peer that says the same for so long that only one that has lost all it knew would say counts as started again.
/// Lower takes what the network holds back or repeats for that, higher leaves one that did start again unheard.
/// One that says so itself is believed once in as much.
pub const RESTART_AFTER: Duration = Duration::from_millis(1_000);
/// A participant that keeps the addresses of this one is told so often that it leaves, until it is heard of. Lower leaves one
/// behind where the network loses what is told first after it has changed, higher disturbs one that cannot answer for longer.
pub const STRANDED_TOLD: u32 = 5;
/// How long it is given to find this one anew. Lower, and it is told again while it does; higher leaves one for longer that
/// has not heard it.
pub const STRANDED_REPEAT: Duration = Duration::from_millis(2_000);
/// Events that wait for the layer above; it drains them after every call.
pub const EVENTS: usize = 65_536;

/// Announcements in quick succession at the start, for peers whose first one was lost.
pub const INITIAL_ANNOUNCEMENTS: u32 = 5;
/// The time between these.
pub const INITIAL_ANNOUNCEMENT_PERIOD: Duration = Duration::from_millis(100);
