//! Samples that are written and read in place: loans of a DataWriter, views of a DataReader.
//!
//! A loan is memory of the writer's lane, or, where the participant sends past the kernel by AF_XDP and the writer has
//! no reader on this machine, of the network interface's frames. It is filled, then written, which ends it: a loan that
//! was written cannot be touched again, and one that is dropped goes back. Readers on this machine look at the same
//! bytes, and so does the interface; what goes over the network otherwise, or from the lane, is copied once.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use taut_base::{Error, InstanceHandle, Result, Timestamp};
use taut_cdr::{DdsType, Encapsulation, Endian, Extensibility, Plain, bytemuck};
use taut_dcps::{PayloadKind, SampleInfo, Taken};
use taut_exec::{Memory, Moment, check_size};
use taut_mem::lane::Short;

use crate::erase::refused;
use crate::instances::Named;
use crate::reader::decode_key;
use crate::untyped_reader::{UntypedReader, warn_of_other_type};
use crate::{DataReader, DataWriter};

/// Bytes of the encapsulation header. *Source*: RTPS 2.5 §10.2.
const HEADER: usize = 4;

/// Memory of a writer, to be filled and written.
struct Lent<'w, T: DdsType> {
    writer: &'w DataWriter<T>,
    memory: Option<Memory>,
    /// Bytes of the serialized payload, header included, without padding.
    len: usize,
}

impl<'w, T: DdsType> Lent<'w, T> {
    /// `align` is what the body has to be aligned to.
    fn new(writer: &'w DataWriter<T>, body: usize, align: usize) -> Result<Lent<'w, T>> {
        writer.untyped.executor.may_use()?;
        check_size(body.saturating_add(HEADER))?;
        let len = body + HEADER;
        let all = len.next_multiple_of(4);
        let memory = match Short::zeros(all).filter(|_| align <= Short::ALIGN) {
            Some(short) => Memory::Short(short),
            None => writer.untyped.lend(all)?,
        };
        Ok(Lent { writer, memory: Some(memory), len })
    }

    fn body(&self) -> &[u8] {
        self.memory.as_ref().and_then(|memory| memory.get(HEADER..self.len)).unwrap_or_default()
    }

    fn body_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().and_then(|memory| memory.get_mut(HEADER..self.len)).unwrap_or_default()
    }

    fn write(mut self, named: Named, moment: Moment) -> Result<()> {
        let Some(mut memory) = self.memory.take() else { return Ok(()) };
        let end = self.len.next_multiple_of(4);
        let padding = end - self.len;
        let id =
            Encapsulation::new(self.writer.untyped.representation, Endian::NATIVE, T::EXTENSIBILITY).id();
        if let Some(header) = memory.get_mut(..HEADER) {
            header.copy_from_slice(&[0, id, 0, padding as u8]);
        }
        if let Some(rest) = memory.get_mut(self.len..end) {
            rest.fill(0);
        }
        self.writer.untyped.publish_loan(named, memory, end, moment)
    }
}

impl<T: DdsType> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.writer.untyped.take_back(memory);
        }
    }
}

/// A sample of a plain type in the writer's memory.
///
/// ```compile_fail
/// # fn twice<T: taut::DdsType + taut::Plain>(writer: &taut::DataWriter<T>) -> taut::Result<()> {
/// let loan = writer.loan()?;
/// loan.write()?;
/// loan.write()?; // a loan is written once
/// # Ok(())
/// # }
/// ```
pub struct Loan<'w, T: DdsType + Plain> {
    lent: Lent<'w, T>,
}

impl<T: DdsType + Plain> Loan<'_, T> {
    /// Writes it. *Errors*: as [`DataWriter::write`]; the loan then goes back.
    pub fn write(self) -> Result<()> {
        let named = self.lent.writer.name(&self)?;
        self.lent.write(named, Moment::now())
    }

    /// Writes it with a time of the caller's own. *Errors*: as [`DataWriter::write_with_timestamp`]; the loan then goes back.
    pub fn write_with_timestamp(self, timestamp: Timestamp) -> Result<()> {
        let named = self.lent.writer.name(&self)?;
        self.lent.write(named, timestamp.into())
    }
}

impl<T: DdsType + Plain> Deref for Loan<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        bytemuck::from_bytes(self.lent.body())
    }
}

impl<T: DdsType + Plain> DerefMut for Loan<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        bytemuck::from_bytes_mut(self.lent.body_mut())
    }
}

/// The serialized form of a sample, without its encapsulation header, in the writer's memory.
pub struct LoanBytes<'w, T: DdsType> {
    lent: Lent<'w, T>,
}

impl<T: DdsType> LoanBytes<'_, T> {
    /// Writes the bytes, which must be a sample of the type in the writer's representation and in this
    /// machine's byte order. *Errors*: [`Error::BadParameter`] if they are not, where the type has a key;
    /// as [`DataWriter::write`]. *Cost*: with a key, one decoding.
    pub fn write(self) -> Result<()> {
        let named = if T::HAS_KEY {
            let sample = decode::<T>(&self.lent)?;
            self.lent.writer.name(&sample)?
        } else {
            Named::ONLY
        };
        self.lent.write(named, Moment::now())
    }
}

/// The value in a loan.
fn decode<T: DdsType>(lent: &Lent<'_, T>) -> Result<T> {
    let mut input = taut_cdr::Decoder::new(lent.body(), lent.writer.untyped.representation, Endian::NATIVE);
    T::decode(&mut input).map_err(refused::<T>)
}

impl<T: DdsType> Deref for LoanBytes<'_, T> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.lent.body()
    }
}

impl<T: DdsType> DerefMut for LoanBytes<'_, T> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.lent.body_mut()
    }
}

/// The elements of a sample's last member, a sequence of a plain type, in the writer's memory: an image's
/// pixels, a cloud's points.
pub struct LoanSequence<'w, T: DdsType, P: Plain> {
    lent: Lent<'w, T>,
    instance: InstanceHandle,
    /// What ends the instance, if there are several.
    key: Vec<u8>,
    /// Where in the body the elements start.
    start: usize,
    of: PhantomData<fn() -> P>,
}

impl<T: DdsType, P: Plain> LoanSequence<'_, T, P> {
    /// Writes the sample. *Errors*: as [`DataWriter::write`].
    pub fn write(self) -> Result<()> {
        let LoanSequence { lent, instance, key, .. } = self;
        let named = lent.writer.untyped.name(instance, key)?;
        lent.write(named, Moment::now())
    }
}

impl<T: DdsType, P: Plain> Deref for LoanSequence<'_, T, P> {
    type Target = [P];
    fn deref(&self) -> &[P] {
        bytemuck::cast_slice(self.lent.body().get(self.start..).unwrap_or_default())
    }
}

impl<T: DdsType, P: Plain> DerefMut for LoanSequence<'_, T, P> {
    fn deref_mut(&mut self) -> &mut [P] {
        let start = self.start;
        bytemuck::cast_slice_mut(self.lent.body_mut().get_mut(start..).unwrap_or_default())
    }
}

impl<T: DdsType> DataWriter<T> {
    /// Memory for `len` bytes of a serialized sample.
    ///
    /// *Shape*: the value behind the encapsulation header, aligned to 64 bytes, or to 8 if it is at most 64
    /// bytes long; what an earlier sample left is still in it. *Errors*: [`Error::OutOfResources`] when readers hold all that there is;
    /// [`Error::BadParameter`] for more than 1 GiB.
    pub fn loan_bytes(&self, len: usize) -> Result<LoanBytes<'_, T>> {
        Ok(LoanBytes { lent: Lent::new(self, len, Short::ALIGN)? })
    }

    /// Memory for a sample whose last member is a sequence of `count` elements: all other members are those
    /// of `head`, whose own sequence must be empty.
    ///
    /// *Errors*: [`Error::BadParameter`] if the type is not final, its last member is no such sequence or part of the key,
    /// that of `head` is not empty or `count` is above its bound; [`Error::Unsupported`] where CDR does not align the elements as memory
    /// does, and in XCDR2 for elements that are structures, whose length it has before them; [`Error::OutOfResources`] as [`DataWriter::loan_bytes`]. *Cost*: `head` is encoded, and decoded
    /// with one element, a few times.
    ///
    /// A sequence of a primitive is one of structures with a single member: both have the same form.
    ///
    /// ```
    /// use taut::{DdsType, Duration, Qos, cdr::bytemuck};
    /// # use taut::{Config, DomainParticipant};
    ///
    /// #[derive(DdsType)]
    /// #[dds(final)]
    /// struct Image {
    ///     width: u32,
    ///     pixels: Vec<u8>,
    /// }
    ///
    /// #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// #[bytemuck(crate = "taut::cdr::bytemuck")]
    /// #[dds(final, plain)]
    /// #[repr(C)]
    /// struct Pixel {
    ///     grey: u8,
    /// }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 79, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let participant = DomainParticipant::with_config(&config)?;
    /// let topic = participant.topic::<Image>("Image")?;
    /// let (writer, reader) = (topic.writer(Qos::default())?, topic.reader(Qos::default())?);
    /// let mut pixels = writer.loan_sequence(&Image { width: 640, pixels: Vec::new() }, 640 * 480)?;
    /// pixels.fill(Pixel { grey: 128 });
    /// pixels.write()?;
    /// reader.wait(Duration::from_secs(1))?;
    /// assert_eq!(reader.take_next()?.unwrap().data.unwrap().pixels[640 * 480 - 1], 128);
    /// # Ok(())
    /// # }
    /// ```
    pub fn loan_sequence<P: Plain>(&self, head: &T, count: usize) -> Result<LoanSequence<'_, T, P>> {
        self.untyped.executor.may_use()?;
        let (instance, key) = self.name_later(head)?;
        let mut body = Vec::new();
        let encoded =
            taut_cdr::append(&mut body, self.untyped.representation, Endian::NATIVE, |out| head.encode(out));
        encoded.map_err(refused::<T>)?;
        let fits = |what: &str| Error::BadParameter(format!("{}: {what}", T::TYPE_NAME));
        let Some(at) = body.len().checked_sub(4).filter(|_| T::EXTENSIBILITY == Extensibility::Final) else {
            return Err(fits("only a final type that ends in a sequence can be lent in parts"));
        };
        if body.get(at..) != Some(&[0; 4]) {
            return Err(fits("the sequence of the head must be empty, and the last member"));
        }
        let start = body.len();
        if start % align_of::<P>() != 0 {
            return Err(Error::Unsupported(format!(
                "{}: its elements would not be aligned in place; use write",
                T::TYPE_NAME
            )));
        }
        self.check_ends_in::<P>(&body, at, instance)?;
        let bound = T::last_bound();
        if bound != 0 && count > bound {
            return Err(fits(&format!("{count} elements, and its sequence has at most {bound}")));
        }
        let elements = count.checked_mul(size_of::<P>()).and_then(|len| len.checked_add(start));
        let (Some(len), Ok(count)) = (elements, u32::try_from(count)) else {
            return Err(fits("too many elements"));
        };
        let mut lent = Lent::new(self, len, align_of::<P>())?;
        if let Some(to) = lent.body_mut().get_mut(..start) {
            to.copy_from_slice(&body);
        }
        if let Some(to) = lent.body_mut().get_mut(at..start) {
            to.copy_from_slice(&count.to_ne_bytes());
        }
        Ok(LoanSequence { lent, instance, key, start, of: PhantomData })
    }

    /// Is what starts at `at` the count of a sequence of `P`, which is no key? Tried with one element of zeros, as strings
    /// have in them, and with one of ones, as they have not, and with one byte less, which must be refused.
    fn check_ends_in<P: Plain>(&self, body: &[u8], at: usize, instance: InstanceHandle) -> Result<()> {
        let representation = self.untyped.representation;
        let mut one = body.get(..at).unwrap_or_default().to_vec();
        one.extend_from_slice(&1_u32.to_ne_bytes());
        let start = one.len();
        one.resize(start + size_of::<P>(), 0);
        let read =
            |bytes: &[u8]| T::decode(&mut taut_cdr::Decoder::new(bytes, representation, Endian::NATIVE)).ok();
        let ends = |one: &[u8]| {
            let (head, element) = one.split_at(start);
            let of_ones = [head, &vec![1; element.len()]].concat();
            let is_longer = read(&one[..one.len() - 1]).is_none() && read(&of_ones).is_some();
            read(one).filter(|_| is_longer)
        };
        if let Some(sample) = ends(&one) {
            if taut_cdr::key_hash(&sample, representation) != Ok(instance) {
                return Err(Error::BadParameter(format!(
                    "{}: its sequence is part of the key; use write",
                    T::TYPE_NAME
                )));
            }
            return Ok(());
        }
        // XTypes 1.3 §7.4.3.5: in XCDR2 a sequence of structures has a DHEADER, how long it is, before its count.
        let header = at.checked_sub(4).and_then(|from| one.get_mut(from..at));
        if let (Some(header), Ok(len)) = (header, u32::try_from(4 + size_of::<P>())) {
            header.copy_from_slice(&len.to_ne_bytes());
            if ends(&one).is_some() {
                return Err(Error::Unsupported(format!(
                    "{}: XCDR2 has the length of its last member before it; use XCDR1 or write",
                    T::TYPE_NAME
                )));
            }
        }
        Err(Error::BadParameter(format!("{}: its last member is no sequence of such elements", T::TYPE_NAME)))
    }
}

impl<T: DdsType + Plain> DataWriter<T> {
    /// Memory for a sample, to be filled in place and written.
    ///
    /// What makes a type plain, and what is refused, is in `docs/types.md`, "Plain types".
    ///
    /// *Shape*: aligned to 64 bytes, or to 8 if it is at most 64 bytes long; what an earlier sample left is
    /// still in it. *Errors*: [`Error::OutOfResources`] when readers hold all that there is. *Cost*: no copy
    /// but of at most 64 bytes, no allocation; over the network one copy, or none by AF_XDP to a frame of its own.
    ///
    /// ```
    /// use taut::{DdsType, Duration, Qos, cdr::bytemuck};
    /// # use taut::{Config, DomainParticipant};
    ///
    /// #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// #[bytemuck(crate = "taut::cdr::bytemuck")]
    /// #[dds(final, plain)]
    /// #[repr(C)]
    /// struct Scan {
    ///     ranges: [f32; 4096],
    /// }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 79, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let participant = DomainParticipant::with_config(&config)?;
    /// let topic = participant.topic::<Scan>("Loaned")?;
    /// let (writer, reader) = (topic.writer(Qos::default())?, topic.reader(Qos::default())?);
    /// let mut loan = writer.loan()?;
    /// loan.ranges.fill(1.5);
    /// loan.write()?;
    /// reader.wait(Duration::from_secs(1))?;
    /// let sample = reader.take_view()?.unwrap();
    /// assert_eq!(sample.data().unwrap().ranges[4095], 1.5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn loan(&self) -> Result<Loan<'_, T>> {
        Ok(Loan { lent: Lent::new(self, size_of::<T>(), align_of::<T>())? })
    }
}

/// A sample that is looked at where it lies. Dropped, it gives the memory back to its writer.
///
/// Keep few: a reader may hold 240 samples of one writer, what it takes beyond is copied, and a writer
/// whose memory is held finds none to lend.
pub struct View<T: Plain> {
    data: Data<T>,
    /// All that is known of the sample.
    pub info: SampleInfo,
}

enum Data<T> {
    /// The sample only tells that the state of its instance has changed: what is known of that.
    None(taut_mem::lane::Payload, PayloadKind),
    /// As the writer wrote it.
    InPlace(taut_mem::lane::Payload),
    /// Its bytes were not as they lie in memory here.
    Decoded(Box<T>),
}

impl<T: DdsType + Plain> View<T> {
    /// The data; `None` if the sample only tells that the state of its instance has changed.
    pub fn data(&self) -> Option<&T> {
        match &self.data {
            Data::None(..) => None,
            Data::InPlace(payload) => taut_cdr::view(payload).ok(),
            Data::Decoded(value) => Some(value),
        }
    }

    /// The key of the instance if the sample has no data, and if it is known: other members have their initial values.
    pub fn key(&self) -> Option<T> {
        match &self.data {
            Data::None(payload, kind) => decode_key(payload, *kind),
            _ => None,
        }
    }

    fn of(mut taken: Taken<'_>) -> Option<View<T>> {
        let info = *taken.info;
        let data = if !info.valid_data {
            Data::None(taken.payload.take(), taken.payload_kind)
        } else if taut_cdr::view::<T>(&taken.payload).is_ok() {
            Data::InPlace(taken.payload.take())
        } else {
            Data::Decoded(taut_cdr::take_plain_boxed(&taken.payload).ok()?)
        };
        Some(View { data, info })
    }
}

impl<T: DdsType + Plain> DataReader<T> {
    /// Takes the next sample that was not read before, to look at it in place. Of one without data [`View::key`] tells which
    /// instance has ended.
    ///
    /// *Cost*: no copy and no allocation for what came from this machine or in this machine's byte order;
    /// one of each otherwise.
    pub fn take_view(&self) -> Result<Option<View<T>>> {
        let UntypedReader { executor, door, .. } = &self.untyped;
        executor.may_use()?;
        let mut view = None;
        while executor.take_next(door, 0, &mut |taken| view = View::of(taken)) && view.is_none() {
            executor.note_lost(door, 1);
            warn_of_other_type(T::TYPE_NAME);
        }
        Ok(view)
    }
}
