package level

import (
	"fmt"
	"strings"
)

// Level is a feature level. The numbers are on disk and in the log, from 1 on.
type Level uint8

const (
	// First is the level of the first release.
	First Level = 1

	// Second is the level of release 1.1.
	Second Level = 2

	// Own is the level of this build: the last one.
	Own = Second
)

// Step is a row of the table of levels.
type Step struct {
	Level   Level
	Since   string // the first release that knows it
	Enables string
}

// table has a row for each level. To add one: a constant, a row, and the level of the new command in kv.Needs, or, for a format
// of the store, the change that package kv/apply makes when it is raised. Package nextlevel then stands for the level after it.
var table = [...]Step{
	{First, "1.0.0", "all that release 1.0.0 knows"},
	{Second, "1.1.0", "what release 1.1.0 brings"},
}

// Enables describes what a level enables.
func (l Level) Enables() string {
	if l < First || int(l) > len(table) {
		return "what this build does not know"
	}
	return table[l-First].Enables
}

// Builds describes which builds know a level.
func (l Level) Builds() string {
	if l < First || int(l) > len(table) {
		return "a build that knows it"
	}
	return "build " + table[l-First].Since + " or later"
}

// Holder is a member that does not know a level.
type Holder struct {
	Name    string // or its id, if it has no name
	Build   string
	Level   Level
	Started bool // it has published its name, URLs and level
}

func (h *Holder) String() string {
	if !h.Started {
		return h.Name + " (never started)"
	}
	return fmt.Sprintf("%s (build %s, level %d)", h.Name, h.Build, h.Level)
}

// HeldError refuses a request that needs a level above the active one.
type HeldError struct {
	Needs, Active Level
	By            []Holder
	Why           string // if no member holds it back: see Rise.Waits
}

// Error names the members that hold the level back, at most a few of them, or says how long the policy does.
func (e *HeldError) Error() string {
	const most = 8
	if len(e.By) == 0 {
		return fmt.Sprintf("%s needs feature level %d, and the cluster is at %d: %s", e.Needs.Enables(), e.Needs, e.Active,
			e.Why)
	}
	var names []string
	for i := range min(len(e.By), most) {
		names = append(names, e.By[i].String())
	}
	if more := len(e.By) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s needs feature level %d, and the cluster is at %d, held back by %s: start these members with %s, or "+
		"remove them; `quorate member list` shows the builds",
		e.Needs.Enables(), e.Needs, e.Active, strings.Join(names, ", "), e.Needs.Builds())
}

// TooLowError refuses a member, or its data, whose build does not know the active level.
type TooLowError struct{ Own, Active Level }

func (e *TooLowError) Error() string {
	return fmt.Sprintf("the cluster is at feature level %d, and this build knows %d at most: start the build that ran here "+
		"before, or a later one (`quorate member list` shows the builds of the members)", e.Active, e.Own)
}
