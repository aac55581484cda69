package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/quorate/quorate/internal/base/keyrange"
)

// Level says how much is recorded of a call.
type Level uint8

// The levels, by their names in a policy.
const (
	None     Level = iota // none: nothing
	Metadata              // metadata: who, from where, which keys, and the outcome
	Request               // request: also sizes, leases, and what a transaction compares
)

var levelNames = [...]string{None: "none", Metadata: "metadata", Request: "request"}

// String is the name in a policy.
func (l Level) String() string { return levelNames[l] }

// Shape says how keys are recorded.
type Shape uint8

// The shapes, by their names in a policy.
const (
	Plain  Shape = iota // plain: as they are
	Hashed              // hashed: as a keyed hash, so that equal keys look equal
	Prefix              // prefix: up to the last slash
)

var shapeNames = [...]string{Plain: "plain", Hashed: "hashed", Prefix: "prefix"}

// String is the name in a policy.
func (s Shape) String() string { return shapeNames[s] }

// Bounds of a policy.
const (
	// MaxPolicyBytes bounds the text of a policy.
	MaxPolicyBytes = 16 << 10
	maxRules       = 128
	maxNames       = 64 // users, prefixes or operations of one rule
)

// Policy says which calls are recorded. The zero value records nothing.
type Policy struct {
	rules []rule
	salt  []byte // of hashed keys
	text  []byte
}

// rule is one rule; a list that is empty matches everything.
type rule struct {
	level    Level
	users    []string
	prefixes []keyrange.Range
	ops      uint32 // a bit each; zero: all
	keys     Shape
}

// Document is the JSON form of a policy.
type Document struct {
	Keys  string `json:"keys,omitempty"` // of rules that do not say it
	Salt  []byte `json:"salt,omitempty"` // of hashed keys, in base64
	Rules []Rule `json:"rules"`
}

// Rule is the JSON form of a rule: names of a Level, of operations and of a Shape. A list that is empty matches everything.
type Rule struct {
	Level      string   `json:"level"`
	Users      []string `json:"users,omitempty"`
	Prefixes   []string `json:"prefixes,omitempty"`
	Operations []string `json:"operations,omitempty"`
	Keys       string   `json:"keys,omitempty"`
}

// SaltBytes is the length of a salt.
const SaltBytes = 16

// Parse reads the text of a policy: a JSON object. Every error says what is wrong with it.
func Parse(text []byte) (*Policy, error) {
	d, err := ParseDocument(text)
	if err != nil {
		return nil, err
	}
	if len(d.Rules) > maxRules {
		return nil, fmt.Errorf("an audit policy has at most %d rules, not %d", maxRules, len(d.Rules))
	}
	if len(d.Salt) != 0 && len(d.Salt) != SaltBytes {
		return nil, fmt.Errorf("the salt of an audit policy has %d bytes: leave it out, and one is drawn", SaltBytes)
	}
	shape, err := named(d.Keys, shapeNames[:], "keys")
	if err != nil {
		return nil, err
	}
	p := &Policy{salt: d.Salt, text: bytes.Clone(text)}
	for i := range d.Rules {
		one, err := d.Rules[i].parse(Shape(shape))
		if err != nil {
			return nil, fmt.Errorf("rule %d of the audit policy: %w", i+1, err)
		}
		p.rules = append(p.rules, one)
	}
	return p, nil
}

// ParseDocument reads the text of a policy, without a look at what its fields say.
func ParseDocument(text []byte) (d Document, err error) {
	if len(text) > MaxPolicyBytes {
		return d, fmt.Errorf("an audit policy has at most %d bytes, not %d", MaxPolicyBytes, len(text))
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, fmt.Errorf("the audit policy is no JSON object with rules: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("the audit policy has more text after its object")
	}
	return d, nil
}

func (d *Rule) parse(shape Shape) (rule, error) {
	level, err := named(d.Level, levelNames[:], "level")
	if err == nil && d.Level == "" {
		err = fmt.Errorf("it has no level: one of %q", levelNames)
	}
	if err != nil {
		return rule{}, err
	}
	r := rule{level: Level(level), users: d.Users, keys: shape}
	if d.Keys != "" {
		own, err := named(d.Keys, shapeNames[:], "keys")
		if err != nil {
			return rule{}, err
		}
		r.keys = Shape(own)
	}
	for _, names := range [][]string{d.Users, d.Prefixes, d.Operations} {
		if len(names) > maxNames {
			return rule{}, fmt.Errorf("a list of it has %d names, at most %d are allowed", len(names), maxNames)
		}
	}
	for _, prefix := range d.Prefixes {
		r.prefixes = append(r.prefixes, below([]byte(prefix)))
	}
	for _, name := range d.Operations {
		op, ok := ParseOp(name)
		if !ok {
			return rule{}, fmt.Errorf("there is no operation %.40q: one of %q", name, opNames)
		}
		r.ops |= 1 << op
	}
	return r, nil
}

// named returns the place of a name in a table; an empty name is the first one.
func named(name string, table []string, field string) (int, error) {
	if name == "" {
		return 0, nil
	}
	at := slices.Index(table, name)
	if at < 0 {
		return 0, fmt.Errorf("%s %.40q: one of %q", field, name, table)
	}
	return at, nil
}

// WithSalt returns the text of a policy, indented, with a salt: that of the policy, or the one given if it has none.
func (p *Policy) WithSalt(salt []byte) ([]byte, error) {
	var d Document
	if err := json.Unmarshal(p.text, &d); err != nil {
		return nil, err
	}
	if len(d.Salt) == 0 {
		d.Salt = salt
	}
	text, err := json.MarshalIndent(&d, "", "  ")
	if err == nil && len(text) > MaxPolicyBytes {
		err = fmt.Errorf("an audit policy has at most %d bytes, indented and with its salt, not %d", MaxPolicyBytes, len(text))
	}
	return text, err
}

// Everything records all calls, with hashed keys: what a member does with a policy that a later build wrote, and this one does
// not understand.
func Everything() *Policy { return &Policy{rules: []rule{{level: Metadata, keys: Hashed}}} }

// Match returns how a call is recorded: as the first rule says that matches it. A rule with prefixes matches a call one of
// whose keys may lie below one of them; a rule that records nothing matches only if all of them do.
func (p *Policy) Match(e *Event) (Level, Shape) {
	if e.Op == OpAudit && e.Changes { // so that nobody turns the records off without one
		return Request, Plain
	}
	if i := p.Which(e); i >= 0 {
		return p.rules[i].level, p.rules[i].keys
	}
	return None, Plain
}

// Which returns the place of the first rule that matches a call, from 0 on; negative: none does.
func (p *Policy) Which(e *Event) int {
	for i := range p.rules {
		r := &p.rules[i]
		if r.ops != 0 && r.ops&(1<<e.Op) == 0 || len(r.users) > 0 && !slices.Contains(r.users, e.User) || !r.reaches(e) {
			continue
		}
		return i
	}
	return -1
}

func (r *rule) reaches(e *Event) bool {
	if len(r.prefixes) == 0 {
		return true
	}
	if len(e.Parts) == 0 {
		return false
	}
	all := r.level == None
	for i := range e.Parts {
		if below := r.meets(&e.Parts[i], all); below != all {
			return below
		}
	}
	return all && e.Left == 0
}

// meets reports whether a part lies below a prefix: all of it, or any of it.
func (r *rule) meets(part *Part, all bool) bool {
	for i := range r.prefixes {
		prefix := &r.prefixes[i]
		if len(part.End) == 0 {
			if prefix.Contains(part.Key) {
				return true
			}
			continue
		}
		asked := keyrange.From(part.Key, part.End)
		if all && prefix.Covers(asked) || !all && prefix.Overlaps(asked) {
			return true
		}
	}
	return false
}

// below returns the range of the keys with a prefix.
func below(prefix []byte) keyrange.Range {
	end := bytes.Clone(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return keyrange.Range{Start: prefix, End: end}
}
