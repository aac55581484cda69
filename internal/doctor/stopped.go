package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
)

// Stopped is what the data directory of a member that does not run says.
type Stopped struct {
	Dir       string   `json:"dir"`
	WALDir    string   `json:"wal_dir,omitempty"`
	Cluster   string   `json:"cluster"`
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"`
	Epoch     uint64   `json:"epoch"`
	Term      uint64   `json:"term"`       // the highest that it has seen
	LastTerm  uint64   `json:"last_term"`  // of the last entry of its log
	LastIndex uint64   `json:"last_index"` // the same
	Commit    uint64   `json:"commit"`
	Revision  int64    `json:"revision"`           // of its store, which the log may be ahead of
	WrittenMS int64    `json:"written_ms"`         // Unix time at which its log was written last
	Voters    []string `json:"voters"`             // ids, by the last configuration of its log
	Outgoing  []string `json:"outgoing,omitempty"` // the same, while a change of members is half done: they must agree, too
	Removed   bool     `json:"removed,omitempty"`
	ReadOnly  bool     `json:"read_only,omitempty"` // the disk is mounted read-only
}

// readOnly says what to do with a directory on a disk that is mounted read-only. Needless says that a majority is here without
// such directories.
func (s *Stopped) readOnly(needless bool) string {
	text := fmt.Sprintf("%s is on a disk that is mounted read-only, by the kernel because it fails (see its log), or by "+
		"somebody on purpose: %s cannot start there. ", s.Dir, s.called())
	replace := "give its place to an empty directory on another disk (" +
		typed.Line("quorate", "member", "replace", s.called(), "--name", "NEW", "--peer-urls", "URL") + ")"
	if needless {
		return text + "The other directories are those of a majority: start these, and " + replace
	}
	return text + "If the other voters run and are a majority, " + replace + "; else copy all of this one to another disk: a " +
		"single read error makes the copy worthless, and once the copy has started never start from the old one again"
}

func (s *Stopped) called() string { return cmp.Or(s.Name, s.ID) }

// Autopsy is the verdict on the directories of stopped members.
type Autopsy struct {
	// Ranked are the directories, the one with the most recent log first.
	Ranked []Stopped `json:"ranked"`
	// Majority says that the directories are those of a majority of the voters: started again, they lose nothing.
	Majority  bool     `json:"majority"`
	Sentences []string `json:"sentences"`
	Cure      string   `json:"cure"`
}

// JudgeStopped says which of some directories holds most, and what to do with them. A log counts as consensus counts it: by the
// epoch of the cluster, the term of its last entry, then its length; when it was written says nothing.
func JudgeStopped(all []Stopped) Autopsy {
	a := Autopsy{Ranked: slices.Clone(all)}
	slices.SortStableFunc(a.Ranked, func(x, y Stopped) int {
		order := compareLogs(&y, &x)
		if x.Removed != y.Removed { // a removed member's log says nothing of what came later
			order = -1
			if x.Removed {
				order = 1
			}
		}
		return order
	})
	say := func(format string, args ...any) { a.Sentences = append(a.Sentences, fmt.Sprintf(format, args...)) }
	if len(all) == 0 {
		return a
	}
	best := &a.Ranked[0]
	for i := range a.Ranked {
		s := &a.Ranked[i]
		if s.Cluster != best.Cluster {
			say("%s belongs to cluster %s, and not to %s: judge it apart", s.Dir, s.Cluster, best.Cluster)
			a.Cure = "quorate doctor --offline DIR"
			return a
		}
		if s.ReadOnly {
			say("%s", s.readOnly(a.majority(true)))
		}
		if s.Removed {
			say("%s is of %s, which was removed from the cluster for ever: nothing starts from it", s.Dir, s.called())
		}
	}
	here, outgoing := a.counted(best.Voters, false), a.counted(best.Outgoing, false)
	a.Majority = a.majority(false)
	present := here.text("voter")
	if len(best.Outgoing) > 0 { // both sets agree to each entry
		present += " and " + outgoing.text("outgoing voter")
	}
	say("%s (%s) has the most recent log: epoch %d, term %d, entry %d%s", best.called(), best.Dir, best.Epoch, best.LastTerm,
		best.LastIndex, behindIt(a.Ranked))
	if a.Majority {
		say("%s %s here, a majority: start them with their directories and flags, and nothing is lost", present, here.verb())
		a.Cure = "quorate status"
		return a
	}
	need := fmt.Sprintf("%d make a majority", here.quorum())
	if len(best.Outgoing) > 0 {
		need = fmt.Sprintf("%d and %d make a majority", here.quorum(), outgoing.quorum())
	}
	say("%s %s here and %s: look for the directories of the others first; any of them may hold acknowledged writes that "+
		"these "+
		"lack. Only if they are lost for ever recover from %s", present, here.verb(), need, best.called())
	line := []string{"quorate", "recover", "--data-dir", best.Dir}
	if best.WALDir != "" {
		line = append(line, "--wal-dir", best.WALDir)
	}
	for i := range a.Ranked[1:] {
		s := &a.Ranked[i+1]
		if !s.Removed && s.ID != best.ID {
			at := s.Dir
			if s.WALDir != "" {
				at += "," + s.WALDir
			}
			line = append(line, "--compare", at)
		}
	}
	a.Cure = typed.Line(append(line, "--dry-run")...)
	return a
}

// count is how many of some voters there are, and how many have their directories here.
type count struct{ here, all int }

func (c count) quorum() int  { return c.all/2 + 1 }
func (c count) enough() bool { return c.all > 0 && c.here >= c.quorum() }
func (c count) text(what string) string {
	return fmt.Sprintf("%d of %s", c.here, plural.Of(c.all, what))
}
func (c count) verb() string { return plural.Word(c.here, "is", "are") }

// majority reports whether the directories are those of a majority of the voters, of both sets while these change.
func (a *Autopsy) majority(writable bool) bool {
	best := &a.Ranked[0]
	return a.counted(best.Voters, writable).enough() && (len(best.Outgoing) == 0 || a.counted(best.Outgoing, writable).enough())
}

// counted counts the voters of which there is a directory that may start, of the epoch of the best one. Writable leaves out
// those on disks that are mounted read-only.
func (a *Autopsy) counted(voters []string, writable bool) count {
	c := count{all: len(voters)}
	for _, id := range voters {
		if slices.ContainsFunc(a.Ranked, func(s Stopped) bool {
			return s.ID == id && !s.Removed && s.Epoch == a.Ranked[0].Epoch && !(writable && s.ReadOnly)
		}) {
			c.here++
		}
	}
	return c
}

// compareLogs orders logs by what they hold.
func compareLogs(a, b *Stopped) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.LastTerm, b.LastTerm), cmp.Compare(a.LastIndex, b.LastIndex))
}

// behindIt says how the other logs compare with the first one.
func behindIt(ranked []Stopped) (text string) {
	for i := range ranked[1:] {
		s := &ranked[i+1]
		switch {
		case s.Removed:
		case compareLogs(s, &ranked[0]) == 0:
			text += "; " + s.called() + " has the same"
		case s.Epoch == ranked[0].Epoch && s.LastTerm == ranked[0].LastTerm:
			text += "; " + s.called() + " lacks " + plural.Of(ranked[0].LastIndex-s.LastIndex, "entry", "entries") + " of it"
		default:
			text += fmt.Sprintf("; %s ends at epoch %d, term %d, entry %d", s.called(), s.Epoch, s.LastTerm, s.LastIndex)
		}
	}
	return text
}
