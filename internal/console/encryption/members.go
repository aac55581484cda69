package encryption

import (
	"context"
	"fmt"
	"html/template"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// memberRow is a member as the table shows it.
type memberRow struct {
	Name, To  string
	Look      string // the class of the colour of State
	State     string
	Note      string // in the place of the other columns; empty: they are known
	Wrapped   string // what wraps the keys
	Key, Age  string
	Former    int64 // keys in the ring that new files do not have
	Share     string
	Meter     template.HTML // how much has the key; empty: not known
	Plain     string        // how much is not encrypted; empty: nothing
	Endpoint  string        // where its commands ask; empty: it is not known
	Commands  []command
	encrypted bool
}

// command is a command line with its purpose.
type command struct{ For, Line string }

// membersView is what members do.
type membersView struct {
	Rows      []memberRow
	Encrypted int
	Told      int
	Oldest    string // age of the oldest key that new files have; empty: there is none
	Rewriting int    // members some of whose files have former keys
	Clear     int    // members that have files which are not encrypted, though they should be
	Sentence  string
	Look      string
}

// mostMembers is how many members the table has.
const mostMembers = 128

func members(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	return membersOf(all, r), nil
}

func membersOf(all *observed.Answer, r *page.Request) *membersView {
	v := new(membersView)
	oldest := time.Duration(0)
	for _, m := range all.Members[:min(len(all.Members), mostMembers)] {
		e := m.Says.GetEncryption()
		one := rowOf(m, e)
		one.Commands = commandsOf(m, one, r)
		v.Rows = append(v.Rows, one)
		if e == nil {
			continue
		}
		v.Told++
		if !e.GetEncrypted() {
			continue
		}
		v.Encrypted++
		oldest = max(oldest, ageOf(m))
		if e.GetFormerBytes() > 0 {
			v.Rewriting++
		}
		if e.GetPlainBytes() > 0 {
			v.Clear++
		}
	}
	if v.Encrypted > 0 {
		v.Oldest = page.Duration(oldest.Truncate(time.Minute))
		if oldest < time.Minute {
			v.Oldest = "under a minute"
		}
	}
	v.say(len(all.Members))
	return v
}

// say sums it up.
func (v *membersView) say(members int) {
	silent := members - v.Told
	switch {
	case v.Told == 0:
		v.Look, v.Sentence = "warn", "No member told whether it encrypts."
	case v.Clear > 0:
		v.Look, v.Sentence = "bad", "Files that are not encrypted lie in an encrypted directory: somebody put them there."
	case v.Encrypted == members:
		v.Look, v.Sentence = "good", "All members encrypt what they have on disk."
	case v.Encrypted == 0 && silent == 0:
		v.Look, v.Sentence = "", "No member encrypts: who has a disk, or an image of it, can read all keys and values."
	case silent > 0:
		v.Look, v.Sentence = "warn", fmt.Sprintf("%d of %s encrypt, and %s did not tell.", v.Encrypted,
			plural.Of(members, "member"), plural.Of(silent, "member"))
	default:
		v.Look, v.Sentence = "warn", fmt.Sprintf("%d of %s encrypt: what the others have on disk can be read.", v.Encrypted,
			plural.Of(members, "member"))
	}
}

// Word is the state of all in a word.
func (v *membersView) Word() string {
	switch {
	case v.Look == "good":
		return "on"
	case v.Look == "bad":
		return "look here"
	case v.Encrypted > 0:
		return "in part"
	case v.Told == 0:
		return "not known"
	}
	return "off"
}

func rowOf(m *observed.Member, e *quoratepb.ObservedEncryption) memberRow {
	one := memberRow{Name: m.Name, To: "/members?member=" + observed.Hex(m.ID)}
	switch {
	case m.Says == nil:
		one.Look, one.State, one.Note = "bad", "no answer", m.Asked.GetFaultText()
		return one
	case e == nil:
		one.State, one.Note = "not told", "by a build before 1.1"
		return one
	case !e.GetEncrypted():
		one.State = "off"
		one.Note = "what it has on disk can be read"
		return one
	}
	one.Look, one.State, one.encrypted = "good", "on", true
	one.Wrapped, one.Key = wrappedBy(e.GetProvider()), shortID(e.GetKey())
	one.Age, one.Former = page.Duration(ageOf(m).Truncate(time.Minute)), max(e.GetKeys()-1, 0)
	if ageOf(m) < time.Minute {
		one.Age = "under a minute"
	}
	if whole := e.GetBytes() + e.GetFormerBytes(); e.GetCounted() && whole > 0 {
		share := float64(e.GetBytes()) / float64(whole)
		one.Share = page.Percent(share) + " of " + page.Bytes(whole)
		if e.GetFormerBytes() > 0 && share >= 0.995 {
			one.Share = "nearly all of " + page.Bytes(whole)
		}
		one.Meter = chart.Progress("has this key: "+one.Share, share)
	}
	if e.GetPlainBytes() > 0 {
		one.Look, one.State, one.Plain = "bad", "in part", page.Bytes(e.GetPlainBytes())
	}
	return one
}

// ageOf is how old the key is that new files of a member have, by the member's own clock.
func ageOf(m *observed.Member) time.Duration {
	return time.Duration(max(m.Says.GetNowMs()-m.Says.GetEncryption().GetCreatedMs(), 0)) * time.Millisecond
}

// wrappedBy says what wraps the keys of a member.
func wrappedBy(provider string) string {
	switch provider {
	case "file":
		return "a key file"
	case "kms":
		return "a key service"
	}
	return page.Name(provider)
}

// mostID is how many characters of an id of a key are shown: enough to tell those of one ring from each other.
const mostID = 12

func shortID(id string) string {
	id = page.Text(id)
	if len(id) > mostID {
		return id[:mostID] + "…"
	}
	return id
}

// commandsOf are the commands about the keys of one member.
func commandsOf(m *observed.Member, one memberRow, r *page.Request) []command {
	urls := m.Known.GetClientUrls()
	if !one.encrypted || len(urls) == 0 {
		return nil
	}
	line := func(words ...string) string {
		words = append(append([]string{"quorate"}, words...), "--endpoints", page.Text(urls[0]))
		if r.User != "" && !r.Certified {
			words = append(words, "--user", r.User)
		}
		return typed.Line(words...)
	}
	return []command{{"see its keys", line("key", "status")}, {"begin a new key", line("key", "rotate")},
		{"rewrite what has former keys", line("defrag")}}
}
