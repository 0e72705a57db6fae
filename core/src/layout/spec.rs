//! Layouts as texts: `twitter`, `twitter,epoch_ms=1577836800000`, or
//! `time:41,node:10,sequence:12,tick_ms=1,sequence=random:100`.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use super::{CustomLayout, Field, Layout, Sequence};
use crate::{
    Error, Result,
    bindings::{field_of, quoted, sequence_name, sequence_of},
};

/// An option of a layout, and what it is set to.
#[derive(Clone, Copy)]
enum Setting {
    EpochMs(i64),
    Starts(Sequence),
    TickMs(u32),
    Unsigned(bool),
    NodeSplit(u32, u32),
}

impl FromStr for Layout {
    type Err = Error;

    /// Reads the text of a layout: the name of a preset, or the fields of another layout from high to
    /// low with their widths in bits, and then options, all separated by commas.
    ///
    /// | option | for | |
    /// |---|---|---|
    /// | `epoch_ms=1577836800000` | all | [`with_epoch_ms`](Layout::with_epoch_ms) |
    /// | `sequence=zero`, `=continuing` or `=random:100` | all | [`with_sequence`](Layout::with_sequence) |
    /// | `tick_ms=10` | fields | [`CustomLayout::tick_ms`] |
    /// | `unsigned=true` | fields | [`CustomLayout::unsigned`] |
    /// | `node_split=5:5` | fields | [`CustomLayout::node_split`] |
    ///
    /// ```
    /// use randflake::Layout;
    ///
    /// let ours: Layout = "twitter,epoch_ms=1577836800000".parse()?;
    /// assert_eq!(ours, Layout::twitter().with_epoch_ms(1577836800000)?);
    /// let seconds: Layout = "time:29,node:21,sequence:13,tick_ms=1000".parse()?;
    /// assert_eq!((seconds.node_bits(), seconds.tick_ms()), (21, 1000));
    /// assert_eq!(seconds.to_string().parse::<Layout>()?, seconds);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): there is no such preset, field or
    /// option, an option is given twice, or what they describe is no layout that
    /// [`CustomLayout::build`] makes.
    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<_> = text.split(',').collect();
        let is_field = |part: &&&str| part.contains(':') && !part.contains('=');
        let fields = parts.iter().take_while(is_field).count();
        let names = if fields == 0 { 1 } else { fields };
        let mut settings = Vec::with_capacity(parts.len());
        for part in &parts[names..] {
            let setting = setting(part)?;
            let is_same =
                |other: &Setting| std::mem::discriminant(other) == std::mem::discriminant(&setting);
            if settings.iter().any(is_same) {
                return Err(wrong(part, "this option is given twice"));
            }
            settings.push(setting);
        }
        if fields == 0 {
            return settings.into_iter().try_fold(
                preset(parts[0])?,
                |layout, setting| match setting {
                    Setting::EpochMs(epoch_ms) => layout.with_epoch_ms(epoch_ms),
                    Setting::Starts(starts) => layout.with_sequence(starts),
                    _ => Err(Error::invalid_argument(format!(
                        "the preset {} takes epoch_ms and sequence; for anything else, list the \
                         fields: {}",
                        layout.name,
                        Fields(&layout)
                    ))),
                },
            );
        }
        let listed = parts[..fields].iter().map(|part| field(part)).collect::<Result<Vec<_>>>()?;
        settings.into_iter().fold(Self::custom(listed), CustomLayout::with).build()
    }
}

impl CustomLayout {
    fn with(self, setting: Setting) -> Self {
        match setting {
            Setting::EpochMs(epoch_ms) => self.epoch_ms(epoch_ms),
            Setting::Starts(starts) => self.sequence(starts),
            Setting::TickMs(tick_ms) => self.tick_ms(tick_ms),
            Setting::Unsigned(unsigned) => self.unsigned(unsigned),
            Setting::NodeSplit(datacenter, worker) => self.node_split(datacenter, worker),
        }
    }
}

/// Writes the text that [`FromStr`] reads.
///
/// ```
/// use randflake::{Layout, Sequence};
///
/// assert_eq!(Layout::twitter().to_string(), "twitter");
/// let spread = Layout::twitter().with_sequence(Sequence::Random(16))?;
/// assert_eq!(spread.to_string(), "twitter,sequence=random:16");
/// # Ok::<(), randflake::Error>(())
/// ```
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preset = Self::PRESETS.iter().find(|preset| preset.name == self.name);
        let Some(preset) = preset else {
            write!(f, "{}", Fields(self))?;
            if self.is_unsigned() {
                f.write_str(",unsigned=true")?;
            }
            if self.worker_bits > 0 {
                write!(
                    f,
                    ",node_split={}:{}",
                    self.node.bits - self.worker_bits,
                    self.worker_bits
                )?;
            }
            if self.tick_ms != 1 {
                write!(f, ",tick_ms={}", self.tick_ms)?;
            }
            return write_options(f, self, 0, Sequence::Zero);
        };
        f.write_str(self.name)?;
        write_options(f, self, preset.epoch_ms, preset.starts)
    }
}

/// Writes the options that every layout has, where they differ from these.
fn write_options(
    f: &mut fmt::Formatter<'_>,
    layout: &Layout,
    epoch_ms: i64,
    starts: Sequence,
) -> fmt::Result {
    if layout.epoch_ms != epoch_ms {
        write!(f, ",epoch_ms={}", layout.epoch_ms)?;
    }
    if layout.starts != starts {
        write!(f, ",sequence={}", sequence_name(layout.starts))?;
        if let Sequence::Random(starts) = layout.starts {
            write!(f, ":{starts}")?;
        }
    }
    Ok(())
}

/// Returns the layout that a [fingerprint](Layout::fingerprint) is of, with a preset's name if it is
/// one's, perhaps with another epoch.
#[must_use]
pub fn layout_of_fingerprint(fingerprint: &str) -> Option<Layout> {
    let packs_so = |layout: &Layout| layout.fingerprint() == fingerprint;
    let presets = || Layout::PRESETS.iter().copied();
    let (epoch_ms, rest) = fingerprint.split_once(':')?;
    let epoch_ms = number(epoch_ms)?;
    let with_epoch = |preset: Layout| preset.with_epoch_ms(epoch_ms).ok();
    if let Some(preset) = presets().chain(presets().filter_map(with_epoch)).find(packs_so) {
        return Some(preset);
    }
    let (tick_ms, fields) = rest.split_once(':')?;
    let field = |part: &str| {
        let (name, bits) = part.split_at(part.find(|digit: char| digit.is_ascii_digit())?);
        Some((field_of(name)?, number(bits)?))
    };
    let fields = fields.split(',').map(field).collect::<Option<Vec<_>>>()?;
    let unsigned = fields.iter().map(|(_, bits)| bits).sum::<u32>() == u64::BITS;
    let layout = Layout::custom(fields).tick_ms(number(tick_ms)?).epoch_ms(epoch_ms);
    layout.unsigned(unsigned).build().ok().filter(packs_so)
}

/// Describes a layout as JSON, for the command and the service.
#[must_use]
pub fn layout_json(layout: &Layout) -> String {
    let fields = layout.fields().into_iter();
    let fields: Vec<_> =
        fields.map(|(field, bits)| format!(r#"["{}",{bits}]"#, field.name())).collect();
    let starts = match layout.starts {
        Sequence::Random(starts) => format!(r#"["random",{starts}]"#),
        starts => format!("{:?}", sequence_name(starts)),
    };
    let negative_from = layout.negative_from();
    let negative_from = negative_from.map_or_else(|| "null".to_owned(), |from| from.to_string());
    format!(
        r#"{{"layout":"{layout}","name":"{}","fields":[{}],"tick_ms":{},"epoch_ms":{},"sequence":{starts},"max_node_id":{},"max_sequence":{},"ids_per_node":{},"unsigned":{},"ends_at":{},"negative_from":{negative_from}}}"#,
        layout.name,
        fields.join(","),
        layout.tick_ms,
        layout.epoch_ms,
        layout.max_node_id(),
        layout.max_sequence(),
        layout.ids_per_node(),
        layout.is_unsigned(),
        layout.ends_at(),
    )
}

/// The fields of a layout, from high to low.
struct Fields<'a>(&'a Layout);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (field, bits)) in self.0.fields().into_iter().enumerate() {
            if index > 0 {
                f.write_char(',')?;
            }
            write!(f, "{}:{bits}", field.name())?;
        }
        Ok(())
    }
}

fn preset(name: &str) -> Result<Layout> {
    Layout::PRESETS.iter().find(|preset| preset.name == name).copied().ok_or_else(|| {
        let names: Vec<_> = Layout::PRESETS.iter().map(|preset| preset.name).collect();
        let names = names.join(", ");
        Error::invalid_argument(format!(
            "there is no layout {}; there are {names}, and others are described by their fields, as \
             time:41,node:10,sequence:12",
            quoted(name)
        ))
    })
}

fn field(part: &str) -> Result<(Field, u32)> {
    part.split_once(':')
        .and_then(|(name, bits)| Some((field_of(name)?, number(bits)?)))
        .ok_or_else(|| wrong(part, "a field is time, node or sequence, and its width, as time:41"))
}

fn setting(part: &str) -> Result<Setting> {
    const FORM: &str = "an option is epoch_ms, tick_ms, sequence, unsigned or node_split, and its \
                        value, as epoch_ms=1577836800000";
    let (name, value) = part.split_once('=').ok_or_else(|| wrong(part, FORM))?;
    let (read, form) = match name {
        "epoch_ms" => (number(value).map(Setting::EpochMs), "whole unix milliseconds"),
        "tick_ms" => (number(value).map(Setting::TickMs), "whole milliseconds"),
        "sequence" => (starts(value).map(Setting::Starts), "zero, continuing or random:100"),
        "unsigned" => (value.parse().ok().map(Setting::Unsigned), "true or false"),
        "node_split" => {
            let bits = value.split_once(':');
            let bits = bits.and_then(|(one, other)| Some((number(one)?, number(other)?)));
            let form = "the widths of datacenter and worker, as 5:5";
            (bits.map(|(datacenter, worker)| Setting::NodeSplit(datacenter, worker)), form)
        }
        _ => return Err(wrong(part, FORM)),
    };
    read.ok_or_else(|| wrong(part, &format!("{name} is {form}")))
}

fn starts(value: &str) -> Option<Sequence> {
    match value.split_once(':') {
        Some((name, starts)) => sequence_of(name, Some(number(starts)?)),
        None => sequence_of(value, None),
    }
}

/// Reads digits, without a sign.
fn number<T: FromStr>(digits: &str) -> Option<T> {
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| are_digits)
}

#[cold]
fn wrong(part: &str, why: &str) -> Error {
    Error::invalid_argument(format!("the layout has {}: {why}", quoted(part)))
}
