//! Who keeps what, when the rules change.
//!
//! Owns nothing: told which rules would allow each participant, it says by which of them each is there from now on. Called by
//! the server when it is given another policy.

use std::collections::BTreeSet;

/// By which rule each participant is there; `None` for who is not. Those before keep a place whoever comes behind them,
/// and go by another of their rules if that makes room for one of these: nobody is left out who could be there too.
///
/// `fitting` are the rules that allow each of them, in the order of their age; `most` says how many each rule may have.
pub(crate) fn places(fitting: &[Vec<usize>], most: impl Fn(usize) -> Option<u32>) -> Vec<Option<usize>> {
    let mut places = vec![None; fitting.len()];
    for at in 0..fitting.len() {
        place(at, fitting, &most, &mut places, &mut BTreeSet::new());
    }
    places
}

/// Finds a place for one of them. No rule is tried twice for it, so this is never deeper than there are rules.
fn place(
    at: usize,
    fitting: &[Vec<usize>],
    most: &impl Fn(usize) -> Option<u32>,
    places: &mut Vec<Option<usize>>,
    tried: &mut BTreeSet<usize>,
) -> bool {
    for rule in fitting.get(at).into_iter().flatten() {
        if !tried.insert(*rule) {
            continue;
        }
        let there: Vec<usize> = (0..places.len()).filter(|other| places[*other] == Some(*rule)).collect();
        let has_room = most(*rule).is_none_or(|most| there.len() < most as usize);
        if has_room || there.into_iter().any(|other| place(other, fitting, most, places, tried)) {
            places[at] = Some(*rule);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_keep_their_places() {
        let fitting = [vec![0], vec![0], vec![], vec![0]];
        assert_eq!(places(&fitting, |_| None), [Some(0), Some(0), None, Some(0)]);
        assert_eq!(places(&fitting, |_| Some(2)), [Some(0), Some(0), None, None]);
    }

    #[test]
    fn one_goes_by_another_rule_to_make_room() {
        let one = |_| Some(1);
        assert_eq!(places(&[vec![0, 1], vec![0]], one), [Some(1), Some(0)]);
        assert_eq!(places(&[vec![0, 1], vec![1, 2], vec![0]], one), [Some(1), Some(2), Some(0)]);
        assert_eq!(places(&[vec![0, 1], vec![0, 1], vec![0, 1]], one), [Some(1), Some(0), None]);
        assert_eq!(places(&[vec![0], vec![0, 1], vec![1]], one), [Some(0), Some(1), None]);
    }

    /// As many as there may be, each with two of these rules.
    #[test]
    fn a_row_of_many() {
        let fitting: Vec<Vec<usize>> = (0..256).rev().map(|at| vec![at, at + 1]).chain([vec![256]]).collect();
        assert!(places(&fitting, |_| Some(1)).iter().all(Option::is_some));
    }
}
