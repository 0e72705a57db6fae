//! JSON with one case to a line, so that a change to one case is a change of one line.

use serde_json::Value;

/// Renders a value over several lines down to a depth, and each value below it, or without a
/// value nested in it, on one line.
#[must_use]
pub fn render(value: &Value, depth: usize) -> String {
    let mut out = String::new();
    write(value, depth, 0, &mut out);
    out.push('\n');
    out
}

fn write(value: &Value, depth: usize, level: usize, out: &mut String) {
    let (brackets, items): (_, Vec<(String, &Value)>) = match value {
        Value::Array(items) => {
            (['[', ']'], items.iter().map(|item| (String::new(), item)).collect())
        }
        Value::Object(fields) => (
            ['{', '}'],
            fields
                .iter()
                .map(|(key, field)| (format!("{}: ", Value::from(key.as_str())), field))
                .collect(),
        ),
        scalar => return out.push_str(&scalar.to_string()),
    };
    let nested = items.iter().any(|(_, item)| item.is_array() || item.is_object());
    let broken = level < depth && nested;
    let margin = |level| {
        if broken { format!("\n{}", "  ".repeat(level)) } else { String::new() }
    };
    out.push(brackets[0]);
    for (index, (key, item)) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(if broken { "," } else { ", " });
        }
        out.push_str(&margin(level + 1));
        out.push_str(key);
        write(item, depth, level + 1, out);
    }
    out.push_str(&margin(level));
    out.push(brackets[1]);
}
