//! The instances that a DataWriter has registered: what RESOURCE_LIMITS counts, and what ends with the writer.
//! DCPS 1.4 §2.2.2.4.2, §2.2.3.19, §2.2.3.21.
//!
//! Owns their handles and keys. Must never write. Belongs to the thread that has the DataWriter.

use std::collections::BTreeMap;

use taut_base::{Error, InstanceHandle, Result};
use taut_exec::to_log;
use taut_qos::DataWriterQos;
use taut_rtps::history_cache::ChangeKind;

/// Instances that a writer remembers if its RESOURCE_LIMITS name no number, as many as a reader does. Lower and readers see
/// of more of them only that they have no writers when the writer is deleted; higher and a writer that never unregisters
/// keeps more memory: some 100 B and the key of each.
const DEFAULT_MAX_INSTANCES: usize = 65_536;

/// Bytes of all keys that a writer remembers; of an instance beyond that readers see only that it has no writers.
const MAX_KEY_BYTES: usize = 16 << 20;

/// What readers have been told of an instance last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Nothing,
    Alive,
    Disposed,
}

/// An instance that a change is written of.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub instance: InstanceHandle,
    /// It was not registered before.
    pub is_new: bool,
}

impl Named {
    /// That of a type without a key.
    pub const ONLY: Named = Named { instance: InstanceHandle::NIL, is_new: false };
}

struct Known {
    /// The payload of a change that ends it; empty if there was no memory for it.
    key: Box<[u8]>,
    told: Told,
}

/// The instances of one writer. *Cost*: O(log n), O(1) for the one that was written last; a new one allocates.
pub(crate) struct Instances {
    known: BTreeMap<InstanceHandle, Known>,
    key_bytes: usize,
    /// There have been more than are remembered.
    is_partial: bool,
    /// Whom to name when it is told that some end without a word; then empty.
    topic: String,
    /// RESOURCE_LIMITS max_instances.
    limit: Option<usize>,
    /// WRITER_DATA_LIFECYCLE autodispose_unregistered_instances.
    autodispose: bool,
    /// The one that was written last: it is known to be alive.
    recent: Option<InstanceHandle>,
}

impl Instances {
    pub fn new(qos: &DataWriterQos, topic: String) -> Instances {
        Instances {
            known: BTreeMap::new(),
            key_bytes: 0,
            is_partial: false,
            topic,
            limit: qos.resource_limits.max_instances.map(|limit| limit as usize),
            autodispose: qos.writer_data_lifecycle.autodispose_unregistered_instances,
            recent: None,
        }
    }

    /// Registers an instance, if it is not. `key` writes what is to be sent when it ends. Returns whether it is new. The log
    /// tells once that there are more than are remembered.
    ///
    /// *Errors*: [`Error::OutOfResources`] beyond max_instances; those of `key`.
    #[inline]
    pub fn register(
        &mut self,
        instance: InstanceHandle,
        key: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<bool> {
        if self.recent == Some(instance) || self.known.contains_key(&instance) {
            return Ok(false);
        }
        if self.known.len() >= self.limit.unwrap_or(DEFAULT_MAX_INSTANCES) {
            if let Some(limit) = self.limit {
                return Err(too_many(limit));
            }
            self.is_partial = true;
            self.warn_once();
            return Ok(false);
        }
        let mut bytes = Vec::new();
        key(&mut bytes)?;
        if self.key_bytes + bytes.len() > MAX_KEY_BYTES {
            bytes.clear();
            self.warn_once();
        }
        self.key_bytes += bytes.len();
        self.known.insert(instance, Known { key: bytes.into(), told: Told::Nothing });
        Ok(true)
    }

    /// No error, as each is written as any other.
    #[cold]
    fn warn_once(&mut self) {
        let topic = std::mem::take(&mut self.topic);
        if !topic.is_empty() {
            to_log(|| {
                log::warn!(
                    "topic {topic}: a writer remembers {DEFAULT_MAX_INSTANCES} instances, and {MAX_KEY_BYTES} B of their keys: of \
                     others readers see only that they have no writers when it goes; unregister those that have ended"
                );
            });
        }
    }

    /// May an instance be unregistered? *Errors*: [`Error::PreconditionNotMet`] if it is not registered, as far as is known.
    pub fn check_registered(&self, instance: InstanceHandle) -> Result<()> {
        if !self.is_partial && !self.known.contains_key(&instance) {
            let text =
                "this writer has not registered the instance: dispose of it if it is to end for all writers";
            return Err(Error::PreconditionNotMet(text.into()));
        }
        Ok(())
    }

    /// A change of the instance was written, or refused: that registers nothing.
    #[inline]
    pub fn end_write(&mut self, named: Named, kind: ChangeKind, is_written: bool) {
        if is_written {
            self.note(named.instance, kind);
        } else if named.is_new {
            self.forget(named.instance);
        }
    }

    #[inline]
    fn note(&mut self, instance: InstanceHandle, kind: ChangeKind) {
        if kind == ChangeKind::Alive && self.recent == Some(instance) {
            return;
        }
        let told = match kind {
            ChangeKind::Alive => Told::Alive,
            ChangeKind::NotAliveDisposed | ChangeKind::AliveThenDisposed => Told::Disposed,
            _ => return self.forget(instance),
        };
        self.recent = None;
        if let Some(known) = self.known.get_mut(&instance) {
            known.told = told;
            self.recent = Some(instance).filter(|_| told == Told::Alive);
        }
    }

    /// The instance is registered no longer, or was registered for a change that could not be written.
    #[cold]
    pub fn forget(&mut self, instance: InstanceHandle) {
        self.recent = None;
        self.key_bytes -= self.known.remove(&instance).map_or(0, |known| known.key.len());
    }

    /// The key of an instance, as a change that ends it has it, if that is remembered.
    pub fn key(&self, instance: InstanceHandle) -> Option<&[u8]> {
        self.known.get(&instance).map(|known| &*known.key)
    }

    /// Is none known?
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The next instance that ends with the writer, by which change and with which payload; it is forgotten.
    pub fn end_next(&mut self) -> Option<(InstanceHandle, ChangeKind, Box<[u8]>)> {
        self.recent = None;
        while let Some((instance, known)) = self.known.pop_first() {
            self.key_bytes -= known.key.len();
            // Who has taken that it is disposed may have forgotten it, and would meet it anew by a second dispose.
            let kind = match known.told {
                Told::Alive if self.autodispose => ChangeKind::NotAliveDisposedUnregistered,
                _ => ChangeKind::NotAliveUnregistered,
            };
            if known.told != Told::Nothing && !known.key.is_empty() {
                return Some((instance, kind, known.key));
            }
        }
        None
    }
}

#[cold]
fn too_many(limit: usize) -> Error {
    Error::OutOfResources(format!(
        "RESOURCE_LIMITS max_instances is {limit} and all are registered: unregister one or raise the limit"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// What is said of that topic.
    struct Log(Mutex<Vec<String>>);

    static LOG: Log = Log(Mutex::new(Vec::new()));

    impl log::Log for Log {
        fn enabled(&self, _: &log::Metadata) -> bool {
            true
        }

        fn log(&self, record: &log::Record) {
            let text = record.args().to_string();
            if text.starts_with("topic Instances: ") {
                self.0.lock().unwrap().push(text);
            }
        }

        fn flush(&self) {}
    }

    fn handle(number: u32) -> InstanceHandle {
        let mut handle = [0; 16];
        handle[..4].copy_from_slice(&number.to_be_bytes());
        InstanceHandle(handle)
    }

    fn write(instances: &mut Instances, number: u32, key_len: usize) {
        instances
            .register(handle(number), |key| {
                key.resize(key_len, 1);
                Ok(())
            })
            .unwrap();
        instances.note(handle(number), ChangeKind::Alive);
    }

    fn ended(instances: &mut Instances) -> Vec<(u8, ChangeKind)> {
        std::iter::from_fn(|| instances.end_next()).map(|(handle, kind, _)| (handle.0[3], kind)).collect()
    }

    #[test]
    fn each_ends_by_what_was_told_of_it() {
        for autodispose in [true, false] {
            let qos = DataWriterQos::default().autodispose_unregistered_instances(autodispose);
            let mut instances = Instances::new(&qos, "Instances".into());
            (1..=5).for_each(|number| write(&mut instances, number, 8));
            instances.note(handle(2), ChangeKind::NotAliveDisposed);
            instances.note(handle(3), ChangeKind::NotAliveUnregistered);
            instances.note(handle(4), ChangeKind::NotAliveDisposed);
            write(&mut instances, 4, 8);
            assert!(instances.register(handle(6), |_| Ok(())).unwrap());
            let alive = match autodispose {
                true => ChangeKind::NotAliveDisposedUnregistered,
                false => ChangeKind::NotAliveUnregistered,
            };
            let all = [(1, alive), (2, ChangeKind::NotAliveUnregistered), (4, alive), (5, alive)];
            assert_eq!(ended(&mut instances), all);
            assert_eq!(instances.key_bytes, 0);
        }
    }

    #[test]
    fn memory_is_bounded_and_told_of() {
        log::set_logger(&LOG).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        let told = || LOG.0.lock().unwrap().len();
        let mut instances = Instances::new(&DataWriterQos::default(), "Instances".into());
        (0..DEFAULT_MAX_INSTANCES as u32).for_each(|number| write(&mut instances, number, 8));
        assert_eq!(told(), 0, "all are remembered");
        (0..DEFAULT_MAX_INSTANCES as u32 + 9).for_each(|number| write(&mut instances, number, 8));
        assert_eq!((instances.known.len(), told()), (DEFAULT_MAX_INSTANCES, 1));
        instances.note(handle(0), ChangeKind::NotAliveUnregistered);
        assert!(instances.check_registered(handle(DEFAULT_MAX_INSTANCES as u32 + 8)).is_ok(), "it may be");
        let mut instances = Instances::new(&DataWriterQos::default(), "Instances".into());
        (0..20).for_each(|number| write(&mut instances, number, 1 << 20));
        assert_eq!((instances.known.len(), instances.key_bytes, told()), (20, MAX_KEY_BYTES, 2));
        assert_eq!(ended(&mut instances).len(), 16);
    }
}
