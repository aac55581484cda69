package player

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/lab"
)

// Bounds of a link.
const (
	maxLink   = 2000 // bytes
	maxFaults = 16
)

// Link names a run, and a moment of it.
type Link struct {
	Story   string // a story; empty: the run of Options
	Kept    bool   // the rule of the story is in force
	Options lab.Options
	At      int // the frame that is shown
}

// The parts of a link. A story takes only the first two and at.
const (
	partStory, partRule, partAt                   = "story", "rule", "at"
	partProtocol, partFrom, partTo, partAdd       = "protocol", "from", "to", "add"
	partRemove, partDemote, partFault, partDrop   = "remove", "demote", "fault", "drop"
	partFast, partSeed, partDelay, ruleIn, ruleNo = "fast", "seed", "delay", "kept", "dropped"
)

// ParseLink reads the fragment of an address, like "story=cop&rule=kept&at=12" or
// "protocol=joint&from=3&to=5&fault=leader-crash@2". The error says in a sentence what is wrong with it.
func ParseLink(text string) (*Link, error) {
	text = strings.TrimPrefix(text, "#")
	if len(text) > maxLink {
		return nil, fmt.Errorf("the link has %d bytes: the laboratory reads at most %d", len(text), maxLink)
	}
	parts, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("the link cannot be read (%w): it is name=value, joined by &", err)
	}
	l := &Link{}
	l.Options.From, l.Options.Record = 3, true
	l.Options.Protocol, _ = consensus.ParseProtocol("joint")
	names := slices.Sorted(maps.Keys(parts))
	for _, name := range names {
		if err := l.take(name, parts[name]); err != nil {
			return nil, err
		}
	}
	if l.Story != "" {
		for _, name := range names {
			if name != partStory && name != partRule && name != partAt {
				return nil, fmt.Errorf("%s does not go with a story, which is a script of its own", name)
			}
		}
	} else if parts.Has(partRule) {
		return nil, errors.New("rule goes with a story; a run of your own drops rules by drop=NAME")
	}
	if o := &l.Options; o.To == 0 && o.Add == 0 && len(o.Remove)+len(o.Demote) == 0 {
		o.To = 5
	}
	return l, nil
}

// take reads one part. Only faults and dropped rules come several times.
func (l *Link) take(name string, values []string) (err error) {
	o := &l.Options
	if len(values) > 1 && name != partFault && name != partDrop {
		return fmt.Errorf("%s stands in the link %d times: once is enough", name, len(values))
	}
	value := values[0]
	switch name {
	case partStory:
		_, err = lab.FindStory(value)
		l.Story = value
	case partRule:
		l.Kept = value == ruleIn
		if value != ruleIn && value != ruleNo {
			err = fmt.Errorf("rule=%s: a rule is %s or %s", value, ruleIn, ruleNo)
		}
	case partAt:
		l.At, err = number(name, value, 1<<20)
	case partProtocol:
		if !o.SetProtocol(value) {
			err = fmt.Errorf("no protocol %q: there are %s", value, strings.Join(lab.ProtocolNames(), ", "))
		}
	case partFrom:
		o.From, err = number(name, value, 99)
	case partTo:
		o.To, err = number(name, value, 99)
	case partAdd:
		o.Add, err = number(name, value, 99)
	case partRemove:
		o.Remove, err = lab.ParseMembers(value)
	case partDemote:
		o.Demote, err = lab.ParseMembers(value)
	case partFault:
		err = l.faults(values)
	case partDrop:
		err = l.drop(values)
	case partFast:
		o.Fast = value == "1"
		if value != "0" && value != "1" {
			err = fmt.Errorf("fast=%s: it is 0 or 1", value)
		}
	case partSeed:
		if o.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = fmt.Errorf("seed=%s: a seed is a number up to %d", value, uint64(1<<64-1))
		}
	case partDelay:
		if o.Delay, err = time.ParseDuration(value); err != nil {
			err = fmt.Errorf("delay=%s: a delay is a time like 1ms or 25ms", value)
		}
	default:
		err = fmt.Errorf("the link has a part %q, which the laboratory does not know", name)
	}
	return err
}

func number(name, value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s=%s: it must be a number from 0 to %d", name, value, most)
	}
	return n, nil
}

func (l *Link) faults(texts []string) error {
	if len(texts) > maxFaults {
		return fmt.Errorf("the link has %d faults: a run has at most %d", len(texts), maxFaults)
	}
	for _, text := range texts {
		fault, err := lab.ParseFault(text)
		if err != nil {
			return err
		}
		l.Options.Faults = append(l.Options.Faults, fault)
	}
	return nil
}

func (l *Link) drop(names []string) error {
	for _, name := range names {
		if err := lab.CheckBreak(name); err != nil {
			return err
		}
		if slices.Contains(l.Options.Breaks, name) {
			continue
		}
		l.Options.Breaks = append(l.Options.Breaks, name)
	}
	return nil
}

// protocol is the name of the protocol, of the experiment too, and the rules that are dropped beside it.
func (l *Link) protocol() (name string, drops []string) {
	name = l.Options.Protocol.String()
	for _, one := range l.Options.Breaks {
		if one == lab.ProtocolSwitched && l.Options.Protocol == consensus.ProtocolActivate {
			name = one
			continue
		}
		drops = append(drops, one)
	}
	return name, drops
}

// String returns the link with its parts in their order, and without those that have their usual value.
func (l *Link) String() string {
	var parts []string
	add := func(name, value string) {
		plain := strings.NewReplacer("%2C", ",", "%3A", ":", "%40", "@").Replace(url.QueryEscape(value))
		parts = append(parts, name+"="+plain)
	}
	if l.Story != "" {
		add(partStory, l.Story)
		add(partRule, map[bool]string{true: ruleIn, false: ruleNo}[l.Kept])
	} else {
		for _, p := range l.parts() {
			add(p.name, p.value)
		}
	}
	if l.At > 0 {
		add(partAt, strconv.Itoa(l.At))
	}
	return strings.Join(parts, "&")
}

type part struct{ name, value string }

// parts are those of a run that is no story: the flags of `quoratesim reconfig` have the same names, but for drop and fast.
func (l *Link) parts() []part {
	o := &l.Options
	name, drops := l.protocol()
	parts := []part{{partProtocol, name}, {partFrom, strconv.Itoa(o.From)}}
	for _, p := range []struct {
		name string
		n    int
	}{{partTo, o.To}, {partAdd, o.Add}} {
		if p.n > 0 {
			parts = append(parts, part{p.name, strconv.Itoa(p.n)})
		}
	}
	for _, p := range []struct {
		name string
		ids  []consensus.MemberID
	}{{partRemove, o.Remove}, {partDemote, o.Demote}} {
		if len(p.ids) > 0 {
			parts = append(parts, part{p.name, members(p.ids)})
		}
	}
	for i := range o.Faults {
		parts = append(parts, part{partFault, o.Faults[i].String()})
	}
	for _, name := range drops {
		parts = append(parts, part{partDrop, name})
	}
	if o.Fast {
		parts = append(parts, part{partFast, "1"})
	}
	if o.Seed > 1 {
		parts = append(parts, part{partSeed, strconv.FormatUint(o.Seed, 10)})
	}
	if o.Delay > 0 && o.Delay != time.Millisecond {
		parts = append(parts, part{partDelay, o.Delay.String()})
	}
	return parts
}

func members(ids []consensus.MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, ",")
}

// Command returns the command line that plays the same run natively.
func (l *Link) Command() string {
	words := []string{"quoratesim", "reconfig"}
	if l.Story != "" {
		words = append(words, "--story", l.Story)
		if l.Kept {
			words = append(words, "--safe")
		}
		return typed.Line(words...)
	}
	for _, p := range l.parts() {
		switch p.name {
		case partFast:
			words = append(words, "--fast")
			continue
		case partDrop:
			p.name = "break"
		}
		words = append(words, "--"+p.name, p.value)
	}
	return typed.Line(words...)
}
