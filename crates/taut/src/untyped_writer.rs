//! A writer without its type: the same code for all types, once in a program.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;

use taut_base::{Duration, Error, Guid, InstanceHandle, Result, Time};
use taut_cdr::{KeyHasher, Representation};
use taut_dcps::{Endpoint, Entity};
use taut_exec::{
    Call, Executor, Memory, Moment, Outlet, Patience, Payload, Suspension, monotonic_now, to_log,
};
use taut_mem::Pool;
use taut_qos::{DataWriterQos, DurabilityKind, History, PublisherQos, ReliabilityKind};
use taut_rtps::WriterIndex;
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::limits::WINDOW_CHANGES;

use crate::erase::representation;
use crate::instances::{Instances, Named};
use crate::participant::{DomainParticipant, wait_matched};

/// The capacity that a writer's buffers start with. Higher costs who writes little more memory, lower makes
/// them grow.
const BUFFER_SIZE: usize = 512;
/// How many buffers a writer remembers: as many as a KEEP_ALL writer may have under way, and who fills them next.
/// Fewer make such a writer allocate for each sample, more hold on to the memory of a deep history.
const BUFFERS: usize = WINDOW_CHANGES + 1;

/// The longest that the end of a writer waits for acknowledgements. Lower loses the last samples of a
/// program that writes and ends, higher delays one whose readers hang.
const LONGEST_GOODBYE: Duration = Duration::from_secs(1);

pub(crate) struct UntypedWriter {
    pub executor: Arc<Executor>,
    pub index: WriterIndex,
    pub guid: Guid,
    pub qos: DataWriterQos,
    pub representation: Representation,
    /// What a KEEP_LAST writer does.
    keep_last: Patience,
    pub tools: RefCell<Tools>,
    /// Loans that a task has dropped which was run within a call of the writer's: they go back with the next one that is lent.
    dropped: RefCell<Vec<Memory>>,
}

/// What only the writer's thread works with.
pub(crate) struct Tools {
    pub pool: Pool,
    pub hasher: KeyHasher,
    pub outlet: Outlet,
    pub instances: Instances,
}

#[cold]
fn is_in_a_call() -> Error {
    Error::PreconditionNotMet(
        "this writer is in a call on this thread, which runs the caller by its waker or listener: write once that is over, \
         or by another writer"
            .into(),
    )
}

/// Who asks for it is to know that nothing outlives the writer.
#[cold]
fn warn_of_durability(endpoint: &Endpoint<DataWriterQos, PublisherQos>) {
    let Endpoint { topic_name, qos, .. } = endpoint;
    to_log(|| {
        log::warn!(
            "topic {topic_name}: DURABILITY of a writer is {}, but Taut has no service that keeps samples beyond their \
             writer: late readers get what it holds while it lives, as with TRANSIENT_LOCAL",
            qos.durability
        );
    });
}

impl UntypedWriter {
    pub fn new(
        participant: &DomainParticipant,
        endpoint: Endpoint<DataWriterQos, PublisherQos>,
        suspension: Option<Arc<Suspension>>,
    ) -> Result<UntypedWriter> {
        endpoint.qos.check()?;
        endpoint.group.check()?;
        participant.executor.may_use()?;
        if endpoint.qos.durability > DurabilityKind::TransientLocal {
            warn_of_durability(&endpoint);
        }
        let executor = Arc::clone(&participant.executor);
        let (topic, qos) = (endpoint.topic_name.clone(), endpoint.qos.clone());
        let representation = representation(&qos.representation)?;
        let (index, guid) = executor.create_writer(endpoint)?;
        let outlet = executor.outlet(index, &qos);
        let mut outlet = outlet.expect("invariant: the writer was just created");
        if let Some(suspension) = suspension {
            outlet.follow(suspension);
        }
        let pool = Pool::new(BUFFER_SIZE, BUFFERS).over(executor.chunks(qos.transport_priority));
        let instances = Instances::new(&qos, topic);
        let tools = RefCell::new(Tools { pool, hasher: KeyHasher::default(), outlet, instances });
        let is_within = guid.entity.is_keyed()
            && qos.durability != DurabilityKind::Volatile
            && qos.resource_limits.max_samples.is_some();
        let keep_last = if is_within { Patience::KeepLastWithin } else { Patience::KeepLast };
        Ok(UntypedWriter {
            executor,
            index,
            guid,
            qos,
            representation,
            keep_last,
            tools,
            dropped: RefCell::default(),
        })
    }

    pub fn patience(&self, may_wait: bool) -> Patience {
        match self.qos.history {
            History::KeepAll => Patience::KeepAll(may_wait.then_some(self.qos.reliability.max_blocking_time)),
            _ => self.keep_last,
        }
    }

    /// What a call of the writer works with.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] within another call: one that drives runs the tasks of wakers.
    #[inline]
    pub fn tools(&self) -> Result<RefMut<'_, Tools>> {
        self.tools.try_borrow_mut().map_err(|_| is_in_a_call())
    }

    pub fn lend(&self, len: usize) -> Result<Memory> {
        let Tools { pool, outlet, .. } = &mut *self.tools()?;
        self.dropped.borrow_mut().drain(..).for_each(|memory| outlet.take_back(memory));
        self.executor.lend(outlet, pool, len)
    }

    pub fn take_back(&self, memory: Memory) {
        match self.tools.try_borrow_mut() {
            Ok(mut tools) => tools.outlet.take_back(memory),
            Err(_) => self.dropped.borrow_mut().push(memory),
        }
    }

    /// Registers an instance whose end has this payload; one that has none is the only one.
    pub fn name(&self, instance: InstanceHandle, key: Vec<u8>) -> Result<Named> {
        if key.is_empty() {
            return Ok(Named { instance, is_new: false });
        }
        let is_new = self.tools()?.instances.register(instance, |to| {
            *to = key;
            Ok(())
        })?;
        Ok(Named { instance, is_new })
    }

    pub fn publish_loan(&self, named: Named, memory: Memory, len: usize, moment: Moment) -> Result<()> {
        self.executor.may_use()?;
        let call = &mut Call::new(ChangeKind::Alive, named.instance, moment, self.patience(true));
        let mut tools = match self.tools() {
            Ok(tools) => tools,
            Err(refused) => {
                self.dropped.borrow_mut().push(memory);
                return Err(refused);
            }
        };
        let Tools { pool, outlet, instances, .. } = &mut *tools;
        let written = self.executor.publish(outlet, call, &mut Payload::of(pool, memory, len));
        if !instances.is_empty() {
            instances.end_write(named, ChangeKind::Alive, written.is_ok());
        }
        written
    }

    pub fn wait_matched_count(&self, count: usize, timeout: Duration) -> Result<()> {
        wait_matched(&self.executor, self.guid, (count, timeout), |participant| {
            participant
                .writer(self.index)
                .map_or(0, |writer| writer.publication_matched.current_count as usize)
        })
    }

    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> Result<()> {
        self.executor.wait_for_acknowledgments(&mut self.tools()?.outlet, timeout)
    }

    pub fn status<S: Default>(&self, take: impl FnOnce(&mut taut_dcps::DataWriter) -> S) -> S {
        let status = self.executor.look(|participant, _| participant.writer_mut(self.index).map(take));
        status.ok().flatten().unwrap_or_default()
    }

    pub fn assert_liveliness(&self) {
        let _ = self.executor.with(|participant, now| participant.assert_liveliness(now, self.index));
    }

    /// Ends the instances while readers are there to see it. Returns whether there were any.
    fn end_instances(&mut self, until: Time) -> bool {
        let Tools { pool, outlet, instances, .. } = self.tools.get_mut();
        if instances.is_empty() {
            return false;
        }
        let matched = self.executor.look(|participant, _| {
            participant.writer(self.index).is_some_and(|writer| writer.publication_matched.current_count > 0)
        });
        let matched = matched.unwrap_or_default();
        let mut any = false;
        while matched && let Some((instance, kind, key)) = instances.end_next() {
            // What a durable writer holds it holds however long it waits.
            let left = || until.since(monotonic_now());
            let patience = match (self.qos.history, self.qos.durability) {
                (History::KeepLast(_), _) => Patience::KeepLast,
                (_, DurabilityKind::Volatile) => Patience::KeepAll(Some(left())),
                _ => Patience::KeepAll(None),
            };
            let mut buffer = pool.claim();
            buffer.clear();
            buffer.extend_from_slice(&key);
            let payload = &mut Payload::buffer(pool, buffer, key.len());
            let call = &mut Call::new(kind, instance, Moment::now(), patience);
            any = true;
            if self.executor.publish(outlet, call, payload).is_err() {
                break;
            }
        }
        any
    }

    /// Gives matched reliable readers until then to acknowledge.
    fn await_acknowledgments(&mut self, until: Time) {
        let outlet = &mut self.tools.get_mut().outlet;
        if self.qos.reliability.kind == ReliabilityKind::Reliable && !self.executor.is_acknowledged(outlet) {
            self.executor.await_last_acknowledgments(outlet, until);
        }
    }
}

impl Drop for UntypedWriter {
    /// Gives matched reliable readers up to `max_blocking_time` to acknowledge, so that a program may
    /// write and end. Samples come first: with KEEP_LAST the end of an instance takes their place.
    fn drop(&mut self) {
        if self.executor.ends_elsewhere() {
            return self.tools.get_mut().outlet.leave_to_parent();
        }
        let until = monotonic_now() + self.qos.reliability.max_blocking_time.min(LONGEST_GOODBYE);
        self.await_acknowledgments(until);
        if self.end_instances(until) {
            self.await_acknowledgments(until);
        }
        self.executor.await_sent(self.index, until);
        self.executor.remove_hooks(Entity::Writer(self.index));
        self.executor.delete_writer(self.index);
    }
}
