//! What a client is offered: the volumes that its user may read.

use crate::pool::Ask;
use crate::scope;
use crate::view;
use node::permission::may;
use node::{Act, Priority};
use token::{Grant, Verb};
use wire::nbd::handshake::{self, Exports};

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
}

impl Export {
    /// Reads the name of an export. The empty one means the only volume that the user owns.
    pub fn parse(name: &str, offer: &Offer<'_>) -> Option<Self> {
        let mut parts = name.split('@');
        let volume = match parts.next().unwrap_or_default() {
            "" => offer.only()?,
            name => name.to_owned(),
        };
        let mut export = Self { volume, is_read_only: false, priority: None };
        for word in parts {
            let priority = match word {
                "ro" => {
                    export.is_read_only = true;
                    continue;
                }
                "interactive" => Priority::Interactive,
                "normal" => Priority::Normal,
                "background" => Priority::Background,
                _ => return None,
            };
            export.priority = Some(priority);
        }
        Some(export)
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
        Ok(readable.map(|(name, _)| name).collect())
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
        let suffix = name.find('@').map_or("", |at| &name[at..]);
        Ok(handshake::Export {
            called: format!("{}{suffix}", found.name),
            size: found.size.get(),
            is_read_only: export.is_read_only
                || !may_write
                || !may(who, found.ownership, Act::Write),
            description: format!("volume {} of pool {}", found.name, pool.description().name),
        })
    }
}
