//! Charts of a loop's iterations as inline SVG: time, checks and cost.
//!
//! Every text in a chart is a number or a fixed word.

use std::fmt::Write;

use swarm_state::morning::{IterationPoint, brief_dollars, brief_duration};

/// The size of a chart in its own units, which the page scales.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 118.0;

/// The vertical place of the bars, between the largest value above and the numbers of the iterations below.
const TOP: f64 = 16.0;
const BOTTOM: f64 = 102.0;

/// The widest place of one bar, and the share of it that the bar fills.
const MAX_STEP: f64 = 32.0;
const BAR_SHARE: f64 = 0.8;

const MIN_HEIGHT: f64 = 1.5;

/// A part of a bar: its class, which gives it a color, and its value.
type Part = (&'static str, f64);

struct Chart<'a> {
    title: String,
    /// The classes of the parts, with their names.
    legend: &'a [(&'static str, &'a str)],
    /// The parts of the bar of an iteration, from the bottom up.
    parts: fn(&IterationPoint) -> Vec<Part>,
    /// A value as text.
    value: fn(f64) -> String,
}

/// The charts of the last iterations of a loop, which had `total` of them. Empty without iterations. A chart whose
/// values are all unknown or zero is left out.
pub(super) fn charts(points: &[IterationPoint], total: u64) -> String {
    if points.is_empty() {
        return String::new();
    }
    let time = |seconds: f64| brief_duration(seconds.round() as u64);
    let sum = |value: fn(&IterationPoint) -> f64| points.iter().map(value).sum::<f64>();
    let seconds = sum(|point| point.agent_seconds + point.check_seconds.unwrap_or_default());
    let (passed, failed) = (sum(|point| point.checks_passed as f64), sum(|point| point.checks_failed as f64));
    let cost = points.iter().filter_map(|point| point.cost).sum::<u64>();
    let (passed, failed) = (format!("{passed} passed"), format!("{failed} failed"));
    let charts = [
        Chart {
            title: format!("time: {}", time(seconds)),
            legend: &[("agent", "agent"), ("failed", "agent failed"), ("check", "checks")],
            parts: |point| {
                let agent = if point.failed { "failed" } else { "agent" };
                vec![(agent, point.agent_seconds), ("check", point.check_seconds.unwrap_or_default())]
            },
            value: |seconds| brief_duration(seconds.round() as u64),
        },
        Chart {
            title: "checks:".to_owned(),
            legend: &[("passed", &passed), ("failed", &failed)],
            parts: |point| {
                vec![("passed", point.checks_passed as f64), ("failed", point.checks_failed as f64)]
            },
            value: |count| count.to_string(),
        },
        Chart {
            title: format!("cost: {}", brief_dollars(cost)),
            legend: &[],
            parts: |point| vec![("cost", point.cost.unwrap_or_default() as f64)],
            value: |cost| brief_dollars(cost as u64),
        },
    ];
    let mut html = String::from("<div class=\"charts\">\n");
    charts.iter().for_each(|chart| chart.draw(points, &mut html));
    html.push_str("</div>\n");
    if total > points.len() as u64 {
        let _ = writeln!(
            html,
            "<p class=\"dim\">The charts show the last {} of {total} iterations.</p>",
            points.len()
        );
    }
    html
}

impl Chart<'_> {
    fn draw(&self, points: &[IterationPoint], html: &mut String) {
        let bars: Vec<Vec<Part>> = points.iter().map(self.parts).collect();
        let highest = bars.iter().map(|bar| total(bar)).fold(0.0, f64::max);
        if highest <= 0.0 {
            return;
        }
        let _ = writeln!(html, "<figure>\n<figcaption>{}{}</figcaption>", self.title, self.keys(&bars));
        let _ = writeln!(
            html,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n\
             <text x=\"0\" y=\"10\">{}</text>\n<line x1=\"0\" y1=\"{BOTTOM}\" x2=\"{WIDTH}\" y2=\"{BOTTOM}\"/>",
            self.label(),
            (self.value)(highest)
        );
        let step = (WIDTH / points.len() as f64).min(MAX_STEP);
        for (index, (point, parts)) in points.iter().zip(&bars).enumerate() {
            let left = index as f64 * step;
            self.draw_bar(point, parts, (left, step * BAR_SHARE), highest, html);
        }
        let middle = |index: usize| (index as f64 + BAR_SHARE / 2.0) * step;
        let last = points.len() - 1;
        let ends = if last == 0 { vec![0] } else { vec![0, last] };
        for index in ends {
            let anchor = if index == 0 { "start" } else { "end" };
            let x = if index == 0 { 0.0 } else { middle(index) + step * BAR_SHARE / 2.0 };
            let number = points[index].iteration;
            let _ = writeln!(html, "<text x=\"{x:.1}\" y=\"114\" text-anchor=\"{anchor}\">{number}</text>");
        }
        html.push_str("</svg>\n</figure>\n");
    }

    /// Draws the bar of one iteration, with its values as a tip.
    fn draw_bar(
        &self,
        point: &IterationPoint,
        parts: &[Part],
        (left, width): (f64, f64),
        highest: f64,
        html: &mut String,
    ) {
        let values = parts.iter().filter(|(_, value)| *value > 0.0);
        let values: Vec<String> =
            values.map(|(class, value)| format!("{}: {}", word(class), (self.value)(*value))).collect();
        let _ = write!(html, "<g><title>iteration {}: {}</title>", point.iteration, values.join(", "));
        let mut base = BOTTOM;
        for (class, value) in parts.iter().filter(|(_, value)| *value > 0.0) {
            let height = (value / highest * (BOTTOM - TOP)).max(MIN_HEIGHT);
            base -= height;
            let _ = write!(
                html,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{base:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
        html.push_str("</g>\n");
    }

    /// The title and the names of the parts, for readers who do not see the chart.
    fn label(&self) -> String {
        let names: Vec<&str> = self.legend.iter().map(|(_, name)| *name).collect();
        format!("{} {}", self.title, names.join(", ")).trim_end().to_owned()
    }

    fn keys(&self, bars: &[Vec<Part>]) -> String {
        let is_used = |class: &str| bars.iter().flatten().any(|(used, value)| *used == class && *value > 0.0);
        let used: Vec<_> = self.legend.iter().filter(|(class, _)| is_used(class)).collect();
        let key = |(class, name): &&(&str, &str)| format!(" <span class=\"key {class}\">{name}</span>");
        used.iter().map(key).collect()
    }
}

fn word(class: &str) -> &str {
    if class == "check" { "checks" } else { class }
}

fn total(parts: &[Part]) -> f64 {
    parts.iter().map(|(_, value)| value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(iteration: u32, agent: f64, checks: (u64, u64), cost: Option<u64>) -> IterationPoint {
        IterationPoint {
            iteration,
            agent_seconds: agent,
            check_seconds: Some(5.0),
            failed: iteration == 2,
            checks_passed: checks.0,
            checks_failed: checks.1,
            cost,
            ..IterationPoint::default()
        }
    }

    #[test]
    fn three_charts_of_three_iterations() {
        let points = [
            point(1, 60.0, (1, 2), Some(100_000)),
            point(2, 5.0, (0, 0), None),
            point(3, 90.0, (3, 0), Some(250_000)),
        ];
        insta::assert_snapshot!(charts(&points, 3));
    }

    #[test]
    fn a_chart_without_values_is_left_out() {
        assert_eq!(charts(&[], 0), "");
        let html = charts(&[point(7, 1.0, (0, 0), None)], 9);
        assert_eq!(html.matches("<svg").count(), 1, "{html}");
        assert!(html.contains("time: 6s") && html.contains("the last 1 of 9 iterations"), "{html}");
        let nothing = IterationPoint { iteration: 1, ..IterationPoint::default() };
        assert_eq!(charts(&[nothing], 1).matches("<svg").count(), 0);
    }

    #[test]
    fn bars_stay_inside_the_chart() {
        for count in [1_u32, 2, 10, 100] {
            let points: Vec<IterationPoint> =
                (1..=count).map(|number| point(number, f64::from(number), (1, 1), Some(1))).collect();
            let html = charts(&points, u64::from(count));
            let values = |name: &str| -> Vec<f64> {
                let parts = html.split("<rect ").skip(1);
                parts
                    .map(|rect| {
                        rect.split(&format!(" {name}=\""))
                            .nth(1)
                            .unwrap()
                            .split('"')
                            .next()
                            .unwrap()
                            .parse()
                            .unwrap()
                    })
                    .collect()
            };
            assert!(values("x").iter().zip(values("width")).all(|(x, width)| x + width <= WIDTH), "{count}");
            assert!(values("y").iter().all(|y| *y >= TOP - 2.0 * MIN_HEIGHT), "{count}");
        }
    }
}
