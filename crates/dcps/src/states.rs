//! The states of samples and instances, and the masks that select by them. DCPS 1.4 §2.2.2.5.1.
//! Kept by the reader cache, shown in SampleInfo, asked for by read and take.

use std::ops::BitOr;

/// Declares a state and the mask over its values, with the standard's bits.
macro_rules! states {
    ($($(#[$doc:meta])* $state:ident, $mask:ident { $($(#[$vdoc:meta])* $value:ident, $constant:ident = $bit:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $state { $($(#[$vdoc])* $value = $bit,)* }

        #[doc = concat!("A set of [`", stringify!($state), "`] values.")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $mask(pub u32);

        impl $mask {
            $(#[doc = concat!("Only `", stringify!($value), "`.")] pub const $constant: $mask = $mask($bit);)*
            /// All values, also those to come.
            pub const ANY: $mask = $mask(0xffff);

            /// Is the value in the set?
            pub fn contains(self, state: $state) -> bool {
                self.0 & state as u32 != 0
            }
        }

        impl BitOr for $mask {
            type Output = $mask;
            fn bitor(self, other: $mask) -> $mask {
                $mask(self.0 | other.0)
            }
        }

        impl From<$state> for $mask {
            fn from(state: $state) -> $mask {
                $mask(state as u32)
            }
        }
    )*};
}

states! {
    /// Has this reader's application seen the sample? *Source*: DCPS 1.4 §2.2.2.5.1.2.
    SampleState, SampleStateMask {
        /// Yes.
        Read, READ = 1,
        /// No.
        NotRead, NOT_READ = 2,
    }
    /// Has the application seen the instance since it was born, or born again? *Source*: DCPS 1.4
    /// §2.2.2.5.1.8.
    ViewState, ViewStateMask {
        /// No.
        New, NEW = 1,
        /// Yes.
        NotNew, NOT_NEW = 2,
    }
    /// Does the instance exist? *Source*: DCPS 1.4 §2.2.2.5.1.3.
    InstanceState, InstanceStateMask {
        /// A writer has written it and lives.
        Alive, ALIVE = 1,
        /// A writer has disposed it.
        NotAliveDisposed, NOT_ALIVE_DISPOSED = 2,
        /// All its writers have gone or have unregistered it.
        NotAliveNoWriters, NOT_ALIVE_NO_WRITERS = 4,
    }
}

impl InstanceStateMask {
    /// Disposed or without writers.
    pub const NOT_ALIVE: InstanceStateMask = InstanceStateMask(6);
}
