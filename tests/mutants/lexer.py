"""Finds the places of a C source that a mutant may change, and what it changes there.

A lexer, no parser: it knows comments, strings, lines of the preprocessor, brackets, and which braces are
a function's body, since clang-format has these open and close in the first column. It looks for changes
inside of bodies alone, and leaves out assertions, lines for the log, and the sizes of arrays.
"""

import dataclasses
import functools
import re

TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/|//[^\n]*)"
    r"|(?P<directive>(?<![^\n])[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)"
    r'|(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>[uUL]?'(?:\\.|[^'\\\n])*')"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"
    r"|(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])",
    re.DOTALL)
OPEN, CLOSE = "([{", ")]}"
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
# What ends an operand of && or ||, which bind tighter than all of these.
OPERAND_ENDS = {",", ";", "?", ":", "return"} | ASSIGNMENTS
LEFT_OUT = re.compile(r"assert|static_assert|_Static_assert|log_\w+")
CONFLICT_CALL = re.compile(r"\w*add_\w*conflict\w*|read_conflicts")
NO_TYPES = {"return", "sizeof", "else", "case", "goto", "do"}
STATUS = re.compile(r"STATUS_[A-Z_]+")

COMPARISON, CONDITION, CONFLICT, RETURN, OFFSET = KINDS = (
    "comparison", "condition", "conflict range", "return", "offset")


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Change:
    """Puts `text` in the place of source[begin:end]. `old` and `new` are the lines, as one each."""

    path: str
    function: str
    line: int
    kind: str
    begin: int
    end: int
    text: str
    old: str
    new: str

    def apply(self, source):
        return source[:self.begin] + self.text + source[self.end:]

    def fingerprint(self):
        return (self.path, self.function, self.old, self.new)


def tokens_of(source):
    return [Token(found.lastgroup, found.group(), found.start(), found.end())
            for found in TOKEN.finditer(source)
            if found.lastgroup not in ("comment", "directive")]


def brackets_of(tokens):
    """The partner of each bracket, by their places; -1 for one that has none."""
    partners, stack = {}, []
    for i, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in OPEN:
            stack.append(i)
        elif token.text in CLOSE:
            partners[i] = stack.pop() if stack else -1
            partners[partners[i]] = i
    return partners


def is_first_of_line(source, token):
    return token.begin == 0 or source[token.begin - 1] == "\n"


def bodies_of(source, tokens, partners):
    """(name, first, last) of each function: the places of its braces."""
    for i, token in enumerate(tokens):
        if token.text != "{" or not is_first_of_line(source, token) or tokens[i - 1].text != ")":
            continue
        opened = partners[i - 1]
        if opened > 0 and partners.get(i, -1) > i and tokens[opened - 1].kind == "word":
            yield tokens[opened - 1].text, i, partners[i]


class Body:
    """One function's tokens, and the changes in it."""

    def __init__(self, path, source, tokens, partners, body):
        self.path, self.source, self.tokens, self.partners = path, source, tokens, partners
        self.name, self.first, self.last = body

    def change(self, kind, begin, end, text):
        """A change of the source between two offsets, shown as the lines it touches."""
        top = self.source.rfind("\n", 0, begin) + 1
        bottom = self.source.find("\n", end)
        old = self.source[top:bottom]
        new = self.source[top:begin] + text + self.source[end:bottom]
        return Change(self.path, self.name, self.source.count("\n", 0, begin) + 1, kind, begin, end,
                      text, " ".join(old.split()), " ".join(new.split()))

    def is_call(self, i):
        return self.tokens[i].kind == "word" and self.tokens[i + 1].text == "("

    def is_size_of_array(self, i):
        """True at the bracket of `char room[KEY_BYTES + 1]`."""
        name, type_ = self.tokens[i - 1], self.tokens[i - 2]
        return name.kind == "word" and type_.kind == "word" and type_.text not in NO_TYPES

    def has_only_what_is_left_out(self, i):
        """True at an `if` under which nothing is but lines for the log, and which has no `else`."""
        at = self.partners[i + 1] + 1
        braces = self.tokens[at].text == "{"
        end = self.partners[at] if braces else at + 1
        at += braces
        while at < end:
            if not (self.is_call(at) and LEFT_OUT.fullmatch(self.tokens[at].text)):
                return False
            at = self.partners[at + 1] + 2  # behind its `;`
        return self.tokens[end + 1 if braces else at].text != "else"

    def changes(self):
        i = self.first + 1
        while i < self.last:
            token = self.tokens[i]
            if (self.is_call(i) and LEFT_OUT.fullmatch(token.text)) or (
                    token.text == "[" and self.is_size_of_array(i)):
                i = self.partners[i + 1 if self.is_call(i) else i]
                continue
            if token.text == "if" and self.has_only_what_is_left_out(i):
                i = self.partners[i + 1]
                continue
            yield from self.changes_at(i)
            i += 1

    def changes_at(self, i):
        token = self.tokens[i]
        if token.text in COMPARISONS and not self.is_of_equals(i):
            yield self.change(COMPARISON, token.begin, token.end, COMPARISONS[token.text])
        elif token.text in ("&&", "||"):
            yield from self.operands_dropped(i)
        elif token.text == "if":
            yield from self.condition_negated(i + 1)
        elif token.text == "return":
            yield from self.return_changed(i)
        elif token.text in ("+", "-"):
            yield from self.offset_dropped(i)
        elif self.is_call(i) and CONFLICT_CALL.fullmatch(token.text):
            yield self.conflict_dropped(i)
        elif token.text == "KV_READ" and self.tokens[i - 1].text not in COMPARISONS:
            yield self.change(CONFLICT, token.begin, token.end, "KV_SNAPSHOT")

    def operand(self, i, step):
        """The place of the last token of the operand on that side of the operator at i."""
        ends = OPERAND_ENDS | ({"||"} if self.tokens[i].text == "||" else {"||", "&&"})
        back = CLOSE if step < 0 else OPEN
        stop = OPEN if step < 0 else CLOSE
        last, i = i, i + step
        while self.tokens[i].text not in ends and not (
                self.tokens[i].kind == "sign" and self.tokens[i].text in stop):
            if self.tokens[i].kind == "sign" and self.tokens[i].text in back:
                i = self.partners[i]
            last, i = i, i + step
        return last, i

    def is_of_equals(self, i):
        """True at `a < b ? a : b`, and at `if (a < b) a = b;`: both say the same where both are the same."""
        if self.tokens[i].text in ("==", "!="):
            return False
        (first, before), (last, after) = self.operand(i, -1), self.operand(i, 1)
        sides = [self.texts(first, i), self.texts(i + 1, last + 1)]
        if self.tokens[after].text == "?":
            middle, _ = self.operand(after, 1)
            end, _ = self.operand(middle + 1, 1)
            chosen = [self.texts(after + 1, middle + 1), self.texts(middle + 2, end + 1)]
            return chosen in (sides, sides[::-1])
        if self.tokens[before].text != "(" or self.tokens[before - 1].text != "if":
            return False
        end, end_of = self.operand(after, 1)
        if self.tokens[end_of].text != "=":
            return False
        more, _ = self.operand(end_of, 1)
        assigned = [self.texts(after + 1, end + 1), self.texts(end_of + 1, more + 1)]
        return assigned in (sides, sides[::-1])

    def texts(self, begin, end):
        return [token.text for token in self.tokens[begin:end]]

    def operands_dropped(self, i):
        """Without the operand on the right; and without the left one where no other is before it."""
        last, _ = self.operand(i, 1)
        yield self.change(CONDITION, self.tokens[i - 1].end, self.tokens[last].end, "")
        first, before = self.operand(i, -1)
        if self.tokens[before].text != self.tokens[i].text:
            yield self.change(CONDITION, self.tokens[first].begin, self.tokens[i + 1].begin, "")

    def condition_negated(self, i):
        inner = self.tokens[i + 1:self.partners[i]]
        signs = [token.text for token in inner if token.kind == "sign"]
        if not {"&&", "||", "?"} & set(signs) and ("==" in signs) + ("!=" in signs) == 1:
            return  # the same as the other comparison
        begin, end = inner[0].begin, inner[-1].end
        if len(inner) > 1 and inner[0].text == "!" and not {"&&", "||", "?"} & set(signs) and not (
                set(signs) & set(COMPARISONS)):
            yield self.change(CONDITION, begin, inner[0].end, "")
            return
        yield self.change(CONDITION, begin, end, f"!({self.source[begin:end]})")

    def return_changed(self, i):
        value, after = self.tokens[i + 1], self.tokens[i + 2]
        if after.text != ";":
            return
        if value.text in ("true", "false"):
            yield self.change(RETURN, value.begin, value.end,
                              "false" if value.text == "true" else "true")
        elif value.text == "status" or (STATUS.fullmatch(value.text) and value.text != "STATUS_OK"):
            yield self.change(RETURN, value.begin, value.end, "STATUS_OK")

    def offset_dropped(self, i):
        before, after = self.tokens[i - 1], self.tokens[i + 1]
        binary = before.kind in ("word", "number") or before.text in (")", "]")
        if binary and before.text not in NO_TYPES and after.text == "1":
            yield self.change(OFFSET, before.end, after.end, "")

    def conflict_dropped(self, i):
        """A call as a statement is left out; elsewhere it becomes 0, which STATUS_OK and false are."""
        first = i
        while self.tokens[first - 1].text in ("->", ".") and self.tokens[first - 2].kind == "word":
            first -= 2
        last = self.partners[i + 1]
        alone = self.tokens[last + 1].text == ";" and (
            self.tokens[first - 1].text in (";", "{", "}", "else", ")", ":"))
        return self.change(CONFLICT, self.tokens[first].begin, self.tokens[last].end,
                           "(void)0" if alone else "0")


def changes_of(path, source):
    """All changes of one file, in its order."""
    tokens = tokens_of(source)
    partners = brackets_of(tokens)
    found = []
    for body in bodies_of(source, tokens, partners):
        found += Body(path, source, tokens, partners, body).changes()
    return found


@functools.cache
def functions_of(source):
    """The names of the functions that a file defines."""
    tokens = tokens_of(source)
    return {name for name, _, _ in bodies_of(source, tokens, brackets_of(tokens))}
