package lab

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// maxMembers is the largest number of columns of a chart.
const maxMembers = 9

// maxFaultTicks bounds the times of faults, in ticks: a run ends.
const maxFaultTicks = 1000

// Options say which change to play, and which faults strike.
type Options struct {
	Protocol consensus.Protocol
	From     int // voters before: members 1 to From
	To       int // voters after; zero: by Add, Remove and Demote
	Add      int // new voters; if zero, as many as To needs
	Remove   []memberID
	Demote   []memberID
	Faults   []Fault
	Breaks   []string
	Fast     bool // clients offer their writes to all voters at once
	Seed     uint64
	Delay    time.Duration // of a link, one way; 1 ms if zero
	Record   bool          // whether the report has a Tape
}

// ProtocolNames lists the protocols that can be played: those of a cluster, and the experiment.
func ProtocolNames() []string { return append(consensus.ProtocolNames(), ProtocolSwitched) }

// SetProtocol chooses a protocol by its name; false if there is none.
func (o *Options) SetProtocol(name string) (known bool) {
	o.Breaks = slices.DeleteFunc(o.Breaks, func(b string) bool { return b == ProtocolSwitched })
	if name == ProtocolSwitched {
		o.Protocol, o.Breaks = consensus.ProtocolActivate, append(o.Breaks, ProtocolSwitched)
		return true
	}
	o.Protocol, known = consensus.ParseProtocol(name)
	return known
}

// plan is the change that Options describe.
type plan struct {
	joining []memberID // learners before the change, voters after it
	remove  []memberID
	demote  []memberID
}

func (o *Options) total(p *plan) int { return o.From + len(p.joining) }

// plan returns the change with all its members, or an error that says why it is impossible.
func (o *Options) plan() (*plan, error) {
	p := &plan{remove: slices.Clone(o.Remove), demote: slices.Clone(o.Demote)}
	slices.Sort(p.remove)
	slices.Sort(p.demote)
	leaving := slices.Concat(p.remove, p.demote)
	slices.Sort(leaving)
	switch {
	case o.From < 1 || o.From > maxMembers || o.To < 0 || o.To > maxMembers || o.Add < 0 || o.Add > maxMembers:
		return nil, fmt.Errorf("from %d, to %d, add %d: a chart has room for 1 to %d members", o.From, o.To, o.Add, maxMembers)
	case len(slices.Compact(slices.Clone(leaving))) < len(leaving):
		return nil, errors.New("a member is removed or demoted twice")
	case len(leaving) > 0 && leaving[len(leaving)-1] > memberID(o.From):
		return nil, fmt.Errorf("member %v is no voter: there are 1 to %d", leaving[len(leaving)-1], o.From)
	}
	add := o.Add
	if o.To > 0 && o.Add == 0 {
		add = max(0, o.To-o.From+len(leaving))
	}
	for id := memberID(o.From); o.To > 0 && id > 0 && o.From+add-len(leaving) > o.To; id-- {
		if !slices.Contains(leaving, id) {
			p.remove = append(p.remove, id)
			leaving = append(leaving, id)
		}
	}
	slices.Sort(p.remove)
	to := o.From + add - len(leaving)
	switch {
	case o.To > 0 && to != o.To:
		return nil, fmt.Errorf("%d voters and %d more without %d are %d, not %d", o.From, add, len(leaving), to, o.To)
	case to < 1:
		return nil, errors.New("nobody would vote any more")
	case add == 0 && len(leaving) == 0:
		return nil, errors.New("there is nothing to change")
	case o.From+add > maxMembers:
		return nil, fmt.Errorf("%d members: a chart has room for %d", o.From+add, maxMembers)
	}
	for i := range add {
		p.joining = append(p.joining, memberID(o.From+1+i))
	}
	return p, o.check(p)
}

func (o *Options) check(p *plan) error {
	if o.Delay < 0 || o.Delay > 10*time.Second || (o.Delay > 0 && o.Delay < 10*time.Microsecond) {
		return fmt.Errorf("delay %v: a link takes 10µs to 10s", o.Delay)
	}
	longest := paceFor(cmp.Or(o.Delay, time.Millisecond)).tick * maxFaultTicks
	for i := range o.Faults {
		if f := &o.Faults[i]; f.at > longest || f.again > longest {
			return fmt.Errorf("fault %q: with this delay a fault strikes, and ends, within %v", f, longest)
		}
		for _, id := range o.Faults[i].named() {
			if int(id) > o.total(p) {
				return fmt.Errorf("fault %q: there are only members 1 to %d", o.Faults[i], o.total(p))
			}
		}
	}
	return nil
}

// requests returns the requests of the operator: one for all changes, or, for a protocol that changes one voter, one for each.
func (o *Options) requests(p *plan) []request {
	var steps []consensus.ChangeStep
	step := func(kind consensus.ChangeKind, ids []memberID) {
		for _, id := range ids {
			steps = append(steps, consensus.ChangeStep{Kind: kind, Member: consensus.Member{ID: id}})
		}
	}
	step(consensus.ChangePromote, p.joining)
	// The leader, 1, leaves last.
	for at := len(p.remove) - 1; at >= 0; at-- {
		step(consensus.ChangeRemove, p.remove[at:at+1])
	}
	for at := len(p.demote) - 1; at >= 0; at-- {
		step(consensus.ChangeDemote, p.demote[at:at+1])
	}
	size := len(steps)
	if o.Protocol == consensus.ProtocolSingle {
		size = 1
	}
	voters := numbered(o.From)
	var requests []request
	for chunk := range slices.Chunk(steps, size) {
		r := request{steps: chunk}
		for i := range chunk {
			id := chunk[i].Member.ID
			voters = slices.DeleteFunc(voters, func(v memberID) bool { return v == id })
			switch chunk[i].Kind {
			case consensus.ChangePromote:
				voters = append(voters, id)
			case consensus.ChangeRemove:
				r.leaving = append(r.leaving, id)
			}
		}
		slices.Sort(voters)
		r.target = slices.Clone(voters)
		requests = append(requests, r)
	}
	return requests
}

func numbered(count int) []memberID {
	ids := make([]memberID, count)
	for i := range ids {
		ids[i] = memberID(i + 1)
	}
	return ids
}
