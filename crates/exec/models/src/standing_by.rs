//! The thread that stands by while a user drives: [`crate::driver::role::Role`].

use std::sync::Arc;

use loom::thread;

use crate::driver::role::{Claim, Role};
use crate::explore;

/// It goes to sleep while the user gives the role back: it is woken, or it does not sleep.
#[test]
fn nobody_sleeps_beside_a_role_that_is_free() {
    explore(|| {
        let role = Arc::new(Role::default());
        assert!(role.claim() == Claim::Taken);
        let look = role.look();
        let user = {
            let role = Arc::clone(&role);
            thread::spawn(move || role.release(true))
        };
        let mut user = Some(user);
        role.rest_while(look, || {
            let wakes = user.take().unwrap().join().unwrap();
            assert!(wakes, "nobody wakes who sleeps now");
        });
        user.into_iter().for_each(|user| _ = user.join().unwrap());
        assert!(role.claim_background() && role.claim() == Claim::Background);
    });
}

/// Two want it: one gets it.
#[test]
fn one_has_it() {
    explore(|| {
        let role = Arc::new(Role::default());
        let background = {
            let role = Arc::clone(&role);
            thread::spawn(move || role.claim_background())
        };
        let claim = role.claim();
        let is_background = background.join().unwrap();
        assert_eq!(claim == Claim::Taken, !is_background);
        let before = role.look();
        role.release(true);
        assert!(role.look() != before && role.look().0, "it is free, and has moved");
    });
}

/// A user who only asks is no reason to go on standing by.
#[test]
fn who_does_not_drive_has_not_come() {
    explore(|| {
        let role = Arc::new(Role::default());
        let before = role.look();
        let user = {
            let role = Arc::clone(&role);
            thread::spawn(move || {
                for _ in 0..2 {
                    if role.claim() == Claim::Taken {
                        role.release(false);
                    }
                }
            })
        };
        let meanwhile = role.look();
        assert!(meanwhile == before || meanwhile.1, "it is free as before, or just asked for");
        user.join().unwrap();
        assert!(role.look() == before && role.claim_background());
    });
}

/// One leaves something to tell to whoever drives, who gives the role back meanwhile: either that one finds it, or the other
/// finds nobody there.
#[test]
fn nothing_to_tell_is_left_to_one_who_has_gone() {
    explore(|| {
        let role = Arc::new(Role::default());
        assert!(role.claim() == Claim::Taken);
        let user = {
            let role = Arc::clone(&role);
            thread::spawn(move || role.release(true))
        };
        role.leave_untold();
        let calls = !role.is_served() && role.call_background();
        assert!(user.join().unwrap() || calls, "nobody is called");
        assert!(role.is_called(), "it would look for nothing");
    });
}

/// A user takes the role before the one that was called for it has looked, and gives it back: the next call is heard.
#[test]
fn who_was_called_in_vain_hears_the_next_call() {
    explore(|| {
        let role = Arc::new(Role::default());
        assert!(role.call_background() && role.claim() == Claim::Taken);
        let user = {
            let role = Arc::clone(&role);
            thread::spawn(move || {
                role.release(true);
                role.call_background()
            })
        };
        let hears = |(called, look): (bool, (bool, bool, u32))| called && look.0;
        let hears_at_once = hears(role.look_when_called());
        let wakes = user.join().unwrap();
        assert!(hears_at_once || wakes, "it sleeps on");
        assert!(hears_at_once || hears(role.look_when_called()), "it is woken for nothing");
    });
}
