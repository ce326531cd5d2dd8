//! The query language, as a tree.
//!
//! ```text
//!   any     := all ("OR" all)*                      slow OR failed
//!   all     := one (["AND"] one)*                   service:orders timeout
//!   one     := ("NOT" | "-") one | "(" any ")" | test
//!   test    := word | "phrase" | /regex/            anywhere in the text
//!            | field ":" (word | "phrase" | /regex/ | "*")
//!            | field (">" | ">=" | "<" | "<=" | "=" | "!=") value
//! ```
//!
//! Operators are upper case, so that `or` is a word. Knows no field names: whoever compiles the tree does. Every mistake has its
//! place, in characters.

use super::QueryError;
use super::pattern::Pattern;

const QUERY_CHARS_MAX: usize = 4_096;
const DEPTH_MAX: usize = 32;
const SYNTAX: &str = "Write words, \"a phrase\", field:value, field>=10, -not, OR and ( )";

#[derive(Clone, Debug)]
pub enum Expr {
    /// The empty query.
    All,
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Text(Pattern),
    Field(Field),
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub test: Test,
    /// Where the field starts and where its value starts.
    pub position: usize,
    pub value_position: usize,
}

#[derive(Clone, Debug)]
pub enum Test {
    Exists,
    Is(Pattern),
    Compare(Comparison, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

impl Field {
    pub fn error(&self, what: impl Into<String>, next: impl Into<String>) -> QueryError {
        QueryError { position: self.value_position, what: what.into(), next: next.into() }
    }
}

pub fn parse(text: &str) -> Result<Expr, QueryError> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > QUERY_CHARS_MAX {
        return Err(error(QUERY_CHARS_MAX, "the query is longer than 4,096 characters", "Shorten it"));
    }
    let mut parser = Parser { chars: &chars, at: 0 };
    parser.skip_space();
    if parser.is_done() {
        return Ok(Expr::All);
    }
    let expr = parser.any(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(error(parser.at, "this parenthesis closes nothing", "Remove it")),
    }
}

fn error(position: usize, what: impl Into<String>, next: impl Into<String>) -> QueryError {
    QueryError { position, what: what.into(), next: next.into() }
}

struct Parser<'a> {
    chars: &'a [char],
    at: usize,
}

impl Parser<'_> {
    fn any(&mut self, depth: usize) -> Result<Expr, QueryError> {
        if depth > DEPTH_MAX {
            return Err(error(self.at, "more than 32 levels of parentheses", "Flatten the query"));
        }
        let mut choices = vec![self.all(depth)?];
        while self.keyword("OR") {
            choices.push(self.all(depth)?);
        }
        Ok(if choices.len() == 1 { choices.remove(0) } else { Expr::Or(choices) })
    }

    fn all(&mut self, depth: usize) -> Result<Expr, QueryError> {
        let mut parts = vec![self.one(depth)?];
        loop {
            let joined = self.keyword("AND");
            let ends = matches!(self.peek(), None | Some(')')) || self.looks_at("OR");
            if ends && !joined {
                return Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) });
            }
            parts.push(self.one(depth)?);
        }
    }

    fn one(&mut self, depth: usize) -> Result<Expr, QueryError> {
        let start = self.at;
        if depth > DEPTH_MAX {
            return Err(error(start, "more than 32 levels of negation", "Flatten the query"));
        }
        if self.keyword("NOT") || (self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| !c.is_whitespace())) {
            if self.peek() == Some('-') && self.at == start {
                self.at += 1;
            }
            return Ok(Expr::Not(Box::new(self.one(depth + 1)?)));
        }
        match self.peek() {
            None => Err(error(self.at, "something is missing here", SYNTAX)),
            Some(')') => Err(error(self.at, "nothing stands before this parenthesis", SYNTAX)),
            Some('(') => {
                self.at += 1;
                self.skip_space();
                let inner = self.any(depth + 1)?;
                if self.peek() != Some(')') {
                    return Err(error(start, "this parenthesis is never closed", "Add )"));
                }
                self.at += 1;
                self.skip_space();
                Ok(inner)
            }
            Some(_) if self.looks_at("OR") || self.looks_at("AND") => {
                Err(error(self.at, "nothing stands before this operator", "Quote the word to search for it"))
            }
            Some('"' | '/') => {
                let pattern = self.pattern()?;
                self.skip_space();
                Ok(Expr::Text(pattern))
            }
            Some(_) => self.word_or_field(),
        }
    }

    fn word_or_field(&mut self) -> Result<Expr, QueryError> {
        let start = self.at;
        let name_end = self.name_end();
        let after_space = (name_end..self.chars.len()).find(|at| !self.chars[*at].is_whitespace()).unwrap_or(name_end);
        // A comparison may stand apart (`duration > 100 ms`); a colon is part of the word.
        let at_operator = match self.chars.get(name_end) {
            Some(':') if self.chars.get(name_end + 1) == Some(&'/') && self.chars.get(name_end + 2) == Some(&'/') => None,
            Some(':' | '=') => Some(name_end),
            Some('!') if self.chars.get(name_end + 1) == Some(&'=') => Some(name_end),
            _ if matches!(self.chars.get(after_space), Some('<' | '>')) => Some(after_space),
            _ => None,
        };
        let named = name_end > start && !self.chars[start].is_ascii_digit();
        if let Some(operator) = at_operator.filter(|_| named) {
            let name: String = self.chars[start..name_end].iter().collect();
            self.at = operator;
            return self.field(name, start);
        }
        let word = self.word();
        self.skip_space();
        Ok(Expr::Text(Pattern::word(&word)))
    }

    fn field(&mut self, name: String, position: usize) -> Result<Expr, QueryError> {
        let operator = self.operator()?;
        self.skip_space_if(operator != Operator::Is && operator != Operator::IsNot);
        let value_position = self.at;
        let missing = matches!(self.peek(), None | Some(')')) || self.peek().is_some_and(char::is_whitespace);
        if missing {
            return Err(error(
                value_position,
                format!("{name} has no value"),
                format!("Write {name}:value, or {name}:* if it must exist"),
            ));
        }
        let test = match operator {
            Operator::Is | Operator::IsNot => {
                let pattern = self.pattern()?;
                if pattern.is_anything() { Test::Exists } else { Test::Is(pattern) }
            }
            Operator::Compare(comparison) => Test::Compare(comparison, self.measure()?),
        };
        self.skip_space();
        let field = Expr::Field(Field { name, test, position, value_position });
        Ok(if operator == Operator::IsNot { Expr::Not(Box::new(field)) } else { field })
    }

    fn operator(&mut self) -> Result<Operator, QueryError> {
        let start = self.at;
        if self.peek() == Some(':') {
            self.at += 1;
            // `field:>5` is written as often as `field>5`.
            if !matches!(self.peek(), Some('<' | '>')) {
                return Ok(Operator::Is);
            }
        }
        let first = self.peek();
        self.at += 1;
        let equals = self.peek() == Some('=');
        if equals {
            self.at += 1;
        }
        Ok(match (first, equals) {
            (Some('>'), false) => Operator::Compare(Comparison::Greater),
            (Some('>'), true) => Operator::Compare(Comparison::GreaterOrEqual),
            (Some('<'), false) => Operator::Compare(Comparison::Less),
            (Some('<'), true) => Operator::Compare(Comparison::LessOrEqual),
            (Some('='), _) => Operator::Is,
            (Some('!'), true) => Operator::IsNot,
            _ => return Err(error(start, "this operator is unknown", SYNTAX)),
        })
    }

    /// `100`, `100ms` or `100 ms`.
    fn measure(&mut self) -> Result<String, QueryError> {
        if self.peek() == Some('"') {
            return self.quoted('"', "quote");
        }
        let mut text = self.word();
        let is_number = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let unit_at = self.at + 1;
        let unit: String = self.chars.iter().skip(unit_at).take_while(|c| !c.is_whitespace() && **c != ')').collect();
        if is_number && matches!(self.peek(), Some(' ')) && matches!(unit.as_str(), "ns" | "us" | "µs" | "ms" | "s" | "min") {
            self.at = unit_at + unit.chars().count();
            text.push_str(&unit);
        }
        Ok(text)
    }

    fn pattern(&mut self) -> Result<Pattern, QueryError> {
        let start = self.at;
        match self.peek() {
            Some('"') => Ok(Pattern::phrase(&self.quoted('"', "quote")?)),
            // A path such as /orders/7 is a word; only a slash that is closed at a word's end makes an expression.
            Some('/') if self.closes_as_regex() => {
                let text = self.quoted('/', "expression")?;
                Pattern::regex(&text).map_err(|what| error(start, what, "Mend the expression between the slashes"))
            }
            _ => Ok(Pattern::word(&self.word())),
        }
    }

    /// Whether another slash follows before any space, and a space, a parenthesis or the end follows that.
    fn closes_as_regex(&self) -> bool {
        let mut escaped = false;
        for at in self.at + 1..self.chars.len() {
            match self.chars[at] {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '/' => return at > self.at + 1 && self.chars.get(at + 1).is_none_or(|next| next.is_whitespace() || *next == ')'),
                _ => {}
            }
        }
        false
    }

    /// From one `mark` to the next; a backslash keeps the mark, and in a regular expression also itself.
    fn quoted(&mut self, mark: char, what: &str) -> Result<String, QueryError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(next) = self.peek() {
            self.at += 1;
            match next {
                '\\' if self.peek().is_some() => {
                    let escaped = self.chars[self.at];
                    self.at += 1;
                    if mark == '/' && escaped != '/' {
                        text.push('\\');
                    }
                    text.push(escaped);
                }
                next if next == mark => return Ok(text),
                next => text.push(next),
            }
        }
        Err(error(start, format!("this {what} is never closed"), format!("Add {mark}")))
    }

    /// Where a field's name would end.
    fn name_end(&self) -> usize {
        let is_name = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '/' | '$' | '[' | ']');
        self.at + self.chars[self.at..].iter().take_while(|c| is_name(c)).count()
    }

    fn word(&mut self) -> String {
        let word: String = self.chars[self.at..].iter().take_while(|c| !c.is_whitespace() && **c != ')' && **c != '(').collect();
        self.at += word.chars().count();
        word
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = self.looks_at(word);
        if found {
            self.at += word.len();
            self.skip_space();
        }
        found
    }

    fn looks_at(&self, word: &str) -> bool {
        let rest = &self.chars[self.at..];
        rest.len() >= word.len()
            && word.chars().zip(rest).all(|(a, b)| a == *b)
            && rest.get(word.len()).is_none_or(|next| next.is_whitespace() || *next == '(' || *next == ')')
    }

    fn skip_space(&mut self) {
        self.at += self.chars[self.at..].iter().take_while(|c| c.is_whitespace()).count();
    }

    fn skip_space_if(&mut self, condition: bool) {
        if condition {
            self.skip_space();
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn is_done(&self) -> bool {
        self.at >= self.chars.len()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    Compare(Comparison),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tree in one line, for comparing.
    fn shape(expr: &Expr) -> String {
        let list = |parts: &[Expr]| parts.iter().map(shape).collect::<Vec<_>>().join(" ");
        match expr {
            Expr::All => "all".into(),
            Expr::And(parts) => format!("and({})", list(parts)),
            Expr::Or(parts) => format!("or({})", list(parts)),
            Expr::Not(inner) => format!("not({})", shape(inner)),
            Expr::Text(pattern) => pattern.literal().unwrap_or("pattern").to_owned(),
            Expr::Field(field) => match &field.test {
                Test::Exists => format!("{}?", field.name),
                Test::Is(pattern) => format!("{}:{}", field.name, pattern.literal().unwrap_or("pattern")),
                Test::Compare(comparison, value) => format!("{}{comparison:?}{value}", field.name),
            },
        }
    }

    #[test]
    fn queries_read_as_people_write_them() {
        for (query, expected) in [
            ("", "all"),
            ("  ", "all"),
            ("slow", "slow"),
            ("slow query", "and(slow query)"),
            ("a AND b OR c", "or(and(a b) c)"),
            ("a (b OR c)", "and(a or(b c))"),
            ("-a", "not(a)"),
            ("NOT a b", "and(not(a) b)"),
            ("- a", "and(- a)"),
            ("or and", "and(or and)"),
            ("\"no stock\"", "no stock"),
            ("service:orders", "service:orders"),
            ("-service:orders", "not(service:orders)"),
            ("service:ord*", "service:pattern"),
            ("sku:*", "sku?"),
            ("name:\"a b\"", "name:a b"),
            ("severity>=warn", "severityGreaterOrEqualwarn"),
            ("duration > 100 ms", "durationGreater100ms"),
            ("duration:>100ms", "durationGreater100ms"),
            ("http.status_code!=200", "not(http.status_code:200)"),
            ("http.status_code=200", "http.status_code:200"),
            ("-root:/healthz", "not(root:/healthz)"),
            ("/orders/7", "/orders/7"),
            ("/orders/ x", "and(pattern x)"),
            ("path:/ord.*/", "path:pattern"),
            ("http://localhost/x", "http://localhost/x"),
            ("12:30", "12:30"),
            ("failed!", "failed!"),
            ("(a)(b)", "and(a b)"),
        ] {
            assert_eq!(parse(query).map(|expr| shape(&expr)), Ok(expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        for (query, position, what) in [
            ("a \"b", 2, "never closed"),
            ("(a", 0, "never closed"),
            ("a)", 1, "closes nothing"),
            ("service:", 8, "no value"),
            ("a OR", 4, "missing"),
            ("OR a", 0, "before this operator"),
            ("()", 1, "before this parenthesis"),
            ("é x:/a(/", 4, "unclosed group"),
            ("level>", 6, "no value"),
        ] {
            let error = parse(query).expect_err(query);
            assert_eq!(error.position, position, "{query}: {error}");
            assert!(error.what.contains(what), "{query}: {error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_a_stack_overflow() {
        assert!(parse(&"(".repeat(4_000)).is_err());
        assert!(parse(&"-".repeat(4_000)).is_err());
        assert!(parse(&"a ".repeat(4_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_a_mistake_inside_it(text in "[ a-c:\"/()<>=!*\\\\-]{0,24}|.{0,24}|(NOT |OR |a |-|\\(){0,9}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.position <= text.chars().count());
            }
        }
    }
}
