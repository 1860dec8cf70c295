//! Owners and permissions as people write them: `alice:video`, `640`, `g+r,o-rwx`.

use client::control::{Access, Permissions};
use std::str::FromStr;

/// What `chmod` is told: nine bits, or what to change of those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These.
    To(Permissions),
    /// Each in turn.
    By(Vec<Clause>),
}

/// One part of a change: of these bits, the sign, those of all that are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    who: u16,
    sign: char,
    bits: u16,
}

impl FromStr for Change {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let clauses: Option<Vec<Clause>> = text.split(',').map(Clause::parse).collect();
        match (text.parse(), clauses) {
            (Ok(permissions), _) => Ok(Self::To(permissions)),
            (_, Some(clauses)) => Ok(Self::By(clauses)),
            _ => Err("write three octal digits, as 640, or changes, as u+rw,g+r,o-rwx".into()),
        }
    }
}

impl Change {
    /// What `before` becomes.
    pub fn of(&self, before: Permissions) -> Permissions {
        let after = match self {
            Self::To(permissions) => return *permissions,
            Self::By(clauses) => clauses.iter().fold(before.bits(), |bits, one| one.of(bits)),
        };
        Permissions::new(after).expect("clauses are of the nine bits")
    }
}

impl Clause {
    fn parse(text: &str) -> Option<Self> {
        let at = text.find(['+', '-', '='])?;
        let (who, rest) = text.split_at(at);
        let sign = rest.chars().next()?;
        let who = who.chars().try_fold(0, |all, letter| {
            let digit = match letter {
                'u' => 0o700,
                'g' => 0o070,
                'o' => 0o007,
                'a' => 0o777,
                _ => return None,
            };
            Some(all | digit)
        })?;
        let bits = rest[1..].chars().try_fold(0, |all, letter| {
            let bit = match letter {
                'r' => 0o444,
                'w' => 0o222,
                'x' => 0o111,
                _ => return None,
            };
            Some(all | bit)
        })?;
        Some(Self { who: if who == 0 { 0o777 } else { who }, sign, bits })
    }

    fn of(self, before: u16) -> u16 {
        let bits = self.bits & self.who;
        match self.sign {
            '+' => before | bits,
            '-' => before & !bits,
            _ => before & !self.who | bits,
        }
    }
}

/// `USER`, `USER:GROUP` or `:GROUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whose {
    user: Option<String>,
    group: Option<String>,
}

impl FromStr for Whose {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (user, group) = text.split_once(':').unwrap_or((text, ""));
        let given = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        match (given(user), given(group)) {
            (None, None) => Err("write USER, USER:GROUP or :GROUP, names or numbers"),
            (user, group) => Ok(Self { user, group }),
        }
    }
}

/// What is said of a volume's owner and permissions.
pub fn access(whose: Option<Whose>, mode: Option<Permissions>) -> Access {
    let (user, group) = whose.map_or((None, None), |whose| (whose.user, whose.group));
    Access { user, group, mode }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: u16, text: &str) -> Option<u16> {
        let change: Change = text.parse().ok()?;
        Some(change.of(Permissions::new(before).unwrap()).bits())
    }

    #[test]
    fn modes_are_octal_or_changes_as_of_chmod() {
        for (before, text, after) in [
            (0o600, "640", 0o640),
            (0o600, "0640", 0o640),
            (0o600, "g+r", 0o640),
            (0o600, "go+r,u-w", 0o444),
            (0o640, "o=g", 0), // no copies: not written so
            (0o666, "a-w", 0o444),
            (0o666, "-w", 0o444),
            (0o777, "g=r,o=", 0o740),
            (0o000, "u+rw,ug+x", 0o710),
        ] {
            let wanted = (text != "o=g").then_some(after);
            assert_eq!(changed(before, text), wanted, "{text}");
        }
        for text in ["", "u", "8", "u+s", "u+r,", "+640", "r"] {
            assert_eq!(changed(0o600, text), None, "{text}");
        }
    }

    #[test]
    fn owners_are_a_user_a_group_or_both() {
        let parsed = |text: &str| {
            let whose: Whose = text.parse().ok()?;
            Some((whose.user.unwrap_or_default(), whose.group.unwrap_or_default()))
        };
        let pair = |user: &str, group: &str| Some((user.to_owned(), group.to_owned()));
        assert_eq!(parsed("alice"), pair("alice", ""));
        assert_eq!(parsed("alice:video"), pair("alice", "video"));
        assert_eq!(parsed(":44"), pair("", "44"));
        assert_eq!((parsed(""), parsed(":")), (None, None));
    }
}
