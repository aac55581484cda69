package audit

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/console/page"
)

// The changes that a form makes.
const (
	doAdd    = "add"
	doEdit   = "edit"
	doRemove = "remove"
	doUp     = "up"
	doStart  = "start"
)

// starter is a policy to begin with.
type starter struct {
	Name, About, To string
	document        audit.Document
}

// starters are those that the page offers while there is none.
var starters = []starter{
	begin("changes", "All that changes something, and who logs in; not what is read.", audit.Document{Rules: []audit.Rule{
		{Level: audit.None.String(), Operations: []string{"range", "watch", "status"}}, {Level: audit.Metadata.String()}}}),
	begin("rights", "Users, roles, members and this policy; no key.", audit.Document{Rules: []audit.Rule{
		{Level: audit.Request.String(), Operations: []string{"auth", "login", "cluster", "maintenance", "audit"}}}}),
	begin("everything", "Every call, reads too: as many records as there are calls.", audit.Document{Rules: []audit.Rule{
		{Level: audit.Metadata.String()}}}),
}

func begin(name, about string, d audit.Document) starter {
	return starter{name, about, rulePath + "?" + url.Values{"do": {doStart}, "start": {name}}.Encode(), d}
}

// change is a change of the policy, as a query or a form asks for it.
type change struct {
	do    string
	at    int // of the rule, from 1 on; 0: of none
	start string
	typed typedRule
}

// typedRule is a rule as a reader typed it.
type typedRule struct {
	Level, Keys     string
	Users, Prefixes string // a line each
	Nobody          bool   // also calls without a user
	Operations      []string
	Place           string // of a new rule; empty: the last
}

func changeIn(q url.Values) change {
	c := change{do: q.Get("do"), start: q.Get("start"), typed: typedRule{Level: q.Get("level"), Keys: q.Get("keys"),
		Users: fields(q.Get("users")), Prefixes: fields(q.Get("prefixes")),
		Nobody: q.Has("nobody"), Operations: q["op"], Place: q.Get("place")}}
	if at, err := strconv.Atoi(q.Get("at")); err == nil && at > 0 {
		c.at = at
	}
	return c
}

// fields is the opposite of changeIn.
func (c *change) fields() url.Values {
	q := url.Values{"do": {c.do}}
	add := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	if c.at > 0 {
		q.Set("at", strconv.Itoa(c.at))
	}
	add("start", c.start)
	add("level", c.typed.Level)
	add("keys", c.typed.Keys)
	add("users", c.typed.Users)
	add("prefixes", c.typed.Prefixes)
	add("place", c.typed.Place)
	if c.typed.Nobody {
		q.Set("nobody", "yes")
	}
	if len(c.typed.Operations) > 0 {
		q["op"] = c.typed.Operations
	}
	return q
}

// writes reports whether the change has a rule that is typed.
func (c *change) writes() bool { return c.do == doAdd || c.do == doEdit }

// complete reports whether there is enough for a preview.
func (c *change) complete() bool { return !c.writes() || c.typed.Level != "" }

// typedOf is a rule as a form has it.
func typedOf(rule *audit.Rule) typedRule {
	t := typedRule{Level: rule.Level, Keys: rule.Keys, Prefixes: namesOf(rule.Prefixes), Operations: rule.Operations}
	users := slices.Clone(rule.Users)
	if i := slices.Index(users, ""); i >= 0 {
		t.Nobody, users = true, slices.Delete(users, i, i+1)
	}
	t.Users = namesOf(users)
	return t
}

// namesOf are names, or prefixes, as a field has them: a line each.
func namesOf(texts []string) string {
	names := make([]string, len(texts))
	for i, text := range texts {
		names[i] = page.KeyName([]byte(text))
	}
	return strings.Join(names, "\n")
}

// fields is a field of several lines as it is shown again.
func fields(typed string) string {
	all := lines(typed)
	for i := range all {
		all[i] = page.KeyField(all[i])
	}
	return strings.Join(all, "\n")
}

// keysOf are the lines of a field, without the quotes that some may have.
func keysOf(field string) (all []string, err error) {
	for _, line := range lines(field) {
		key, ok := page.KeyOf(line)
		if !ok || !utf8.Valid(key) {
			return nil, page.FormError("The line " + page.Name(line) + " begins with a quote: then it has escapes such as " +
				"\\u00e4, ends with a quote, and is UTF-8.")
		}
		all = append(all, string(key))
	}
	return all, nil
}

// rule is what was typed.
func (t *typedRule) rule() (r audit.Rule, err error) {
	r = audit.Rule{Level: t.Level, Keys: t.Keys, Operations: t.Operations}
	if r.Users, err = keysOf(t.Users); err != nil {
		return r, err
	}
	if t.Nobody {
		r.Users = append(r.Users, "")
	}
	r.Prefixes, err = keysOf(t.Prefixes)
	return r, err
}

// lines are the lines of a field that are not empty. A browser ends them with a carriage return, too.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// apply returns the rules after the change, and the place of the rule that it touches, from 0 on; negative: none in
// particular. An error is a sentence for the reader.
func (c *change) apply(d audit.Document) (next audit.Document, touched int, err error) {
	next, touched = d, c.at-1
	next.Rules = slices.Clone(d.Rules)
	if !slices.Contains([]string{doAdd, doEdit, doRemove, doUp, doStart}, c.do) {
		return next, 0, page.FormError("This page is reached from the page Audit, by a link beside a rule.")
	}
	var rule audit.Rule
	if c.writes() {
		if rule, err = c.typed.rule(); err != nil {
			return next, 0, err
		}
	}
	if c.do != doAdd && c.do != doStart && (c.at < 1 || c.at > len(d.Rules)) {
		return next, 0, page.FormError(fmt.Sprintf("The policy has no rule %d: it has %d. Go back and choose one.",
			c.at, len(d.Rules)))
	}
	switch c.do {
	case doStart:
		i := slices.IndexFunc(starters, func(s starter) bool { return s.Name == c.start })
		if i < 0 {
			return next, 0, page.FormError("There is no such policy to begin with: choose one of the page Audit.")
		}
		next.Rules, touched = starters[i].document.Rules, -1
	case doAdd:
		place := len(next.Rules)
		if c.typed.Place != "" {
			n, err := strconv.Atoi(c.typed.Place)
			if err != nil || n < 1 || n > len(next.Rules)+1 {
				return next, 0, page.FormError(fmt.Sprintf("The place of the rule is a number from 1 to %d.",
					len(next.Rules)+1))
			}
			place = n - 1
		}
		next.Rules, touched = slices.Insert(next.Rules, place, rule), place
	case doEdit:
		next.Rules[touched] = rule
	case doRemove:
		next.Rules = slices.Delete(next.Rules, touched, touched+1)
	case doUp:
		if touched == 0 {
			return next, 0, page.FormError("The rule is the first one already.")
		}
		next.Rules[touched-1], next.Rules[touched] = next.Rules[touched], next.Rules[touched-1]
		touched--
	}
	if _, err := audit.Parse(textOf(&next)); err != nil {
		return next, 0, page.FormError(capital(page.Text(err.Error())) + ".")
	}
	return next, touched, nil
}

// textOf is a policy as it is set, with a line for each rule.
func textOf(d *audit.Document) []byte {
	marshal := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil { // it is texts and lists of them
			panic(err)
		}
		return text
	}
	text := []byte("{")
	if d.Keys != "" {
		text = append(append(text, `"keys": `...), append(marshal(d.Keys), ",\n"...)...)
	}
	if len(d.Salt) > 0 {
		text = append(append(text, `"salt": `...), append(marshal(d.Salt), ",\n"...)...)
	}
	text = append(text, `"rules": [`...)
	for i := range d.Rules {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, "\n  "...), marshal(&d.Rules[i])...)
	}
	return append(text, "\n]}"...)
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
