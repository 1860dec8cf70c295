//! Every simulated experiment, quickly: it ends, says something, and contradicts no
//! paper without a reason.

mod documents;

use lab::{Effort, Ended, Verdict, catalogue, pages, run};

#[test]
fn every_simulated_experiment_is_sound() {
    let simulated: Vec<_> = catalogue().into_iter().filter(|e| !e.real_time).collect();
    assert!(!simulated.is_empty());
    let ended = run(&simulated, Effort::Quick, 2, &|_| {});
    for ended in &ended {
        let name = ended.experiment.name;
        eprintln!("{name}: {:.1} s", ended.took.as_secs_f64());
        match &ended.findings {
            Ok(findings) => {
                for claim in findings.claims.iter().filter(|claim| claim.is_unexplained()) {
                    eprintln!("  {}: printed {}, ours {}", claim.text, claim.printed, claim.ours);
                }
            }
            Err(words) => eprintln!("  broke off: {words}"),
        }
    }
    let unsound: Vec<&str> =
        ended.iter().filter(|e| !e.is_sound()).map(|e| e.experiment.name).collect();
    assert!(unsound.is_empty(), "{unsound:?}");
    let claims = ended.iter().filter_map(|e: &Ended| e.findings.as_ref().ok());
    let reasoned = claims.flat_map(|findings| &findings.claims);
    for claim in reasoned.filter(|claim| claim.verdict == Verdict::NotReproducible) {
        assert!(claim.because.as_ref().is_some_and(|why| !why.is_empty()), "{}", claim.text);
    }
    documents::hold(&ended);
    let charts = ended.iter().filter_map(|e| e.findings.as_ref().ok()).flat_map(|f| &f.charts);
    for title in charts.map(|chart| chart.title()) {
        assert!(title.chars().count() <= 54, "cut off on its chart: {title}");
    }
    let files = pages(&ended, &[]);
    let page = &files[0].1;
    for ended in &ended {
        assert!(page.contains(&format!("id=\"{}\"", ended.experiment.name)));
    }
}
