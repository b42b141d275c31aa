//! BPF instructions with labels instead of distances: as many as the program needs, and no more.
//!
//! Owns the form of an instruction (linux/bpf.h, linux/bpf_common.h; RFC 9669). Knows neither what a program
//! is for nor how it is loaded; the verifier of the kernel is who judges it.

use std::os::fd::RawFd;

/// A register. R1 to R5 are the arguments of a call and lost by it, R0 is its result, R6 to R9 stay, and R10
/// is the end of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R6 = 6,
    R7,
    R8,
    R9,
    R10 = 10,
}

/// How many bytes are loaded or stored: the field SIZE of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
}

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(usize);

/// One instruction, as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Class, mode or operation, and source of the operations that the program uses.
const LDX_MEM: u8 = 0x61;
const STX_MEM: u8 = 0x63;
const LD_IMM64: u8 = 0x18;
const MOV64_X: u8 = 0xbf;
const MOV64_K: u8 = 0xb7;
const ADD64_K: u8 = 0x07;
const AND64_K: u8 = 0x57;
const TO_BIG_ENDIAN: u8 = 0xdc;
const JA: u8 = 0x05;
const JGT_X: u8 = 0x2d;
const JEQ_K: u8 = 0x15;
const JNE_K: u8 = 0x55;
const JLT_K: u8 = 0xa5;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// The source of LD_IMM64 that says: the number is the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// A program whose maps are numbers yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Code {
    instructions: Vec<Instruction>,
    /// Which instruction is to name which map.
    maps: Vec<(usize, usize)>,
}

/// A program in the making.
#[derive(Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    maps: Vec<(usize, usize)>,
    /// Where each label stands.
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label that stands nowhere yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Has a label stand before the next instruction.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    /// `to` = what stands at `from` + `offset`.
    pub fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) {
        self.push(LDX_MEM | size as u8, to, from as u8, offset, 0);
    }

    /// What stands at `to` + `offset` = `from`.
    pub fn store(&mut self, size: Size, to: Register, offset: i16, from: Register) {
        self.push(STX_MEM | size as u8, to, from as u8, offset, 0);
    }

    /// `to` = `from`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.push(MOV64_X, to, from as u8, 0, 0);
    }

    /// `to` = a number.
    pub fn set(&mut self, to: Register, number: i32) {
        self.push(MOV64_K, to, 0, 0, number);
    }

    /// `to` += a number.
    pub fn add(&mut self, to: Register, number: i32) {
        self.push(ADD64_K, to, 0, 0, number);
    }

    /// `to` &= a number.
    pub fn and(&mut self, to: Register, number: i32) {
        self.push(AND64_K, to, 0, 0, number);
    }

    /// Turns 16 bits from the order of the network to that of the machine.
    pub fn network16(&mut self, to: Register) {
        self.push(TO_BIG_ENDIAN, to, 0, 0, 16);
    }

    /// Jumps.
    pub fn jump(&mut self, label: Label) {
        self.jump_by(JA, Register::R0, 0, 0, label);
    }

    /// Jumps if `left` > `right`, without sign.
    pub fn jump_if_above(&mut self, left: Register, right: Register, label: Label) {
        self.jump_by(JGT_X, left, right as u8, 0, label);
    }

    /// Jumps if `left` < a number, without sign.
    pub fn jump_if_below(&mut self, left: Register, number: i32, label: Label) {
        self.jump_by(JLT_K, left, 0, number, label);
    }

    /// Jumps if `left` == a number.
    pub fn jump_if(&mut self, left: Register, number: i32, label: Label) {
        self.jump_by(JEQ_K, left, 0, number, label);
    }

    /// Jumps if `left` != a number.
    pub fn jump_unless(&mut self, left: Register, number: i32, label: Label) {
        self.jump_by(JNE_K, left, 0, number, label);
    }

    /// `to` = the map of that number in [`Code::with_maps`].
    pub fn map(&mut self, to: Register, map: usize) {
        self.maps.push((self.instructions.len(), map));
        self.push(LD_IMM64, to, PSEUDO_MAP_FD, 0, 0);
        self.instructions.push(Instruction::default());
    }

    /// Calls a helper of the kernel.
    pub fn call(&mut self, helper: i32) {
        self.push(CALL, Register::R0, 0, 0, helper);
    }

    /// Ends the program with R0 as its result.
    pub fn exit(&mut self) {
        self.push(EXIT, Register::R0, 0, 0, 0);
    }

    /// The program with all distances in place.
    pub fn finish(mut self) -> Code {
        for (at, label) in self.jumps {
            let to = self.labels[label.0].expect("invariant: each label that is jumped to is placed");
            let distance = to as i64 - at as i64 - 1;
            self.instructions[at].offset =
                i16::try_from(distance).expect("invariant: a program is shorter than a jump");
        }
        Code { instructions: self.instructions, maps: self.maps }
    }

    fn jump_by(&mut self, code: u8, left: Register, right: u8, number: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(code, left, right, 0, number);
    }

    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        let registers =
            if cfg!(target_endian = "little") { to as u8 | from << 4 } else { (to as u8) << 4 | from };
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

impl Code {
    /// The program with descriptors for its maps, in the order of their numbers.
    pub fn with_maps(&self, maps: &[RawFd]) -> Vec<Instruction> {
        let mut instructions = self.instructions.clone();
        for (at, map) in &self.maps {
            instructions[*at].immediate = maps[*map];
        }
        instructions
    }
}

#[cfg(test)]
impl Code {
    /// The bytes of a program, with no map named.
    pub fn bytes(&self) -> Vec<u8> {
        let of = |i: &Instruction| {
            let mut bytes = vec![i.code, i.registers];
            bytes.extend(i.offset.to_ne_bytes());
            bytes.extend(i.immediate.to_ne_bytes());
            bytes
        };
        self.instructions.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Register::{R0, R1, R2, R10};
    use super::*;

    #[test]
    fn labels_become_distances_both_ways() {
        let mut assembler = Assembler::default();
        let (end, start) = (assembler.label(), assembler.label());
        assembler.place(start);
        assembler.set(R0, 2);
        assembler.jump_if(R0, 3, end);
        assembler.map(R1, 0);
        assembler.jump_unless(R0, 4, start);
        assembler.place(end);
        assembler.exit();
        let offsets: Vec<i16> = assembler.finish().instructions.iter().map(|i| i.offset).collect();
        assert_eq!(offsets, [0, 3, 0, 0, -5, 0], "a map takes two instructions");
    }

    #[test]
    #[should_panic(expected = "each label that is jumped to is placed")]
    fn a_label_that_stands_nowhere() {
        let mut assembler = Assembler::default();
        let nowhere = assembler.label();
        assembler.jump_if(R0, 3, nowhere);
        assembler.finish();
    }

    #[test]
    fn maps_are_named_last() {
        let mut assembler = Assembler::default();
        assembler.map(R1, 1);
        assembler.map(R2, 0);
        let code = assembler.finish();
        let numbers = |code: &[Instruction]| code.iter().map(|i| i.immediate).collect::<Vec<_>>();
        assert_eq!(numbers(&code.with_maps(&[7, 8])), [8, 0, 7, 0]);
        assert_eq!(numbers(&code.instructions), [0; 4]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn bytes_as_in_the_standard() {
        let mut assembler = Assembler::default();
        assembler.store(Size::Half, R10, -2, R1);
        assembler.load(Size::Word, R2, R1, 16);
        let expected = [0x6b, 0x1a, 0xfe, 0xff, 0, 0, 0, 0, 0x61, 0x12, 16, 0, 0, 0, 0, 0];
        assert_eq!(assembler.finish().bytes(), expected);
    }
}
