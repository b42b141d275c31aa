//! Which messages a participant's queues get: what the maps of the program say, and what is known of that here.

use std::net::SocketAddr;

/// What is to be done with a destination of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Add,
    Remove,
}

/// Has the queues get what is for these ends and no others. Returns which they get then, and why they are not as
/// wanted: an end that not all of the queues can have, none has; one that cannot be taken from all is had still.
pub(crate) fn redirect(
    queues: &[u32],
    had: &[SocketAddr],
    wanted: &[SocketAddr],
    change: impl Fn(Change, SocketAddr, u32) -> Result<(), String>,
) -> (Vec<SocketAddr>, Option<String>) {
    let (mut has, mut refused) = (Vec::new(), None);
    let all = |kind, end: SocketAddr| {
        let failed = queues.iter().filter_map(|queue| change(kind, end, *queue).err());
        failed.fold(None, |first, why| Option::or(first, Some(why)))
    };
    for end in had.iter().filter(|end| !wanted.contains(end)) {
        if let Some(why) = all(Change::Remove, *end) {
            refused = Some(why);
            has.push(*end);
        }
    }
    for end in wanted {
        let missing = if had.contains(end) || has.contains(end) { None } else { all(Change::Add, *end) };
        match missing {
            None => has.push(*end),
            Some(why) => {
                refused = Some(why);
                let _ = all(Change::Remove, *end);
            }
        }
    }
    (has, refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    const QUEUES: [u32; 2] = [3, 4];

    fn end(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn what_finds_no_room_is_not_had_and_is_tried_again() {
        let (map, room) = (RefCell::new(BTreeSet::new()), RefCell::new(3));
        let change = |kind, end: SocketAddr, queue: u32| {
            let mut map = map.borrow_mut();
            if kind == Change::Remove {
                map.remove(&(end, queue));
            } else if map.len() < *room.borrow() {
                map.insert((end, queue));
            } else {
                return Err("no room".to_owned());
            }
            Ok(())
        };
        let (has, refused) = redirect(&QUEUES, &[], &[end(1), end(2)], change);
        assert_eq!((&has[..], refused), (&[end(1)][..], Some("no room".into())));
        assert_eq!(map.borrow().len(), 2, "one queue alone gets nothing");
        let (has, refused) = redirect(&QUEUES, &has, &[end(1), end(2)], change);
        assert_eq!((&has[..], refused.is_some()), (&[end(1)][..], true), "asked again it is refused again");
        *room.borrow_mut() = 4;
        let (has, refused) = redirect(&QUEUES, &has, &[end(1), end(2)], change);
        assert_eq!((&has[..], refused), (&[end(1), end(2)][..], None));
        let (has, refused) = redirect(&QUEUES, &has, &[end(2)], change);
        assert_eq!((&has[..], refused, map.borrow().len()), (&[end(2)][..], None, 2));
    }

    #[test]
    fn what_cannot_be_taken_is_taken_later() {
        let (has, refused) = redirect(&QUEUES, &[end(1)], &[end(2)], |kind, _, queue| {
            if kind == Change::Remove && queue == 4 { Err("busy".into()) } else { Ok(()) }
        });
        assert_eq!((&has[..], refused), (&[end(1), end(2)][..], Some("busy".into())));
    }
}
