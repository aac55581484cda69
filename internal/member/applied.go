package member

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/integrity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/answers"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/node"
)

// applyPorts tell others what the applier has done: who waits for a proposal or a read, for a change of the members,
// and who compares members.
type applyPorts struct {
	self      consensus.MemberID
	data      *datadir.Data
	answers   *answers.Budget
	loop      *loop // for its node
	members   *Membership
	integrity *integrity.Checker
	departure *departure
}

// room gives room for the answer to a proposal that somebody waits for here.
func (p *applyPorts) room(id consensus.ProposalID) kv.Account {
	if !p.loop.node.Awaits(id) {
		return nil
	}
	return p.answers.Open(0)
}

// apply lets the state machine apply a batch.
func (p *applyPorts) apply(batch []consensus.Entry) ([]kv.Result, error) {
	return p.data.Machine.ApplyFor(batch, p.room)
}

// applied completes who waits for a batch, and takes note of what it has changed.
func (p *applyPorts) applied(batch []consensus.Entry, results []kv.Result) {
	p.loop.node.Resolve(batch, results)
	if slices.ContainsFunc(batch, ofConfig) {
		p.noteRemoval()
	}
	p.members.applied(batch)
	p.integrity.Note()
}

// restored does the same for a snapshot that has replaced the store.
func (p *applyPorts) restored(meta consensus.SnapshotMeta, machine *apply.Machine) error {
	if err := p.loop.node.Restored(meta, machine); err != nil {
		return err
	}
	p.noteRemoval()
	p.integrity.Note()
	p.members.restored()
	return nil
}

// noteRemoval notes whether this member is still part of the configuration.
func (p *applyPorts) noteRemoval() {
	config, _ := p.data.Machine.Config()
	p.departure.note(&config, p.self)
}

// stateIn tells the core what the state machine knows of a proposal. While a snapshot replaces it, what the one before
// knew is true, and the core looks again when the new one is there.
func stateIn(stores *datadir.Stores) func(id consensus.ProposalID) fast.ProposalState {
	return func(id consensus.ProposalID) fast.ProposalState { return node.StateOf(stores.Latest(), id) }
}
