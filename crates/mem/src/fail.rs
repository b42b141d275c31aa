//! Points at which a test ends the process, to see that it leaves no harm behind.
//!
//! There is one after each store by which a process tells another something, and around each message that
//! joins a pair. Without the feature `failpoints` a point is nothing at all. With it a point counts how
//! often it is passed, and strikes when a test has armed it. How it strikes is the test's business.

/// Where a process may be ended. The name says what has just been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Point {
    // A writer: a sample.
    CellOpened,
    CellFilled,
    CellMeta,
    CellPayload,
    CellStamped,
    HeadMoved,
    LastMoved,
    SlotClaimed,
    SlotPushed,
    LinkMoved,
    ReadersAwaited,
    // A reader: a sample.
    PlaceNamed,
    PlaceCounted,
    PlaceFenced,
    CopyNamed,
    PlaceReleased,
    CursorMoved,
    // Either: memory, sleep, waking.
    MemoryCommitted,
    BellArmed,
    BellDisarmed,
    BeforeRing,
    Rung,
    // Either: a pair is joined.
    BeforeHello,
    HelloSent,
    BeforeOffer,
    OfferSent,
    BeforeAccept,
    AcceptSent,
    RouteAdded,
    BeforeBegin,
    BeginSent,
    BeforeAttach,
    Attached,
    LaneAdded,
    BeforeReading,
    ReadingSent,
    ReaderLaneSet,
}

impl Point {
    /// All of them, in the order of the type.
    pub const ALL: [Point; 37] = [
        Point::CellOpened,
        Point::CellFilled,
        Point::CellMeta,
        Point::CellPayload,
        Point::CellStamped,
        Point::HeadMoved,
        Point::LastMoved,
        Point::SlotClaimed,
        Point::SlotPushed,
        Point::LinkMoved,
        Point::ReadersAwaited,
        Point::PlaceNamed,
        Point::PlaceCounted,
        Point::PlaceFenced,
        Point::CopyNamed,
        Point::PlaceReleased,
        Point::CursorMoved,
        Point::MemoryCommitted,
        Point::BellArmed,
        Point::BellDisarmed,
        Point::BeforeRing,
        Point::Rung,
        Point::BeforeHello,
        Point::HelloSent,
        Point::BeforeOffer,
        Point::OfferSent,
        Point::BeforeAccept,
        Point::AcceptSent,
        Point::RouteAdded,
        Point::BeforeBegin,
        Point::BeginSent,
        Point::BeforeAttach,
        Point::Attached,
        Point::LaneAdded,
        Point::BeforeReading,
        Point::ReadingSent,
        Point::ReaderLaneSet,
    ];

    /// The point of a name.
    pub fn named(name: &str) -> Option<Point> {
        Point::ALL.into_iter().find(|point| format!("{point:?}") == name)
    }
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
/// Nothing.
pub fn point(_: Point) {}

#[cfg(feature = "failpoints")]
pub use armed::{arm, passes, point};

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    use super::Point;

    static PASSES: [AtomicU64; Point::ALL.len()] = [const { AtomicU64::new(0) }; Point::ALL.len()];
    /// Of each point the passes that are left until it strikes; 0: it is not armed.
    static LEFT: [AtomicU64; Point::ALL.len()] = [const { AtomicU64::new(0) }; Point::ALL.len()];
    /// Invariant: null, or a `fn()`. Not behind a lock, which this floor has none of.
    static STRIKE: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

    /// Passes a point.
    pub fn point(point: Point) {
        let at = point as usize;
        PASSES[at].fetch_add(1, Ordering::Relaxed);
        if LEFT[at].load(Ordering::Acquire) > 0 && LEFT[at].fetch_sub(1, Ordering::Relaxed) == 1 {
            let strike = STRIKE.load(Ordering::Acquire);
            // SAFETY: the static's invariant; `arm` has set it before a count was above 0.
            let strike = unsafe { std::mem::transmute::<*mut (), fn()>(strike) };
            strike();
        }
    }

    /// Has a point call `strike` when it is passed for the `pass`th time from now, counted from 1. The last
    /// `strike` is that of all points.
    pub fn arm(point: Point, pass: u64, strike: fn()) {
        STRIKE.store(strike as *mut (), Ordering::Release);
        LEFT[point as usize].store(pass.max(1), Ordering::Release);
    }

    /// How often a point was passed.
    pub fn passes(point: Point) -> u64 {
        PASSES[point as usize].load(Ordering::Relaxed)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_armed_point_strikes_once_when_its_turn_comes() {
            static STRUCK: AtomicU64 = AtomicU64::new(0);
            fn strike() {
                STRUCK.fetch_add(1, Ordering::Relaxed);
            }
            for (at, each) in Point::ALL.into_iter().enumerate() {
                assert_eq!((each as usize, Point::named(&format!("{each:?}"))), (at, Some(each)));
            }
            arm(Point::ReaderLaneSet, 2, strike);
            let struck = [Point::ReaderLaneSet, Point::HelloSent, Point::ReaderLaneSet, Point::ReaderLaneSet];
            let struck = struck.map(|each| {
                point(each);
                STRUCK.load(Ordering::Relaxed)
            });
            assert_eq!(struck, [0, 0, 1, 1]);
            assert_eq!((passes(Point::ReaderLaneSet), passes(Point::HelloSent)), (3, 1));
        }
    }
}
