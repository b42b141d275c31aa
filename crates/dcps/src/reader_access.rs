//! Read and take: which samples, in which order, with which ranks. DCPS 1.4 §2.2.2.5.3.
//! The half of the reader cache that the application calls, through the DataReader.

use taut_base::{Guid, InstanceHandle};
use taut_mem::Bytes;

use crate::cell::Head;
use crate::instance::Instance;
use crate::list::{List, NIL};
use crate::reader_cache::{Entry, ReaderCache, source_order};
use crate::sample_info::{PayloadKind, Sample, SampleInfo, Selection};
use crate::states::{InstanceState, SampleState, ViewState};

/// A sample that a read or take has chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected {
    id: u32,
    instance: u32,
    sample_rank: u32,
    generation_rank: u32,
    /// Is it of the instance's present life?
    current: bool,
}

impl ReaderCache {
    /// Hands out the selected samples and keeps them; they are READ from now on. Gives their number.
    /// *Cost*: one atomic add per sample; steps over samples that are not selected.
    pub fn read(&mut self, selection: &Selection, mut out: impl FnMut(Sample)) -> usize {
        self.settle_fresh();
        self.select(selection);
        for at in 0..self.selected.len() {
            let chosen = self.selected[at];
            let entry = &mut self.samples[chosen.id];
            out(Sample {
                payload: entry.change.payload.clone(),
                payload_kind: entry.payload_kind,
                info: info(entry, self.instances.at(chosen.instance), &chosen),
            });
            self.unread -= usize::from(!entry.read);
            entry.read = true;
        }
        self.seen()
    }

    /// Hands out the selected samples and forgets them. Gives their number.
    /// *Cost*: no copy and no atomic; steps over samples that are not selected.
    pub fn take(&mut self, selection: &Selection, mut out: impl FnMut(Sample)) -> usize {
        self.settle_fresh();
        self.select(selection);
        for at in 0..self.selected.len() {
            let chosen = self.selected[at];
            out(self.take_one(&chosen));
        }
        self.seen()
    }

    /// Takes the sample that has waited longest, if it was not read before: the next of a stream.
    /// *Cost*: O(1), but for samples that were read and not taken, which it steps over.
    pub fn take_next(&mut self) -> Option<Sample> {
        let mut info = SampleInfo::NONE;
        if let Some(fresh) = self.take_fresh(&mut info) {
            let payload = std::mem::take(fresh.0);
            return Some(Sample { payload, payload_kind: PayloadKind::Data, info });
        }
        if self.unread == 0 {
            return None;
        }
        let mut id = self.all.head;
        while self.samples[id].read {
            id = self.arrival.next(id);
        }
        let entry = &self.samples[id];
        let instance = entry.instance;
        let current = entry.generation() == self.instances.at(instance).generation();
        let sample = self.take_one(&Selected { id, instance, sample_rank: 0, generation_rank: 0, current });
        if current {
            self.instances.at_mut(instance).view = ViewState::NotNew;
        }
        self.instances.settle(instance);
        Some(sample)
    }

    /// Is the sample that came first taken first, whatever comes after it?
    pub(crate) fn keeps_order(&self) -> bool {
        self.depth.is_none() && !self.by_source
    }

    /// Tells of a sample with data what [`ReaderCache::insert`] and [`ReaderCache::take_next`] would, without
    /// its way through the cache; to be called if it [may pass](ReaderCache::may_pass). `false`, and nothing
    /// is told, if it does more than add a sample to an instance that is alive.
    #[inline(always)]
    pub(crate) fn pass(
        &mut self,
        instance: InstanceHandle,
        (writer, publication_handle): (Guid, InstanceHandle),
        head: &Head,
        into: &mut SampleInfo,
    ) -> bool {
        let handle = self.known_as(instance);
        let Some(instance) = self.instances.look_mut(handle) else { return false };
        if instance.state != InstanceState::Alive {
            return false;
        }
        instance.register(writer);
        *into = SampleInfo {
            sample_state: SampleState::NotRead,
            view_state: instance.view,
            instance_state: InstanceState::Alive,
            source_timestamp: head.source_timestamp,
            instance_handle: handle,
            publication_handle,
            disposed_generation_count: instance.disposed_generations,
            no_writers_generation_count: instance.no_writers_generations,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            valid_data: true,
            sequence_number: head.number,
        };
        instance.view = ViewState::NotNew;
        true
    }

    /// Is there a sample of the selection? What a ReadCondition asks.
    pub fn contains(&mut self, selection: &Selection) -> bool {
        self.settle_fresh();
        if self.unread == 0 && !selection.sample_states.contains(SampleState::Read) {
            return false;
        }
        let mut id = self.all.head;
        while id != NIL {
            let entry = &self.samples[id];
            let instance = self.instances.at(entry.instance);
            let in_instance = match (selection.instance, selection.next_instance_after) {
                (Some(handle), _) => instance.handle == handle,
                (None, Some(InstanceHandle::NIL)) | (None, None) => true,
                (None, Some(handle)) => instance.handle > handle,
            };
            if in_instance && wants(selection, instance) && selection.sample_states.contains(state(entry)) {
                return true;
            }
            id = self.arrival.next(id);
        }
        false
    }

    /// Is the instance known, and in which state?
    pub fn instance_state(&self, instance: InstanceHandle) -> Option<InstanceState> {
        Some(self.instances.at(self.instances.find(instance)?).state)
    }

    /// The handle itself if the reader knows the instance: DCPS's lookup_instance, once the key is hashed.
    pub fn lookup_instance(&self, instance: InstanceHandle) -> Option<InstanceHandle> {
        self.instances.find(instance).map(|_| instance)
    }

    /// Bytes that hold the key of an instance and what they are: for get_key_value.
    pub fn key_payload(&self, instance: InstanceHandle) -> Option<(Bytes, PayloadKind)> {
        let found = self.instances.at(self.instances.find(instance)?);
        Some((found.key.clone(), found.key_kind))
    }

    fn take_one(&mut self, chosen: &Selected) -> Sample {
        let entry = &mut self.samples[chosen.id];
        let instance = self.instances.at_mut(chosen.instance);
        if self.by_source && entry.valid() {
            instance.taken = source_order(&entry.change).max(instance.taken);
        }
        let payload = std::mem::take(&mut entry.change.payload);
        let sample =
            Sample { payload, payload_kind: entry.payload_kind, info: info(entry, instance, chosen) };
        self.bytes -= sample.payload.len();
        self.remove(chosen.id);
        sample
    }

    /// Notes that the application has seen the instances of what was selected, and gives the number.
    fn seen(&mut self) -> usize {
        for at in 0..self.selected.len() {
            let chosen = self.selected[at];
            if chosen.current && self.instances.get(chosen.instance).is_some() {
                self.instances.at_mut(chosen.instance).view = ViewState::NotNew;
            }
            self.instances.settle(chosen.instance);
        }
        self.selected.len()
    }

    /// Fills `selected`, in the order in which samples are handed out, with their ranks.
    fn select(&mut self, selection: &Selection) {
        self.selected.clear();
        match (selection.instance, selection.next_instance_after) {
            (Some(handle), _) => {
                if let Some(index) = self.instances.find(handle) {
                    self.select_of_instance(selection, index);
                }
            }
            (None, Some(handle)) => self.select_next_instance(selection, handle),
            (None, None) if self.ordered => self.select_in_order(selection),
            (None, None) => self.select_by_instance(selection),
        }
        self.rank();
    }

    /// Samples of one instance together; first the instance whose sample has waited longest.
    fn select_by_instance(&mut self, selection: &Selection) {
        self.visits += 1;
        let mut id = self.all.head;
        while id != NIL && self.selected.len() < selection.max_samples {
            let index = self.samples[id].instance;
            if self.instances.at(index).visit != self.visits {
                self.instances.at_mut(index).visit = self.visits;
                self.select_of_instance(selection, index);
                if self.instances.len() == 1 {
                    return;
                }
            }
            id = self.arrival.next(id);
        }
    }

    fn select_next_instance(&mut self, selection: &Selection, handle: InstanceHandle) {
        let mut after = (handle != InstanceHandle::NIL).then_some(handle);
        while self.selected.is_empty()
            && let Some(index) = self.instances.next_after(after)
        {
            self.select_of_instance(selection, index);
            after = Some(self.instances.at(index).handle);
        }
    }

    fn select_of_instance(&mut self, selection: &Selection, index: u32) {
        let instance = self.instances.at(index);
        if !wants(selection, instance) {
            return;
        }
        let List { head: mut id, .. } = instance.samples;
        while id != NIL && self.selected.len() < selection.max_samples {
            self.choose(selection, id);
            id = self.in_instance.next(id);
        }
    }

    fn select_in_order(&mut self, selection: &Selection) {
        let mut id = self.all.head;
        while id != NIL && self.selected.len() < selection.max_samples {
            if wants(selection, self.instances.at(self.samples[id].instance)) {
                self.choose(selection, id);
            }
            id = self.arrival.next(id);
        }
    }

    fn choose(&mut self, selection: &Selection, id: u32) {
        let entry = &self.samples[id];
        if selection.sample_states.contains(state(entry)) {
            let instance = entry.instance;
            self.selected.push(Selected { id, instance, sample_rank: 0, generation_rank: 0, current: false });
        }
    }

    /// Ranks from the last of each instance backwards. *Source*: DCPS 1.4 §2.2.2.5.1.6, §2.2.2.5.1.7.
    fn rank(&mut self) {
        self.visits += 1;
        for chosen in self.selected.iter_mut().rev() {
            let generation = self.samples[chosen.id].generation();
            let instance = self.instances.at_mut(chosen.instance);
            if instance.visit != self.visits {
                (instance.visit, instance.selected) = (self.visits, 0);
                instance.selected_generation = generation;
            }
            chosen.sample_rank = instance.selected;
            chosen.generation_rank = instance.selected_generation.saturating_sub(generation);
            chosen.current = generation == instance.generation();
            instance.selected += 1;
        }
    }
}

fn wants(selection: &Selection, instance: &Instance) -> bool {
    selection.view_states.contains(instance.view) && selection.instance_states.contains(instance.state)
}

fn state(entry: &Entry) -> SampleState {
    if entry.read { SampleState::Read } else { SampleState::NotRead }
}

fn info(entry: &Entry, instance: &Instance, chosen: &Selected) -> SampleInfo {
    SampleInfo {
        sample_state: state(entry),
        view_state: instance.view,
        instance_state: instance.state,
        source_timestamp: entry.change.source_timestamp,
        instance_handle: instance.handle,
        publication_handle: entry.change.writer_guid.into(),
        disposed_generation_count: entry.disposed_generations,
        no_writers_generation_count: entry.no_writers_generations,
        sample_rank: chosen.sample_rank,
        generation_rank: chosen.generation_rank,
        absolute_generation_rank: instance.generation().saturating_sub(entry.generation()),
        valid_data: entry.valid(),
        sequence_number: entry.change.sequence_number,
    }
}
