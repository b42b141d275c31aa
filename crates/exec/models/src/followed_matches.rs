//! What has matched is followed once, by the driver or by who has made an end: [`crate::lanes::matched::Matched`].

use std::sync::Arc;

use loom::thread;

use crate::lanes::matched::Matched;
use crate::{explore, sync};

/// What the two leave, each.
const MATCHES: usize = 1;

#[derive(Default)]
struct Model {
    matched: Matched<usize>,
    followed: sync::AtomicUsize,
    /// Whoever follows has called the driver after that.
    called: sync::AtomicBool,
}

impl Model {
    /// As `Inner::follow_matches` has it. Whether this thread did.
    fn follow(&self) -> bool {
        let Some(following) = self.matched.follow() else { return false };
        while self.matched.next_left().is_some() {
            self.followed.fetch_add(1, sync::Ordering::SeqCst);
        }
        drop(following);
        if self.matched.is_any_left() {
            self.called.store(true, sync::Ordering::SeqCst);
        }
        true
    }
}

/// The driver does not sleep as long as something is left, and may keep who follows from its processor: then it is to find
/// nothing left, or to follow it itself.
#[test]
fn no_driver_is_awake_for_what_another_thread_follows() {
    explore(|| {
        let model = Arc::new(Model::default());
        model.matched.leave(0..MATCHES);
        let user = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.matched.leave(0..MATCHES);
                model.follow();
            })
        };
        let mut vain = 0;
        while model.matched.is_any_left() {
            // What was left between the two may be somebody's by now, who began with that once.
            vain += usize::from(!model.follow());
            assert!(vain <= 1, "it is awake for nothing");
        }
        user.join().unwrap();
        if model.called.load(sync::Ordering::SeqCst) {
            model.follow();
        }
        assert_eq!(model.followed.load(sync::Ordering::SeqCst), 2 * MATCHES);
    });
}
