package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// names gives configurations short names: C7 is the one of log entry 7, J7 if both sets decide in it. C7' is that of
// another entry 7, of another term.
type names struct{ known []namedConfig }

type namedConfig struct {
	id     consensus.ConfigID // stage 0
	config consensus.Config
	primes int
}

func (n *names) note(id consensus.ConfigID, c *consensus.Config) *namedConfig {
	id.Stage = 0
	primes := 0
	for i := range n.known {
		if n.known[i].id == id {
			return &n.known[i]
		}
		if n.known[i].id.Index == id.Index {
			primes++
		}
	}
	n.known = append(n.known, namedConfig{id: id, config: c.Clone(), primes: primes})
	return &n.known[len(n.known)-1]
}

// learn notes the configurations that entries hold.
func (n *names) learn(entries []entry) {
	for i := range entries {
		if change, ok := changeOf(&entries[i]); ok {
			n.note(consensus.ConfigID{Index: entries[i].Index, Term: entries[i].Term}, &change.Config)
		}
	}
}

func changeOf(e *entry) (consensus.ConfigChange, bool) {
	if !isConfig(*e) {
		return consensus.ConfigChange{}, false
	}
	change, err := consensus.DecodeConfigChange(e.Payload)
	return change, err == nil
}

// short is the name of what is in force under id.
func (n *names) short(id consensus.ConfigID, c *consensus.Config) string {
	letter := "C"
	if c.IsJoint() {
		letter = "J"
	}
	primes := 0
	for i := range n.known {
		if k := &n.known[i]; k.id.Index == id.Index && k.id.Term == id.Term {
			primes = k.primes
		}
	}
	return fmt.Sprintf("%s%d%s", letter, id.Index, strings.Repeat("'", primes))
}

func (n *names) full(id consensus.ConfigID, c *consensus.Config) string {
	return n.short(id, c) + " " + drawConfig(c)
}

// logged is the name of a configuration as its entry holds it, and the whole of it.
func (n *names) logged(id consensus.ConfigID) (short, full string) {
	id.Stage = 0
	at := slices.IndexFunc(n.known, func(k namedConfig) bool { return k.id == id })
	if at < 0 {
		short = fmt.Sprintf("C%d", id.Index)
		return short, short
	}
	c := &n.known[at].config
	return n.short(id, c), n.full(id, c)
}

// drawConfig draws {old voters|new voters +learners}.
func drawConfig(c *consensus.Config) string {
	var b strings.Builder
	b.WriteString("{")
	if c.IsJoint() {
		b.WriteString(list(c.Outgoing) + "|")
	}
	b.WriteString(list(c.Voters))
	if learners := slices.Concat(c.Learners, c.LearnersNext); len(learners) > 0 {
		b.WriteString(" +" + list(learners))
	}
	return b.String() + "}"
}

func list(ids []memberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, ",")
}

// describeSteps says what a request asks for: "promote 4,5, remove 1".
func describeSteps(steps []consensus.ChangeStep) string {
	var parts []string
	for i := 0; i < len(steps); {
		kind, ids := steps[i].Kind, []memberID(nil)
		for ; i < len(steps) && steps[i].Kind == kind; i++ {
			ids = append(ids, steps[i].Member.ID)
		}
		slices.Sort(ids)
		parts = append(parts, kind.String()+" "+list(ids))
	}
	return strings.Join(parts, ", ")
}
