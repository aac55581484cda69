package raft_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// without plays the block "without RULE... voters=N" of a script twice: with the rules, where no law may break, and without
// them. Its lines are those of the other scripts, and
//
//	offer M P K heard=L    member M proposes P, which touches the keys K, to all voters; those in the list L receive it
//	append M P K           leader M logs P, and sends it to no member
//	lead M votes=L         member M is elected by those in L; its entries reach no member
//	give M to=L [upto=I] [untold]    leader M replicates to those in L, up to index I, with its commit index or without
//	tell M to=L            leader M makes its term known, and nothing of its log
//	fall M                 member M stops for a moment: it loses all that is not on its disk
//	late, arrive           the answers of the leader are late from now on; they arrive
func without(t *testing.T, d *datadriven.TestData) string {
	var names []string
	voters := 0
	for _, arg := range d.CmdArgs {
		if arg.Key == "voters" {
			voters, _ = strconv.Atoi(arg.Vals[0])
		} else {
			names = append(names, arg.Key)
		}
	}
	gone, err := drop(names...)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	var out strings.Builder
	for _, row := range []struct {
		name string
		gone rules.Set
	}{{"with", rules.Set{}}, {"without", gone}} {
		x := newStory(voters, row.gone)
		for line := range strings.Lines(d.Input) {
			if err := x.tellLine(strings.Fields(line)); err != nil {
				t.Fatalf("%s: %s: %v", d.Pos, strings.TrimSpace(line), err)
			}
		}
		if x.laws.broken == "" {
			x.laws.same()
		}
		law := x.laws.broken
		if (law != "") != (row.name == "without") {
			t.Errorf("%s: %s the rule, broken: %q\n%s", d.Pos, row.name, law, x.trace)
		}
		if law == "" {
			law = "no law breaks"
		}
		fmt.Fprintf(&out, "%s: %s\n", row.name, law)
	}
	return out.String()
}

func (x *story) tellLine(words []string) error {
	given := map[string]string{}
	var args []string
	for _, word := range words[1:] {
		if key, value, named := strings.Cut(word, "="); named && key != "protocol" {
			given[key] = value
		} else {
			args = append(args, word)
		}
	}
	list := func(key string) []memberID {
		if given[key] == "" {
			return nil
		}
		return parseIDs(given[key])
	}
	switch words[0] {
	case "late":
		x.late = true
		return nil
	case "arrive":
		x.arrive()
		return nil
	}
	if len(args) == 0 {
		return x.scriptLine(words)
	}
	id := parseIDs(args[0])[0]
	switch words[0] {
	case "offer":
		x.fast(args[1], args[2], id, list("heard")...)
	case "append":
		x.slow(args[1], args[2], id)
	case "lead":
		x.leads(id, list("votes")...)
	case "give":
		upTo, _ := strconv.ParseUint(given["upto"], 10, 64)
		if upTo == 0 {
			x.give(id, list("to")...)
			break
		}
		x.giveUpTo(consensus.Index(upTo), len(args) == 1, id, list("to")...)
	case "tell":
		x.tell(id, list("to")...)
	case "fall":
		x.falls(id)
	default:
		return x.scriptLine(words)
	}
	return nil
}

// scriptLine plays a line of the other scripts; its messages stay under way.
func (x *story) scriptLine(words []string) error {
	s := &script{cluster: x.cluster, out: &strings.Builder{}}
	if done, err := s.world(words[0], words[1:]); done || err != nil {
		return err
	}
	return s.member(words[0], words[1:])
}
