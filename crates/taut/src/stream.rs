//! A reader's samples for asynchronous code. No runtime of our own: a waker per reader.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use taut_base::Error;
use taut_cdr::DdsType;
use taut_dcps::Entity;
use taut_exec::{Waits, to_log};

use crate::reader::{DataReader, Sample, take_next};
use crate::untyped_reader::UntypedReader;

/// Takes one sample after the other that was not read before. To poll or to await it does not drive the participant: with
/// [`crate::Driver::Inline`] a thread that calls [`crate::DomainParticipant::run_once`], or waits, brings what it awaits.
///
/// It ends where it would wait within a listener, whose thread would have to bring
/// what it waits for, and in the child of a fork, and says so in the log; it never does elsewhere. A waker that polls its task
/// there and then does so on that thread, too: the task may take and write, and is refused (`PreconditionNotMet`) to wait by
/// another call, and to write by a writer whose call it is that runs it.
pub struct Samples<'a, T> {
    reader: &'a DataReader<T>,
    waits: Waits,
}

impl<'a, T: DdsType> Samples<'a, T> {
    pub(crate) fn new(reader: &'a DataReader<T>) -> Samples<'a, T> {
        let UntypedReader { executor, index, door, .. } = &reader.untyped;
        executor.watch(door);
        Samples { reader, waits: executor.waits(Entity::Reader(*index)) }
    }
}

impl<T> Drop for Samples<'_, T> {
    fn drop(&mut self) {
        let UntypedReader { executor, door, .. } = &self.reader.untyped;
        // In the child of a fork a thread that is not there may have what these ask for.
        if executor.ends_elsewhere() {
            return;
        }
        executor.forget_waker(&self.waits);
        executor.unwatch(door);
    }
}

impl<T: DdsType> Stream for Samples<'_, T> {
    type Item = Sample<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Sample<T>>> {
        let UntypedReader { executor, door, .. } = &self.reader.untyped;
        let ends = |error: Error| {
            to_log(|| log::error!("a stream of samples ends: {error}"));
            Poll::Ready(None)
        };
        if let Err(error) = executor.may_use() {
            return ends(error);
        }
        // Registered before the look: a sample that comes in between wakes the task.
        executor.register_waker(&self.waits, context.waker());
        match take_next(executor, door, 1) {
            Ok(Some(sample)) => Poll::Ready(Some(sample)),
            Ok(None) => match executor.may_ask_again() {
                Ok(()) => Poll::Pending,
                Err(error) => ends(error),
            },
            Err(error) => ends(error),
        }
    }
}
