//! All experiments, paper by paper.

mod abiss;
mod clockwise;
mod peers;
mod qos;
mod semi_preemptible;
mod whole;

use crate::Experiment;

/// Every experiment, in the order of its paper.
pub fn catalogue() -> Vec<Experiment> {
    [
        clockwise::chapter_3::EXPERIMENTS,
        clockwise::chapter_4::EXPERIMENTS,
        clockwise::EXPERIMENTS,
        clockwise::chapter_6::EXPERIMENTS,
        clockwise::chapter_7::EXPERIMENTS,
        clockwise::CHAPTER_8,
        semi_preemptible::EXPERIMENTS,
        qos::EXPERIMENTS,
        abiss::EXPERIMENTS,
        peers::EXPERIMENTS,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_fit_a_shell_a_file_and_a_link() {
        let mut names: Vec<&str> = catalogue().iter().map(|experiment| experiment.name).collect();
        for name in &names {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            assert!(name.chars().all(fits), "{name}");
        }
        for experiment in catalogue() {
            assert!(experiment.name.starts_with(experiment.paper.name()), "{experiment:?}");
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
