//! Chunks under loom: their holders in every order that threads and the memory model allow.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p taut-mem --release --test chunks_loom`; empty without the flag. What is lent is
//! watched for races (invariant F of `taut_mem::Chunks`).
#![cfg(loom)]

use std::ptr::NonNull;
use std::sync::Arc;

use loom::thread;
use taut_mem::{Bytes, Chunks};

const SIZE: usize = 128;

fn chunks(count: u32) -> Arc<Chunks> {
    let memory = vec![0_u64; SIZE * count as usize / 8].into_boxed_slice();
    let base = NonNull::new(memory.as_ptr().cast::<u8>().cast_mut()).unwrap();
    // SAFETY: the box has the bytes, which are accessed by nothing else; to loom they need no alignment.
    Arc::new(unsafe { Chunks::new(base, SIZE, count, Box::new(memory)) })
}

fn write(chunks: &Arc<Chunks>, value: u64) -> Option<Bytes> {
    let mut chunk = chunks.claim(8)?;
    chunk.write(value);
    Some(chunk.share(8))
}

/// Two readers look at a view of each their own while the writer wants the chunk again.
#[test]
fn a_chunk_is_written_again_when_all_have_looked() {
    loom::model(|| {
        let chunks = chunks(1);
        let view = write(&chunks, 1).unwrap();
        let readers: Vec<_> = [view.clone(), view]
            .map(|view| thread::spawn(move || assert_eq!(view.first_word(), 1)))
            .into_iter()
            .collect();
        if let Some(next) = write(&chunks, 2) {
            assert_eq!(next.first_word(), 2);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!((chunks.free(), write(&chunks, 3).unwrap().first_word()), (1, 3));
    });
}

/// The port holds what it sends, takes it back, and may be the last to do so; whoever lends has another view.
#[test]
fn the_port_is_a_holder_like_others() {
    loom::model(|| {
        let chunks = chunks(1);
        let view = write(&chunks, 1).unwrap();
        let (number, _) = chunks.payload(&view).unwrap();
        // SAFETY: the view is a holder.
        unsafe { chunks.hold(number) }
        let port = {
            let chunks = Arc::clone(&chunks);
            // SAFETY: it has been a holder since it was called so.
            thread::spawn(move || unsafe { chunks.let_go(number) })
        };
        let reader = thread::spawn(move || assert_eq!(view.first_word(), 1));
        drop(write(&chunks, 2));
        port.join().unwrap();
        reader.join().unwrap();
        assert_eq!(chunks.free(), 1);
    });
}

/// Two take while a third gives back: nobody gets a chunk that another has, and none is lost.
#[test]
fn each_chunk_is_taken_by_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let chunks = chunks(2);
        let (first, second) = (write(&chunks, 1).unwrap(), write(&chunks, 2).unwrap());
        let other = {
            let chunks = Arc::clone(&chunks);
            thread::spawn(move || {
                drop(first);
                if let Some(view) = write(&chunks, 3) {
                    assert_eq!(view.first_word(), 3);
                }
            })
        };
        drop(second);
        let views: Vec<_> = [4, 5].into_iter().map_while(|value| write(&chunks, value)).collect();
        assert!(views.iter().zip([4, 5]).all(|(view, value)| view.first_word() == value));
        drop(views);
        other.join().unwrap();
        assert_eq!(chunks.free(), 2);
        let taken = [chunks.take(), chunks.take(), chunks.take()];
        assert!(taken[0].is_some() && taken[1].is_some() && taken[0] != taken[1] && taken[2].is_none());
    });
}
