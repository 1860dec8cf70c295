//! What a client is offered: the volumes that its user may read.

use crate::pool::Ask;
use crate::scope;
use crate::view;
use node::permission::may;
use node::{Act, Priority};
use store::VOLUME_NAME_MAX;
use token::{Grant, Verb};
use wire::nbd::handshake::{self, Exports};

/// What may stand behind a volume's name.
const WORDS: [(&str, Option<Priority>); 4] = [
    ("ro", None),
    ("interactive", Some(Priority::Interactive)),
    ("normal", Some(Priority::Normal)),
    ("background", Some(Priority::Background)),
];
/// The longest name of an export: a volume's, and each of the words once. In a longer one, or behind
/// more words, no volume is looked for: each word is one more look at the pool.
const NAME_MAX: usize = {
    let (mut len, mut at) = (VOLUME_NAME_MAX, 0);
    while at < WORDS.len() {
        len += "@".len() + WORDS[at].0.len();
        at += 1;
    }
    len
};

/// All exports, for one user.
pub struct Offer<'a> {
    /// Asks the pool on the user's behalf.
    pub ask: &'a Ask,
    /// What of that the token says which was shown, where one was.
    pub scope: Option<&'a Grant>,
}

/// What the name of an export says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The volume.
    pub volume: String,
    /// It may not be written to by this name.
    pub is_read_only: bool,
    /// What its requests state.
    pub priority: Option<Priority>,
    /// What stood behind the volume's name, with the signs before each word.
    words: String,
}

/// The owner of the volume with this name, where there is one.
type OwnerOf<'a> = &'a dyn Fn(&str) -> Option<u32>;

impl Export {
    /// Reads the name of an export. The empty one means the only volume that the user owns.
    pub fn parse(name: &str, offer: &Offer<'_>) -> Option<Self> {
        let Ask(pool, who) = offer.ask;
        let owner = |name: &str| pool.volume(name).map(|volume| volume.ownership.uid);
        Self::read(name, (who.uid, &owner), &|| offer.only())
    }

    /// A volume's name may end with what would be a word behind another's. The longest name that is a
    /// volume's is meant: of the user's own, else of those with the owner of the shortest. So nobody
    /// decides by the name that he gives his own what others get.
    fn read(
        name: &str,
        (user, owner): (u32, OwnerOf<'_>),
        only: &dyn Fn() -> Option<String>,
    ) -> Option<Self> {
        if name.len() > NAME_MAX {
            return None;
        }
        let mut readings = vec![(name, false, None)];
        let (mut left, mut is_read_only, mut priority) = (name, false, None);
        while readings.len() <= WORDS.len() {
            let Some((before, word)) = left.rsplit_once('@') else { break };
            let Some(&(_, stated)) = WORDS.iter().find(|(known, _)| *known == word) else { break };
            is_read_only |= stated.is_none();
            priority = priority.or(stated);
            left = before;
            readings.push((left, is_read_only, priority));
        }
        let volumes: Vec<_> = readings.iter().filter_map(|it| Some((*it, owner(it.0)?))).collect();
        let of = |uid| volumes.iter().find(|(_, owner)| *owner == uid);
        let meant = of(user).or_else(|| of(volumes.last()?.1)).map(|(reading, _)| *reading);
        // Where no volume has any of these names, the answer tells of the one without the words.
        let (volume, is_read_only, priority) =
            meant.or_else(|| readings.pop().filter(|it| !it.0.contains('@')))?;
        let words = &name[volume.len()..];
        if volume.is_empty() {
            // Its name is told to the client with the words, and read again when it is served.
            let only = only()?;
            let export = Self::read(&format!("{only}{words}"), (user, owner), &|| None)?;
            return (export.volume == only).then_some(export);
        }
        Some(Self { volume: volume.into(), is_read_only, priority, words: words.into() })
    }
}

impl Offer<'_> {
    /// The volume that is the user's own, where there is just one. What others let him read
    /// does not count: they would decide what his programs get.
    fn only(&self) -> Option<String> {
        let Ask(pool, who) = self.ask;
        let mut own = pool.names().into_iter().filter(|(_, whose)| who.uid == whose.uid);
        let (only, _) = own.next()?;
        own.next().is_none().then_some(only)
    }
}

impl Exports for Offer<'_> {
    fn names(&self) -> Result<Vec<String>, String> {
        let Ask(pool, who) = self.ask;
        let readable = pool.names().into_iter().filter(|(_, whose)| may(who, *whose, Act::Read));
        // A ring cannot be opened.
        let can_be_opened = |name: &String| pool.volume(name).is_some_and(|it| it.start.is_none());
        Ok(readable.map(|(name, _)| name).filter(can_be_opened).collect())
    }

    fn find(&self, name: &str) -> Result<handshake::Export, String> {
        let Ask(pool, who) = self.ask;
        let export = Export::parse(name, self).ok_or_else(|| {
            "name a volume, and behind it @ro or a priority where wanted: NAME, NAME@ro, \
             NAME@interactive or NAME@background"
                .to_owned()
        })?;
        let found = pool.volume(&export.volume);
        let permits = |verb| {
            let permits = |grant| scope::permits(grant, &**pool, verb, &export.volume);
            self.scope.map_or(Ok(()), permits)
        };
        permits(Verb::Read).map_err(|refusal| refusal.to_string())?;
        let may_write = permits(Verb::Write).is_ok();
        let found = view::volume(found, who, &export.volume, &[Act::Read]);
        let found = found.map_err(|error| {
            let problem = crate::problem::of(&error);
            format!("{}; {}", problem.detail, problem.next_step)
        })?;
        if found.start.is_some() {
            return Err("a ring is no block device, since its offsets grow; play it, or read it \
                        over HTTP or as a file"
                .to_owned());
        }
        Ok(handshake::Export {
            // One that was asked for by its number is found again by that alone.
            called: match export.volume.starts_with('/') {
                true => format!("{}{}", export.volume, export.words),
                false => format!("{}{}", found.name, export.words),
            },
            size: found.size.get(),
            is_read_only: export.is_read_only
                || !may_write
                || !may(who, found.ownership, Act::Write),
            description: format!("volume {} of pool {}", found.name, pool.description().name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The address of a volume `zz@ro` was that of `zz`, and writes to `zz@interactive` went there.
    #[test]
    fn a_volume_whose_name_ends_as_an_option_is_that_volume() {
        let volumes = [("zz", 1), ("zz@ro", 1), ("zz@interactive", 1), ("a@b", 1), ("a@b@ro", 1)];
        let others = [("cam", 1), ("cam@ro", 2), ("him", 2), ("him@ro", 1)];
        let read_by = |user: u32, name: &str| {
            let all = || volumes.iter().chain(&others);
            let owner = |name: &str| all().find(|it| it.0 == name).map(|it| it.1);
            let only = || Some("zz".to_owned());
            let export = Export::read(name, (user, &owner), &only)?;
            Some((export.volume, export.is_read_only, export.priority, export.words))
        };
        let read = |name: &str| read_by(1, name);
        let is = |volume: &str, is_read_only, priority, words: &str| {
            Some((volume.to_owned(), is_read_only, priority, words.to_owned()))
        };
        let background = Some(Priority::Background);
        assert_eq!(read("zz"), is("zz", false, None, ""));
        assert_eq!(read("zz@ro"), is("zz@ro", false, None, ""));
        assert_eq!(read("zz@interactive"), is("zz@interactive", false, None, ""));
        assert_eq!(read("zz@ro@ro"), is("zz@ro", true, None, "@ro"));
        assert_eq!(read("zz@background@ro"), is("zz", true, background, "@background@ro"));
        assert_eq!(read("a@b@background"), is("a@b", false, background, "@background"));
        assert_eq!(read("a@b@ro"), is("a@b@ro", false, None, ""));
        // Of several priorities the last one counts, as ever.
        assert_eq!(read("none@normal@background").unwrap().2, background);
        assert_eq!(read("none@ro"), is("none", true, None, "@ro"));
        assert_eq!(read("@background"), is("zz", false, background, "@background"));
        assert_eq!(read("@ro"), None, "it would be called as another volume is");
        assert_eq!(read("zz@rw"), None);
        // What somebody calls his volume changes nothing for others.
        assert_eq!(read("cam@ro"), is("cam", true, None, "@ro"));
        assert_eq!(read_by(3, "cam@ro"), is("cam", true, None, "@ro"));
        assert_eq!(read_by(2, "cam@ro"), is("cam@ro", false, None, ""));
        assert_eq!(read("him@ro"), is("him@ro", false, None, ""));
        assert_eq!(read("zz@"), None);
    }

    /// Before, a name of 4,096 bytes was 1,365 looks at the pool, which others waited for.
    #[test]
    fn a_name_of_many_words_is_a_few_looks_at_the_pool() {
        let volumes = ["zz", "zz@ro@ro@ro@ro@ro@ro"];
        let longest = "x".repeat(VOLUME_NAME_MAX);
        let looks = Cell::new(0);
        let read = |name: &str| {
            looks.set(0);
            let owner = |name: &str| {
                looks.set(looks.get() + 1);
                (volumes.contains(&name) || name == longest).then_some(1)
            };
            let export = Export::read(name, (1, &owner), &|| None);
            (export.map(|export| export.volume), looks.get())
        };
        assert_eq!(read(&format!("zz{}", "@ro".repeat(1364))), (None, 0));
        assert_eq!(read(&format!("zz{}", "@ro".repeat(90))), (None, 5));
        assert_eq!(read("zz@ro@ro@ro@ro"), (Some("zz".into()), 5));
        assert_eq!(read("zz@ro@ro@ro@ro@ro"), (None, 5), "more words than there are");
        assert_eq!(read("zz@ro@ro@ro@ro@ro@ro@background").0.as_deref(), Some(volumes[1]));
        let all = format!("{longest}@ro@interactive@normal@background");
        assert_eq!((all.len(), read(&all).0), (NAME_MAX, Some(longest.clone())));
    }
}
