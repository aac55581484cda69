package level

import (
	"fmt"
	"strconv"
	"strings"
)

// Level is a feature level. The numbers are on disk and in the log. No build tells zero; where it is read, it counts as
// First.
type Level uint8

const (
	// First is all that builds knew before there were levels.
	First Level = 1
	// Users is users, roles and permissions, commands in a user's name, join tokens, and the users in the chain.
	Users Level = 2

	// History is rows of changes that name the version which they replace, values that lie apart from their keys (ADR 34),
	// results in packs (ADR 41), and packed records of the log (ADR 40). It is of what is on disk, not of commands: from the
	// entry that raises it on, members write what builds below it do not read.
	History Level = 3

	// Changes is rows of changes that hold those of a batch (ADR 44). It is of what is on disk, as History is.
	Changes Level = 4

	// Parts is leases that end in parts (ADR 59): from the entry that raises it on, a LeaseRevokeOp deletes no more than a
	// part of a large lease, and the rows of leases say which ones are ending.
	Parts Level = 5

	// Bounds is that commands which look at too much are rejected, and that the parts of leases are shorter (ADR 62).
	Bounds Level = 6

	// Own is the level of this build: the last one.
	Own = Bounds
)

// Step is a row of the table of levels.
type Step struct {
	Level   Level
	Since   string // the first release that knows it
	Enables string
}

// table has a row for each level. To add one: a constant, a row, and the level of the new command in kv.Needs, or, for a
// format of the store, what package kv/apply does when it is raised.
var table = [...]Step{
	{First, "0.1.0-dev", "keys, transactions, leases, alarms and membership jobs"},
	{Users, "0.1.0", "users, roles, permissions and join tokens"},
	{History, "0.1.0", "stores that name replaced versions and have large values apart, results in packs, and packed logs"},
	{Changes, "0.1.0", "changes in packs"},
	{Parts, "0.1.0", "large leases that end in parts"},
	{Bounds, "0.1.0", "bounds on what a command looks at, and shorter parts of leases"},
}

// Enables says in words what a level enables.
func (l Level) Enables() string {
	if l < First || int(l) > len(table) {
		return "what this build does not know"
	}
	return table[l-First].Enables
}

// Release returns the first release that knows a level; empty if this build does not know it.
func (l Level) Release() string {
	if l < First || int(l) > len(table) {
		return ""
	}
	return table[l-First].Since
}

// What members publish of their build goes into the text of their version, which every build stores: a field of its own would
// be refused by those that do not know it.
const (
	buildMark = " quorate/"
	levelMark = " level/"
)

// Stamp adds build and level to a version. First adds nothing.
func Stamp(version, build string, l Level) string {
	if l <= First {
		return version
	}
	return version + buildMark + build + levelMark + strconv.Itoa(int(l))
}

// Read takes a text apart that Stamp may have made. Any other text is a version.
func Read(text string) (version, build string, l Level) {
	head, number, found := cutLast(text, levelMark)
	if found {
		version, build, found = cutLast(head, buildMark)
	}
	n, err := strconv.ParseUint(number, 10, 8)
	if l = Level(n); !found || err != nil || Stamp(version, build, l) != text {
		return text, "", 0
	}
	return version, build, l
}

func cutLast(text, mark string) (before, after string, found bool) {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(mark):], true
}

// Holder is a member that does not know a level.
type Holder struct {
	Name    string // or its id, if it has none
	Build   string // empty: one from before there were levels
	Level   Level
	Started bool // it has published itself
}

func (h *Holder) String() string {
	switch {
	case !h.Started:
		return h.Name + " (never started)"
	case h.Build == "":
		return fmt.Sprintf("%s (an earlier build, level %d)", h.Name, max(h.Level, First))
	}
	return fmt.Sprintf("%s (build %s, level %d)", h.Name, h.Build, h.Level)
}

// HeldError refuses a request that needs a level above the active one.
type HeldError struct {
	Needs, Active Level
	By            []Holder
}

// Error names the members that hold the level back, a few of them.
func (e *HeldError) Error() string {
	const most = 8
	var names []string
	for i := range min(len(e.By), most) {
		names = append(names, e.By[i].String())
	}
	if more := len(e.By) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s need feature level %d, and the cluster is at %d, held back by %s: start these members with build "+
		"%s or later, or remove them; `quorate member list` shows the builds",
		e.Needs.Enables(), e.Needs, e.Active, strings.Join(names, ", "), e.Needs.Release())
}

// TooLowError refuses a member, or the data of one, whose build knows less than the cluster uses.
type TooLowError struct{ Own, Active Level }

func (e *TooLowError) Error() string {
	return fmt.Sprintf("the cluster is at feature level %d, and this build knows %d at most: start the build that ran here "+
		"before, or a later one (`quorate member list` shows the builds of the members)", e.Active, e.Own)
}
