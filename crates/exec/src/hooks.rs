//! Who is told of an entity's news: listeners and wakers. Called without the token.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::task::Waker;
use std::thread::LocalKey;

use taut_dcps::{Entity, StatusMask};
use taut_lock::Mutex;

/// Called with the kinds of news of its entity, by whichever thread drives; one call at a time, and none after one
/// that panics. Returns the kinds of which it has left some: it is told of them once more, after a step of whoever drives.
pub type Listener = Box<dyn FnMut(StatusMask) -> StatusMask + Send>;

/// One that leaves nothing.
pub fn listener(mut call: impl FnMut(StatusMask) + Send + 'static) -> Listener {
    Box::new(move |kinds| {
        call(kinds);
        StatusMask::NONE
    })
}

/// How many participants deep listeners, or wakers, may run within each other and be told apart. Lower and one that may
/// wait, within those of so many others, is refused to; higher and there is more to look at.
const DEEPEST: usize = 4;

/// Whose listeners, or wakers, a thread runs, each within the one before: the addresses of their hooks.
#[derive(Clone, Copy)]
struct Tells {
    of: [usize; DEEPEST],
    depth: usize,
}

/// Of a thread. Without a destructor, as a participant may end with it.
type Stack = LocalKey<Cell<Tells>>;

thread_local! {
    static LISTENERS: Cell<Tells> = const { Cell::new(Tells { of: [0; DEEPEST], depth: 0 }) };
    static WAKERS: Cell<Tells> = const { Cell::new(Tells { of: [0; DEEPEST], depth: 0 }) };
}

/// While it lives the thread runs a listener, or wakers.
struct Telling(&'static Stack);

impl Telling {
    fn of(hooks: &Hooks, stack: &'static Stack) -> Telling {
        let mut tells = stack.get();
        if let Some(slot) = tells.of.get_mut(tells.depth) {
            *slot = hooks.address();
        }
        tells.depth += 1;
        stack.set(tells);
        Telling(stack)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let tells = self.0.get();
        self.0.set(Tells { depth: tells.depth - 1, ..tells });
    }
}

/// Does the calling thread run a listener, of whatever participant?
pub(crate) fn runs_listener() -> bool {
    LISTENERS.get().depth > 0
}

/// Tells the log. A logger is the user's, too, and some panic, as those that print to a standard error which is closed: that
/// ends neither the thread that drives nor a call that has something to tell, and nobody is left to be told.
pub fn to_log(tell: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(tell));
}

/// Calls what is the user's. A panic ends neither the thread that drives nor the call that happens to bring the news.
fn call_users(what: impl FnOnce() -> String, call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        let what = what();
        to_log(|| log::error!("{what} has panicked"));
    }
}

struct ListenerCell {
    /// Whose it is, for the log.
    of: String,
    pending: AtomicU32,
    call: Mutex<Listener>,
}

impl ListenerCell {
    /// Calls the listener once, unless it is running: then these kinds are left to who runs it. Returns what it has left, and
    /// what others have meanwhile, which is to be told later: where news come as fast as it hears of them it would never end.
    /// One that panics ends neither the thread that drives nor the call that happens to bring the news: it is called no more.
    fn tell(&self, kinds: StatusMask) -> StatusMask {
        self.pending.fetch_or(kinds.0, Ordering::SeqCst);
        // Pairs with the one below: of one who has something to tell and one who lets go, either the first gets the lock or the
        // second sees the kinds.
        fence(Ordering::SeqCst);
        let Some(mut call) = self.call.try_lock() else { return StatusMask::NONE };
        let (kinds, mut left) = (self.take_pending(), StatusMask::NONE);
        if kinds != StatusMask::NONE {
            match catch_unwind(AssertUnwindSafe(|| call(kinds))) {
                Ok(of_it) => left = of_it,
                Err(_) => {
                    to_log(|| log::error!("the listener of {} has panicked, and is called no more", self.of));
                    let broken = std::mem::replace(&mut *call, listener(|_| ()));
                    // It may own entities, and what it left of them may panic again.
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
                }
            }
        }
        drop(call);
        fence(Ordering::SeqCst);
        left | self.take_pending()
    }

    fn take_pending(&self) -> StatusMask {
        match self.pending.load(Ordering::SeqCst) {
            0 => StatusMask::NONE,
            _ => StatusMask(self.pending.swap(0, Ordering::SeqCst)),
        }
    }
}

#[derive(Default)]
struct Hook {
    listener: Option<Arc<ListenerCell>>,
    /// By who waits.
    wakers: Vec<(u64, Waker)>,
}

/// A place to wait at for news of an entity.
pub struct Waits {
    entity: Entity,
    id: u64,
}

/// The hooks of all entities.
#[derive(Default)]
pub(crate) struct Hooks {
    hooks: Mutex<BTreeMap<Entity, Hook>>,
    /// How many there are, so that a participant without any pays one load.
    count: AtomicUsize,
    /// Places to wait at that there were.
    places: AtomicU64,
}

impl Hooks {
    /// Sets or takes away the listener of an entity, which the log knows by a name. Returns whether it had one.
    pub fn set_listener(&self, entity: Entity, of: String, listener: Option<Listener>) -> bool {
        let cell = listener
            .map(|call| Arc::new(ListenerCell { of, pending: AtomicU32::new(0), call: Mutex::new(call) }));
        let before = self.change(entity, |hook| std::mem::replace(&mut hook.listener, cell));
        // A listener may own entities, whose end comes back here: it is dropped without the lock.
        before.is_some()
    }

    /// A place to wait at.
    pub fn waits(&self, entity: Entity) -> Waits {
        Waits { entity, id: self.places.fetch_add(1, Ordering::Relaxed) }
    }

    /// Wakes a task at the next news, in place of the last that waited there.
    pub fn register(&self, waits: &Waits, waker: &Waker) {
        let fresh = (waits.id, waker.clone());
        let old =
            self.change(waits.entity, |hook| match hook.wakers.iter_mut().find(|(id, _)| *id == waits.id) {
                Some(known) => Some(std::mem::replace(known, fresh)),
                None => {
                    hook.wakers.push(fresh);
                    None
                }
            });
        // What it keeps may own entities, whose end comes back here: it is dropped without the lock.
        drop(old);
    }

    /// Nobody waits there any more.
    pub fn forget(&self, waits: &Waits) {
        let old = self.change(waits.entity, |hook| {
            let at = hook.wakers.iter().position(|(id, _)| *id == waits.id);
            at.map(|at| hook.wakers.swap_remove(at))
        });
        drop(old);
    }

    /// Is there a listener or a waker?
    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Does the calling thread run one of these listeners?
    #[inline]
    pub fn is_telling(&self) -> bool {
        runs_listener() && self.is_among(&LISTENERS)
    }

    /// Does it run one of these wakers, which may run a task there and then?
    #[inline]
    pub fn is_waking(&self) -> bool {
        WAKERS.get().depth > 0 && self.is_among(&WAKERS)
    }

    #[cold]
    fn is_among(&self, stack: &'static Stack) -> bool {
        let Tells { of, depth } = stack.get();
        of.get(..depth).is_none_or(|of| of.contains(&self.address()))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Forgets an entity.
    pub fn remove(&self, entity: Entity) {
        drop(self.change(entity, std::mem::take));
    }

    fn change<R>(&self, entity: Entity, change: impl FnOnce(&mut Hook) -> R) -> R {
        let mut hooks = self.hooks.lock();
        let hook = hooks.entry(entity).or_default();
        let result = change(hook);
        if hook.listener.is_none() && hook.wakers.is_empty() {
            hooks.remove(&entity);
        }
        self.count.store(hooks.len(), Ordering::SeqCst);
        result
    }

    /// Who waits for an entity next has the room of those that have waited, which is empty.
    fn keep_room(&self, entity: Entity, room: Vec<(u64, Waker)>) {
        let mut hooks = self.hooks.lock();
        if let Some(hook) = hooks.get_mut(&entity).filter(|hook| hook.wakers.capacity() == 0) {
            hook.wakers = room;
        }
    }

    /// Tells those who want to know of an entity's news. Returns what its listener is to be told later.
    /// `name` is asked for the entity's, for the log, if a waker panics.
    pub fn tell(&self, entity: Entity, kinds: StatusMask, name: impl Fn() -> String) -> StatusMask {
        if !self.is_any() {
            return StatusMask::NONE;
        }
        let (listener, mut wakers) = match self.hooks.lock().get_mut(&entity) {
            Some(hook) => (hook.listener.clone(), std::mem::take(&mut hook.wakers)),
            None => return StatusMask::NONE,
        };
        if !wakers.is_empty() {
            let waking = Telling::of(self, &WAKERS);
            for (_, waker) in wakers.drain(..) {
                call_users(|| format!("a waker of {}", name()), || waker.wake());
            }
            drop(waking);
            self.keep_room(entity, wakers);
        }
        let Some(listener) = listener.filter(|_| kinds != StatusMask::NONE) else { return StatusMask::NONE };
        let _telling = Telling::of(self, &LISTENERS);
        let left = listener.tell(kinds);
        // If it was taken away meanwhile, what it owns ends here.
        call_users(|| "the end of a listener".into(), || drop(listener));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of a quick writer elsewhere, while another thread receives.
    #[test]
    fn news_that_come_while_a_listener_runs_are_told_later() {
        let (hooks, entity) = (Arc::new(Hooks::default()), Entity::Participant);
        let (calls, within) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&hooks));
        let count = Arc::clone(&calls);
        let listens = move |_| {
            // It would be endless.
            assert!(count.fetch_add(1, Ordering::SeqCst) < 100);
            assert_eq!(within.tell(entity, StatusMask::DATA_AVAILABLE, String::new), StatusMask::NONE);
        };
        hooks.set_listener(entity, "it".into(), Some(listener(listens)));
        for n in 1..=3 {
            assert_eq!(hooks.tell(entity, StatusMask::SAMPLE_LOST, String::new), StatusMask::DATA_AVAILABLE);
            assert_eq!(calls.load(Ordering::SeqCst), n);
        }
        hooks.set_listener(entity, String::new(), None);
    }

    #[test]
    fn who_waits_again_has_the_same_room() {
        let (hooks, entity) = (Hooks::default(), Entity::Participant);
        let waits = hooks.waits(entity);
        hooks.register(&waits, Waker::noop());
        let wakers = || {
            let hooks = hooks.hooks.lock();
            let wakers = &hooks[&entity].wakers;
            (wakers.len(), wakers.as_ptr())
        };
        let (_, room) = wakers();
        for _ in 0..3 {
            hooks.tell(entity, StatusMask::NONE, String::new);
            assert_eq!(wakers(), (0, room));
            hooks.register(&waits, Waker::noop());
            assert_eq!(wakers(), (1, room));
        }
    }
}
