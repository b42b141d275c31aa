//! The reader cache against a model of it that is only meant to be obvious: one list, searched each time.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::{Rng, Time};
use taut_qos::{DataReaderQos, ResourceLimits};
use taut_rtps::history_cache::ChangeKind;

use crate::reader_cache_tests::{change, handle, writer};
use crate::{
    Insert, InstanceState, InstanceStateMask, ReaderCache, Sample, SampleState, SampleStateMask, Selection,
    ViewState, ViewStateMask,
};

const MAX_SAMPLES: usize = 8;
const MAX_SAMPLES_PER_INSTANCE: usize = 3;

#[derive(Clone, Copy, PartialEq, Debug)]
struct ModelSample {
    id: u32,
    instance: u8,
    number: i64,
    valid: bool,
    read: bool,
    disposed: u32,
    no_writers: u32,
    expires: i64,
}

#[derive(Clone, Debug)]
struct ModelInstance {
    /// The latest sample without data.
    marker: u32,
    state: InstanceState,
    view: ViewState,
    disposed: u32,
    no_writers: u32,
    writers: BTreeSet<u8>,
}

/// What a reader is told of a sample, in the model's words.
type Told = (i64, bool, SampleState, ViewState, InstanceState, [u32; 5]);

struct Model {
    next_id: u32,
    depth: Option<usize>,
    /// In the order of arrival.
    samples: Vec<ModelSample>,
    instances: BTreeMap<u8, ModelInstance>,
}

impl Model {
    fn of(&self, instance: u8, valid: bool) -> usize {
        self.samples.iter().filter(|s| s.instance == instance && s.valid == valid).count()
    }

    fn has_room(&self, instance: u8) -> bool {
        self.depth.is_some()
            || self.of(instance, true) < MAX_SAMPLES_PER_INSTANCE
                && self.samples.iter().filter(|s| s.valid).count() < MAX_SAMPLES
    }

    fn add(&mut self, instance: u8, number: i64, valid: bool, expires: i64) {
        let ModelInstance { disposed, no_writers, .. } = self.instances[&instance];
        let read = false;
        let id = self.next_id;
        self.next_id += 1;
        self.samples.push(ModelSample { id, instance, number, valid, read, disposed, no_writers, expires });
    }

    fn drop_first(&mut self, instance: u8, valid: bool) {
        let first = self.samples.iter().position(|s| s.instance == instance && s.valid == valid).unwrap();
        self.samples.remove(first);
    }

    fn instance(&mut self, instance: u8) -> &mut ModelInstance {
        self.instances.entry(instance).or_insert(ModelInstance {
            marker: 0,
            state: InstanceState::Alive,
            view: ViewState::New,
            disposed: 0,
            no_writers: 0,
            writers: BTreeSet::new(),
        })
    }

    fn write(&mut self, w: u8, instance: u8, number: i64, expires: i64) -> &'static str {
        if !self.has_room(instance) {
            if let Some(known) = self.instances.get_mut(&instance) {
                known.writers.insert(w);
            }
            return "rejected";
        }
        let known = self.instance(instance);
        known.writers.insert(w);
        match known.state {
            InstanceState::Alive => {}
            InstanceState::NotAliveDisposed => known.disposed += 1,
            InstanceState::NotAliveNoWriters => known.no_writers += 1,
        }
        if known.state != InstanceState::Alive {
            (known.state, known.view) = (InstanceState::Alive, ViewState::New);
        }
        self.add(instance, number, true, expires);
        if self.depth.is_some_and(|depth| self.of(instance, true) > depth) {
            self.drop_first(instance, true);
            return "replaced";
        }
        "stored"
    }

    /// The sample without data.
    fn mark(&mut self, instance: u8, number: i64) {
        let full = self.depth.is_some() || self.samples.len() >= MAX_SAMPLES;
        let older = self.instances[&instance].marker;
        self.samples.retain(|s| !full || s.id != older);
        self.instance(instance).marker = self.next_id;
        self.add(instance, number, false, i64::MAX);
    }

    fn end(&mut self, w: u8, instance: u8, number: i64, kind: ChangeKind) -> &'static str {
        let disposes = kind != ChangeKind::NotAliveUnregistered;
        if !disposes && !self.instances.contains_key(&instance) {
            return "ignored";
        }
        let known = self.instance(instance);
        let before = known.state;
        if disposes {
            known.writers.insert(w);
            known.state = InstanceState::NotAliveDisposed;
        }
        let wrote = kind != ChangeKind::NotAliveDisposed && known.writers.remove(&w);
        if wrote && known.writers.is_empty() && known.state == InstanceState::Alive {
            known.state = InstanceState::NotAliveNoWriters;
        }
        if known.state == before {
            return "ignored";
        }
        self.mark(instance, number);
        "stored"
    }

    fn forget(&mut self) {
        let samples = &self.samples;
        self.instances.retain(|instance, known| {
            known.state == InstanceState::Alive
                || !known.writers.is_empty()
                || samples.iter().any(|s| s.instance == *instance)
        });
    }

    fn select(&self, selection: &Selection) -> Vec<ModelSample> {
        let mut order: Vec<u8> = Vec::new();
        for sample in &self.samples {
            if !order.contains(&sample.instance) {
                order.push(sample.instance);
            }
        }
        let mut chosen: Vec<ModelSample> = Vec::new();
        for instance in order {
            let known = &self.instances[&instance];
            if selection.view_states.contains(known.view)
                && selection.instance_states.contains(known.state)
                && selection.instance.is_none_or(|wanted| wanted == handle(instance))
            {
                let wanted = |s: &&ModelSample| selection.sample_states.contains(state(s));
                chosen.extend(self.samples.iter().filter(|s| s.instance == instance).filter(wanted));
            }
        }
        chosen.truncate(selection.max_samples);
        chosen
    }

    fn access(&mut self, selection: &Selection, take: bool) -> Vec<Told> {
        let chosen = self.select(selection);
        self.give(&chosen, take)
    }

    fn take_next(&mut self) -> Option<Told> {
        let next = self.samples.iter().find(|s| !s.read).copied();
        next.and_then(|next| self.give(&[next], true).pop())
    }

    fn give(&mut self, chosen: &[ModelSample], take: bool) -> Vec<Told> {
        let told = (0..chosen.len()).map(|at| self.tell(chosen, at)).collect();
        for sample in chosen {
            let known = self.instances.get_mut(&sample.instance).unwrap();
            if (sample.disposed, sample.no_writers) == (known.disposed, known.no_writers) {
                known.view = ViewState::NotNew;
            }
            let at = self.samples.iter().position(|s| s == sample).unwrap();
            if take {
                self.samples.remove(at);
            } else {
                self.samples[at].read = true;
            }
        }
        told
    }

    fn tell(&self, chosen: &[ModelSample], at: usize) -> Told {
        let sample = chosen[at];
        let known = &self.instances[&sample.instance];
        let same: Vec<_> = chosen[at..].iter().filter(|s| s.instance == sample.instance).collect();
        let generation = sample.disposed + sample.no_writers;
        let last = same.last().unwrap();
        let ranks = [
            sample.disposed,
            sample.no_writers,
            same.len() as u32 - 1,
            last.disposed + last.no_writers - generation,
            known.disposed + known.no_writers - generation,
        ];
        (sample.number, sample.valid, state(&sample), known.view, known.state, ranks)
    }
}

fn state(sample: &ModelSample) -> SampleState {
    if sample.read { SampleState::Read } else { SampleState::NotRead }
}

fn told(sample: &Sample) -> Told {
    let info = &sample.info;
    let ranks = [
        info.disposed_generation_count,
        info.no_writers_generation_count,
        info.sample_rank,
        info.generation_rank,
        info.absolute_generation_rank,
    ];
    let number = info.sequence_number.0.max(0);
    (number, info.valid_data, info.sample_state, info.view_state, info.instance_state, ranks)
}

fn word(outcome: Insert) -> &'static str {
    match outcome {
        Insert::Stored => "stored",
        Insert::Replaced => "replaced",
        Insert::Rejected(_) => "rejected",
        Insert::Ignored(_) => "ignored",
    }
}

fn random_selection(rng: &mut Rng) -> Selection {
    let mut pick = |any: u32, top: u64| match rng.below(3) {
        0 => 1 + rng.below(top) as u32,
        _ => any,
    };
    let sample_states = SampleStateMask(pick(0xffff, 3));
    let view_states = ViewStateMask(pick(0xffff, 3));
    let instance_states = InstanceStateMask(pick(0xffff, 7));
    let instance = rng.chance(200).then(|| handle(1 + rng.below(4) as u8));
    let max_samples = if rng.chance(500) { usize::MAX } else { rng.below(4) as usize };
    Selection {
        sample_states,
        view_states,
        instance_states,
        instance,
        next_instance_after: None,
        max_samples,
    }
}

fn play(seed: u64) {
    let mut rng = Rng::new(seed);
    let depth = rng.chance(500).then(|| 1 + rng.below(3) as usize);
    let mut qos = DataReaderQos::default();
    qos = match depth {
        Some(depth) => qos.keep_last(depth as u32),
        None => qos.keep_all().resource_limits(ResourceLimits {
            max_samples: Some(MAX_SAMPLES as u32),
            max_instances: None,
            max_samples_per_instance: Some(MAX_SAMPLES_PER_INSTANCE as u32),
        }),
    };
    let mut cache = ReaderCache::new(&qos, true);
    let mut model = Model { next_id: 1, depth, samples: Vec::new(), instances: BTreeMap::new() };
    for step in 1..400 {
        let (w, instance) = (1 + rng.below(3) as u8, 1 + rng.below(4) as u8);
        let kind = match rng.below(7) {
            0 => ChangeKind::NotAliveDisposed,
            1 => ChangeKind::NotAliveUnregistered,
            2 => ChangeKind::NotAliveDisposedUnregistered,
            _ => ChangeKind::Alive,
        };
        // What asks also puts the cache in order, so not all steps ask.
        if rng.chance(200) {
            let room = model.has_room(instance);
            assert_eq!(cache.has_room(handle(instance)), room, "seed {seed} step {step}");
        }
        match rng.below(16) {
            12..=15 => {
                let taken = cache.take_next().map(|sample| told(&sample));
                assert_eq!(taken, model.take_next(), "seed {seed} step {step}");
            }
            0 | 1 => {
                let selection = random_selection(&mut rng);
                let take = rng.chance(500);
                let mut found = Vec::new();
                let some = Selection { max_samples: usize::MAX, ..selection };
                if rng.chance(200) {
                    let is_some = !model.select(&some).is_empty();
                    assert_eq!(cache.contains(&some), is_some, "seed {seed} step {step}");
                }
                let expected = model.access(&selection, take);
                match take {
                    true => cache.take(&selection, |s| found.push(told(&s))),
                    false => cache.read(&selection, |s| found.push(told(&s))),
                };
                assert_eq!(found, expected, "seed {seed} step {step}: {selection:?}");
            }
            2 => {
                let now = Time(step);
                cache.on_timeout(now);
                model.samples.retain(|s| s.expires > step);
                assert!(cache.next_timeout().is_none_or(|next| next > now));
            }
            3 => {
                let mut all = [1, 2, 3, 4];
                all.sort_by_key(|instance| cache.instances.find(handle(*instance)));
                cache.writer_gone(Time(step), writer(w));
                for gone in all {
                    if model.instances.contains_key(&gone) {
                        model.end(w, gone, 0, ChangeKind::NotAliveUnregistered);
                    }
                }
            }
            _ if kind == ChangeKind::Alive => {
                let expires = if rng.chance(200) { step + rng.below(20) as i64 + 1 } else { i64::MAX };
                let given = (expires != i64::MAX).then_some(Time(expires));
                let outcome = cache.insert(Time(step), change(kind, w, instance, step), 0, given);
                assert_eq!(word(outcome), model.write(w, instance, step, expires), "seed {seed} step {step}");
            }
            _ => {
                let outcome = cache.insert(Time(step), change(kind, w, instance, step), 0, None);
                assert_eq!(word(outcome), model.end(w, instance, step, kind), "seed {seed} step {step}");
            }
        }
        model.forget();
        let unread = model.samples.iter().filter(|s| !s.read).count();
        assert_eq!(
            (cache.len(), cache.unread_count()),
            (model.samples.len(), unread),
            "seed {seed} step {step}"
        );
        assert_eq!(cache.instance_count(), model.instances.len(), "seed {seed} step {step}");
    }
}

#[test]
fn agrees_with_the_model() {
    (0..500).for_each(play);
}
