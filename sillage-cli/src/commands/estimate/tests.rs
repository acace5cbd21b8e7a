use sillage::core::document::Format;
use sillage::core::task;
use unicode_width::UnicodeWidthStr as _;

use super::*;

const TASK: &str = r#"
task: Names of all kinds
limits: { parallel: 2 }
agents:
  - { id: first, mission: Begin., model: m, effort: low }
  - { id: an-agent-with-a-name-that-is-longer-than-most-names-are, mission: Work., model: m, effort: high }
  - { id: c, mission: Work., model: a-model-with-a-long-name-too, effort: high }
  - { id: d, mission: Work., model: m, effort: low }
links: [ "first -> an-agent-with-a-name-that-is-longer-than-most-names-are", first -> c, first -> d ]
"#;

fn estimate() -> Foreseen {
    let task = task::read(TASK, Format::Either, None).unwrap();
    let estimator = estimator_of(&task, None, None, &[], &Past::default()).unwrap();
    estimator.estimate(Replays::default())
}

#[test]
fn the_chart_the_table_and_the_path_fit_the_terminal() {
    let estimate = estimate();
    for width in [40, 60, 80, 100, 180] {
        for drawn in [chart::lines(&estimate, width), table::lines(&estimate, width)] {
            assert_eq!(drawn.len(), 5);
            for (line, _) in &drawn {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }
    assert!(critical_path(&estimate, 200).len() < critical_path(&estimate, 40).len());
}

#[test]
fn a_bar_stands_under_the_end_of_the_one_that_it_waits_for() {
    let drawn = chart::lines(&estimate(), 100);
    let bar = |at: usize| {
        let line: Vec<char> = drawn[at].0.chars().collect();
        let filled = line.iter().enumerate().filter(|(_, c)| ('▁'..='▏').contains(*c));
        let places: Vec<usize> = filled.map(|(place, _)| place).collect();
        (places[0], places[places.len() - 1])
    };
    assert!(bar(1).0.abs_diff(bar(0).1) <= 1, "{drawn:#?}");
    assert!(bar(0).1 <= bar(2).0);
    assert!(drawn[0].1, "the first decides in every replay");
}
