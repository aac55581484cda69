package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrUnmapped says that the trace has an action that the mapping leaves out: the actions before it were checked.
var ErrUnmapped = errors.New("the trace goes on with what the specification does not map")

// Position is index and term of an entry.
type Position [2]uint64

// Step is one line of a trace: an action of a member.
type Step struct {
	At     int64  `json:"at"` // virtual time in microseconds
	Member uint64 `json:"member,omitempty"`
	Action string `json:"action"`

	Voters   []uint64   `json:"voters,omitempty"`   // begin
	Term     uint64     `json:"term,omitempty"`     // all but begin and decide
	Vote     uint64     `json:"vote,omitempty"`     // start, persist
	Base     *Position  `json:"base,omitempty"`     // start; persist: the log begins anew after it
	Entries  []Position `json:"entries,omitempty"`  // start, persist
	Changes  bool       `json:"changes,omitempty"`  // persist: a configuration is among the entries
	To       uint64     `json:"to,omitempty"`       // grant, acknowledge
	Match    *Position  `json:"match,omitempty"`    // acknowledge
	Index    uint64     `json:"index,omitempty"`    // commit
	Proposal string     `json:"proposal,omitempty"` // accept, answer, decide
	Revision uint64     `json:"revision,omitempty"` // accept, answer, decide
}

// The actions.
const (
	Begin       = "begin"       // the voters of the cluster
	Start       = "start"       // a member starts with the state on its disk: Restart
	Persist     = "persist"     // term, vote and entries go to the disk: Campaign, Win, LogAppend, Receive
	Grant       = "grant"       // a vote leaves: Vote
	Acknowledge = "acknowledge" // a member reports that its log equals the leader's: the ghost acked of Receive
	Commit      = "commit"      // a member learns a later commit index: Commit, Infer, Hint, Receive
	Accept      = "accept"      // a voter holds a record: Record
	Answer      = "answer"      // a leader answers before the entry has committed: Propose
	Decide      = "decide"      // a proposer counts the answers: Decide
)

// Check reads a trace of JSON lines. It returns the number of steps that were checked, and the error of the first one that is
// not allowed.
func Check(in io.Reader) (steps int, err error) {
	c := &Checker{}
	lines := json.NewDecoder(in)
	for {
		var s Step
		if err := lines.Decode(&s); errors.Is(err, io.EOF) {
			return steps, nil
		} else if err != nil {
			return steps, fmt.Errorf("step %d: %w", steps+1, err)
		}
		if err := c.Step(&s); err != nil {
			return steps, fmt.Errorf("step %d, %s of member %d at %d us: %w", steps+1, s.Action, s.Member, s.At, err)
		}
		steps++
	}
}
